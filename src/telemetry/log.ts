import { Fault } from '#core/fault';
import { logLevels, type LogLevel } from '#core/log-levels';
import { logLines } from './log-lines.ts';
import { prettyLine } from './pretty-line.ts';

const lastWordsMilliseconds = 1000;
/** Bytes that wait for a reader who has stopped; later lines are left out, and counted. */
const mostWaiting = 16_777_216;
/** Bytes written at once. To a pipe that several processes share only this many (PIPE_BUF) arrive in one piece; a piece is whole lines. */
const pieceBytes = { alone: 65_536, shared: 4096 };

/** JSON lines on stderr. What goes in is chosen field by field: never a key, a prompt or an upstream body. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** The last words of a process that ends of it. */
  fatal(fields: object, message: string): void;
  /** From now on this and worse. */
  level(level: LogLevel | 'silent'): void;
  /** Writes what is still in memory, as far as somebody reads it within a second. */
  flush(): Promise<void>;
}

/**
 * A line is made in one go, by the engine's own JSON: a fifth of what a logging library takes, and every request has one.
 * @param level this is logged, and worse; `silent`: nothing
 * @param place `shared`: other processes write to the same stderr
 * @param format `pretty`: for people at a terminal, with colours
 */
export function openLog(level: LogLevel | 'silent', place: keyof typeof pieceBytes = 'alone', format: 'json' | 'pretty' = 'json'): Log {
  const timer = setInterval(() => lines.flush(), 250);
  timer.unref();
  const who = place === 'shared' ? `,"pid":${process.pid}` : '';
  let least = rankOf(level);
  const lineOf = (of: LogLevel, fields: object, message: string) => {
    if (format === 'pretty') return prettyLine(of, fields, message);
    const json = JSON.stringify(fields);
    return `{"level":"${of}","time":"${timestamp()}"${who}${json === '{}' ? '' : `,${json.slice(1, -1)}`},"msg":${JSON.stringify(message)}}\n`;
  };
  const write = (of: LogLevel, fields: object, message: string) => {
    if (logLevels.indexOf(of) >= least) lines.add(lineOf(of, fields, message));
  };
  const leftOut = (count: number) => lineOf('warn', { lines: count }, 'Nobody read the log: these lines of it were left out.');
  const lines = logLines(2, { pieceBytes: pieceBytes[place], mostWaiting, leftOut });
  return {
    debug: (fields, message) => write('debug', fields, message),
    info: (fields, message) => write('info', fields, message),
    warn: (fields, message) => write('warn', fields, message),
    error: (fields, message) => write('error', fields, message),
    fatal: (fields, message) => write('fatal', fields, message),
    level(changed) {
      least = rankOf(changed);
    },
    flush: () =>
      new Promise((resolve) => {
        const impatient = setTimeout(resolve, lastWordsMilliseconds);
        void lines.written().then(() => {
          clearTimeout(impatient);
          resolve();
        });
      }),
  };
}

/** JSON but for people at a terminal. */
export const formatOf = ({ logFormat }: { readonly logFormat: 'auto' | 'json' | 'pretty' }): 'json' | 'pretty' =>
  logFormat === 'auto' ? (process.stderr.isTTY ? 'pretty' : 'json') : logFormat;

const rankOf = (level: LogLevel | 'silent'): number => (level === 'silent' ? Infinity : logLevels.indexOf(level));

/** ISO 8601 to the millisecond; what is the same for a whole second is made once a second. */
function timestamp(): string {
  const now = Date.now();
  const second = Math.floor(now / 1000);
  if (second !== lastSecond) {
    lastSecond = second;
    lastText = new Date(second * 1000).toISOString().slice(0, 20);
  }
  return `${lastText}${String(now % 1000).padStart(3, '0')}Z`;
}

let lastSecond = 0;
let lastText = '';

/**
 * An error for the log: its name, code and message and those of its causes, without what its message quotes. Faults and errors of the system (a refused connection)
 * have no stack, nor has what happened on a connection to a provider: nothing is wrong with the code.
 */
export function causeOf(error: unknown, isOutside = false): object {
  if (!(error instanceof Error)) return wordsOf(error);
  const { name, message, cause } = error;
  const { code, syscall } = error as { code?: unknown; syscall?: unknown };
  const words = unquoted(error);
  const fromOutside = isOutside || name === 'UpstreamError';
  return {
    name,
    message: words,
    ...(typeof code === 'string' ? { code } : {}),
    ...(cause === undefined ? {} : { cause: causeOf(cause, fromOutside) }),
    ...(fromOutside || name === 'Fault' || typeof syscall === 'string'
      ? {}
      : { stack: words === message ? error.stack : error.stack?.replace(message, () => words) }),
  };
}

/** Logs what went wrong beside the requests. */
export const problemsTo =
  (log: Pick<Log, 'error'>) =>
  (problem: string, cause: unknown): void =>
    log.error(cause === undefined ? {} : causeOf(cause), problem);

/** What a refusal says of itself, such as `{ status: 401, code: 'invalid_api_key' }`: its numbers and words, no prose. */
const wordsOf = (cause: unknown): object =>
  cause !== null && typeof cause === 'object'
    ? Object.fromEntries(
        Object.entries(cause).filter(([, value]) => typeof value === 'number' || (typeof value === 'string' && /^[\w.[\]-]{1,64}$/.test(value))),
      )
    : { cause: String(cause) };

/**
 * An error's words without the value they are about: V8 quotes the text that is no JSON, no pattern or no number, Node what it received, PostgreSQL what is
 * no value of a type (class 22), and a fault the first sentence of a provider's refusal. Any of them may be a prompt or a key.
 */
function unquoted(error: Error): string {
  const { name, message } = error;
  if (error instanceof Fault) return error.details.said === undefined ? message : message.replace(` It says: ${error.details.said}`, '');
  const { code } = error as { code?: unknown };
  if (name === 'SyntaxError') return message.startsWith('The requested module') ? message : 'A text could not be parsed.';
  if (typeof code !== 'string') return message;
  if (code.startsWith('ERR_INVALID_')) return message.replace(/\bReceived\b[^]*$/, '').trimEnd();
  return /^22...$/.test(code) ? message.replace(/: "[^]*$/, '.') : message;
}
