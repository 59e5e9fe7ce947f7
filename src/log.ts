import { logLines } from './log-lines.ts';

const lastWordsMilliseconds = 1000;
/** Characters that wait for a reader who has stopped; what comes then is left out. */
const mostWaiting = 16_777_216;
/** Bytes written at once. To a pipe that several processes share only so many (PIPE_BUF) arrive in one piece; a piece is whole lines. */
const pieceBytes = { alone: 16_384, shared: 4096 };

/** Worse ones have higher numbers; `silent` is above all. */
const levels = { trace: 10, debug: 20, info: 30, warn: 40, error: 50, fatal: 60, silent: Infinity } as const;
type Level = Exclude<keyof typeof levels, 'trace' | 'fatal' | 'silent'>;

/** JSON lines on stderr. What goes in is chosen field by field: never a key, a prompt or an upstream body. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** From now on this and worse. */
  level(level: string): void;
  /** Writes what is still in memory, as far as somebody reads it within a second. */
  flush(): Promise<void>;
}

/**
 * A line is made in one go, by the engine's own JSON: a fifth of what a logging library takes, and every request has one.
 *
 * @param level `trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`
 * @param place `shared`: other processes write to the same stderr
 */
export function openLog(level: string, place: keyof typeof pieceBytes = 'alone'): Log {
  const lines = logLines(2, { pieceBytes: pieceBytes[place], mostWaiting });
  const timer = setInterval(() => lines.flush(), 250);
  timer.unref();
  const who = place === 'shared' ? `,"pid":${process.pid}` : '';
  let least = numberOf(level);
  const write = (of: Level, fields: object, message: string) => {
    if (levels[of] < least) return;
    const json = JSON.stringify(fields);
    lines.add(`{"level":"${of}","time":"${timestamp()}"${who}${json === '{}' ? '' : `,${json.slice(1, -1)}`},"msg":${JSON.stringify(message)}}\n`);
  };
  return {
    debug: (fields, message) => write('debug', fields, message),
    info: (fields, message) => write('info', fields, message),
    warn: (fields, message) => write('warn', fields, message),
    error: (fields, message) => write('error', fields, message),
    level(changed) {
      least = numberOf(changed);
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

function numberOf(level: string): number {
  return Object.hasOwn(levels, level) ? levels[level as keyof typeof levels] : levels.info;
}

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

/** What an error says for the log: its kind, code and words and those of its causes, no stack of a fault. */
export function causeOf(error: unknown): object {
  if (!(error instanceof Error)) return { cause: String(error) };
  const { name, message, cause } = error;
  const code = (error as { code?: unknown }).code;
  return {
    name,
    message,
    ...(typeof code === 'string' ? { code } : {}),
    ...(cause === undefined ? {} : { cause: causeOf(cause) }),
    ...(name === 'Fault' ? {} : { stack: error.stack }),
  };
}
