import { type ChildProcess, spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { readableMessage, type MessageLimits } from './message-limit.ts';

/** A program that speaks MCP on its standard input and output. */
export interface Program {
  /** Absolute path. */
  readonly command: string;
  readonly args: readonly string[];
  /** All of its environment: it inherits nothing. */
  readonly env: Readonly<Record<string, string>>;
}

/** A transport of the MCP client, over a child process. */
export interface ChildTransport {
  /** By `pid` and `stderr` the client tells a program from HTTP: one that leaves the request for its revision unanswered is asked in the way of 2025. */
  readonly pid: number | undefined;
  readonly stderr: null;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: never) => void;
  start(): Promise<void>;
  send(message: object): Promise<void>;
  close(): Promise<void>;
}

/** Lines that are read in one turn of the event loop. */
const turnLines = 32;
/** Milliseconds between asking the program to end and killing it. */
const graceMilliseconds = 1000;

/**
 * Runs the program without a shell, in a process group of its own, which is killed with all that it started when the transport closes. Messages are lines of JSON.
 *
 * @param limits of a message; one with more bytes ends the program
 */
export function childTransport({ command, args, env }: Program, limits: MessageLimits): ChildTransport {
  let child: ChildProcess | undefined;
  let exited: Promise<void> | undefined;
  let parts: Buffer[] = [];
  let size = 0;
  const transport: ChildTransport = {
    get pid() {
      return child?.pid;
    },
    stderr: null,
    start: () =>
      new Promise((resolve, reject) => {
        child = spawn(command, args, { shell: false, env: { ...env }, cwd: tmpdir(), stdio: ['pipe', 'pipe', 'ignore'], detached: true });
        const running = child;
        const read = reading(running.stdout! as AsyncIterable<Buffer>).catch(() => {}); // it ended with the program
        if (running.pid !== undefined) watched(running.pid);
        exited = new Promise((ended) => {
          running.once('exit', () => {
            end(running, 'SIGKILL'); // what it started and left behind
            if (running.pid !== undefined) unwatched(running.pid);
            ended();
            void Promise.race([read, pause(graceMilliseconds)]).then(() => transport.onclose?.());
          });
          running.once('error', (error) => {
            ended();
            reject(error);
            transport.onerror?.(error);
          });
        });
        running.once('spawn', resolve);
        running.stdin!.on('error', (error) => transport.onerror?.(error));
      }),
    send: (message) =>
      new Promise((resolve, reject) => {
        if (!child?.stdin?.writable) return reject(new Error('The program has ended.'));
        child.stdin.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
      }),
    async close() {
      if (!child || !exited) return;
      const running = child;
      running.stdin?.end();
      end(running, 'SIGTERM');
      const kill = setTimeout(() => end(running, 'SIGKILL'), graceMilliseconds);
      await exited;
      clearTimeout(kill);
    },
  };
  async function reading(output: AsyncIterable<Buffer>): Promise<void> {
    for await (const chunk of output) await arrived(chunk);
  }
  async function arrived(chunk: Buffer): Promise<void> {
    let from = 0;
    let lines = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      const line = Buffer.concat([...parts, chunk.subarray(from, at)]);
      parts = [];
      size = 0;
      from = at + 1;
      if (line.length > 0) readLine(line, limits, transport);
      if (++lines % turnLines === 0) await nextTurn();
    }
    const rest = chunk.subarray(from);
    size += rest.length;
    parts.push(rest);
    if (size > limits.bytes) {
      parts = [];
      limits.exceeded?.();
      transport.onerror?.(new Error('A message is too large.'));
      void transport.close();
    }
  }
  return transport;
}

function readLine(line: Buffer, limits: MessageLimits, transport: ChildTransport): void {
  try {
    const text = Buffer.from(readableMessage(line, limits)).toString().trim(); // also without a byte order mark
    if (text !== '') transport.onmessage?.(JSON.parse(text) as never);
  } catch (error) {
    transport.onerror?.(error instanceof Error ? error : new Error('A message cannot be read.'));
  }
}

/** Signals the whole group. */
function end({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // the group is gone
  }
}

/** Kills the process groups that it was told of when its standard input closes: this process may be killed itself, and then nothing else would end its programs. */
const program = `
const groups = new Set();
let rest = '';
process.stdin.setEncoding('utf8').on('data', (text) => {
  const lines = (rest + text).split('\\n');
  rest = lines.pop();
  for (const line of lines) line[0] === '+' ? groups.add(Number(line.slice(1))) : groups.delete(Number(line.slice(1)));
});
process.stdin.on('close', () => {
  for (const group of groups) try { process.kill(-group, 'SIGKILL'); } catch {}
  process.exit();
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
`;

let watchdog: ChildProcess | undefined;
const groups = new Set<number>();

/** Has a process group killed if this process ends before `unwatched`. */
function watched(group: number): void {
  groups.add(group);
  if (watchdog) watchdog.stdin?.write(`+${group}\n`);
  else watchdog = started();
}

function unwatched(group: number): void {
  groups.delete(group);
  watchdog?.stdin?.write(`-${group}\n`);
}

/** One for all programs. It keeps no process alive. */
function started(): ChildProcess {
  const child = spawn(process.execPath, ['-e', program], { env: {}, stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  const gone = () => {
    if (watchdog === child) watchdog = undefined;
  };
  child.once('exit', gone).once('error', gone);
  child.stdin.on('error', gone);
  child.stdin.write([...groups].map((group) => `+${group}\n`).join(''));
  child.unref();
  (child.stdin as typeof child.stdin & { unref?: () => void }).unref?.();
  return child;
}
