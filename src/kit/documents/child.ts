import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { constants, setPriority } from 'node:os';
import { createRequire } from 'node:module';
import { dirname, extname, join, sep } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import type { Clock } from '../async/clock.ts';
import { Frames, placesIn, type Head, type Refused } from './frames.ts';
import type { ConversionAsked, TypedDocument } from './convert.ts';
import { ConversionRefused, isRefusalReason, tooMuch } from './refusal.ts';

export interface ChildLimits {
  /** Resident memory, in bytes. */
  readonly bytes: number;
  /** Of a conversion, and more for each page that is read by OCR. */
  readonly seconds: number;
  readonly ocrSeconds: number;
}

const watchMilliseconds = 25;
/** Of V8's heap, in megabytes: buffers are not in it. */
const heapMegabytes = 320;
const pageBytes = 4096;

type Process = ChildProcessByStdio<Writable, Readable, null>;

/** A process that converts one document. It has no network, no environment, and reads only code; it is begun before it is needed. */
export class ConversionChild {
  readonly #process: Process;
  readonly #clock: Pick<Clock, 'after' | 'monotonic'>;
  readonly #ended: Promise<void>;

  constructor(clock: Pick<Clock, 'after' | 'monotonic'>) {
    this.#clock = clock;
    this.#process = spawn(process.execPath, argumentsOf(), { env: {}, cwd: '/', stdio: ['pipe', 'pipe', 'ignore'], windowsHide: true });
    this.#process.stdin.on('error', () => {}); // its end says it
    this.#process.stdout.on('error', () => {});
    this.#ended = new Promise((resolve) => {
      this.#process.once('close', () => resolve());
      this.#process.once('error', () => resolve()); // it could not be started
    });
    try {
      if (this.#process.pid !== undefined) setPriority(this.#process.pid, constants.priority.PRIORITY_BELOW_NORMAL);
    } catch {
      // where that is not allowed, it has the priority that it has
    }
    this.#process.unref();
  }

  get isAlive(): boolean {
    return this.#process.pid !== undefined && this.#process.exitCode === null && this.#process.signalCode === null;
  }

  /** Once only. @throws ConversionRefused; the signal's reason */
  async convert(
    content: Blob,
    asked: ConversionAsked,
    { limits, signal }: { readonly limits: ChildLimits; readonly signal: AbortSignal },
  ): Promise<TypedDocument> {
    this.#process.ref();
    const failure = Promise.withResolvers<never>();
    failure.promise.catch(() => {});
    const left = () => failure.reject(signal.reason as Error);
    signal.addEventListener('abort', left);
    const stopWatching = this.#watchMemory(limits.bytes, () => failure.reject(tooMuch(`it needs more than ${limits.bytes} bytes of memory`)));
    const deadline = new Deadline(this.#clock, limits, () => failure.reject(tooMuch('it takes too long')));
    try {
      signal.throwIfAborted();
      this.#give(content, asked).catch((error: unknown) => failure.reject(error as Error));
      return await Promise.race([this.#answer(() => deadline.extend()), failure.promise]);
    } finally {
      signal.removeEventListener('abort', left);
      stopWatching();
      deadline.stop();
      this.kill();
      await this.#ended;
    }
  }

  kill(): void {
    this.#process.kill('SIGKILL');
    this.#process.stdin.destroy();
    this.#process.stdout.destroy();
  }

  async #give(content: Blob, asked: ConversionAsked): Promise<void> {
    const { stdin } = this.#process;
    stdin.write(`${JSON.stringify(asked)}\n`);
    for await (const piece of content.stream()) {
      if (stdin.destroyed) return;
      if (!stdin.write(piece)) await Promise.race([new Promise((resolve) => stdin.once('drain', resolve)), this.#ended]);
    }
    stdin.end();
  }

  async #answer(ocrBegins: () => void): Promise<TypedDocument> {
    const frames = new Frames();
    let head: Head | undefined;
    let places: TypedDocument['places'] = [];
    for await (const piece of this.#process.stdout as AsyncIterable<Buffer>) {
      for (const { kind, content } of frames.add(piece)) {
        if (kind === 'o') ocrBegins();
        else if (kind === 'h') head = JSON.parse(content.toString()) as Head;
        else if (kind === 'p') places = placesIn(content, head?.sheets ?? []);
        else if (kind === 'r') throw refusalIn(JSON.parse(content.toString()) as Refused);
        else if (kind === 't' && head) {
          const { sheets: _, ...rest } = head;
          return { ...rest, text: content.toString(), places };
        }
      }
    }
    await this.#ended;
    if (this.#process.pid === undefined) throw new ConversionRefused('busy', 'No process could be started for the file: send it again in a moment.');
    throw tooMuch('the process that read it ended');
  }

  /** From outside: the limits of V8 know nothing of buffers. */
  #watchMemory(most: number, over: () => void): () => void {
    let isOver = false;
    let stop = () => {};
    const look = async (): Promise<void> => {
      const resident = await residentBytes(this.#process.pid);
      if (isOver) return;
      if (resident > most) over();
      else stop = this.#clock.after(watchMilliseconds, () => void look());
    };
    void look();
    return () => {
      isOver = true;
      stop();
    };
  }
}

class Deadline {
  readonly #clock: Pick<Clock, 'after' | 'monotonic'>;
  readonly #limits: ChildLimits;
  readonly #over: () => void;
  #until: number;
  #stop = () => {};

  constructor(clock: Pick<Clock, 'after' | 'monotonic'>, limits: ChildLimits, over: () => void) {
    [this.#clock, this.#limits, this.#over] = [clock, limits, over];
    this.#until = clock.monotonic() + limits.seconds * 1000;
    this.#set();
  }

  extend(): void {
    this.#until += this.#limits.ocrSeconds * 1000;
    this.#set();
  }

  stop(): void {
    this.#stop();
  }

  #set(): void {
    this.#stop();
    this.#stop = this.#clock.after(Math.max(0, this.#until - this.#clock.monotonic()), this.#over);
  }
}

function refusalIn({ reason, message }: Refused): Error {
  if (isRefusalReason(reason)) return new ConversionRefused(reason, message);
  return new ConversionRefused('corrupt', 'The file is corrupt: it cannot be read.', new Error(message));
}

/** 0 where nobody can say. */
async function residentBytes(pid: number | undefined): Promise<number> {
  if (pid === undefined) return 0;
  if (process.platform !== 'linux') return residentByPs(pid);
  try {
    const statm = await readFile(`/proc/${pid}/statm`, 'latin1');
    return Number(statm.split(' ')[1] ?? 0) * pageBytes;
  } catch {
    return 0;
  }
}

function residentByPs(pid: number): Promise<number> {
  return new Promise((resolve) => {
    const ps = spawn('ps', ['-o', 'rss=', '-p', String(pid)], { stdio: ['ignore', 'pipe', 'ignore'] });
    let text = '';
    ps.stdout.on('data', (piece: Buffer) => (text += piece.toString()));
    ps.once('error', () => resolve(0));
    ps.once('close', () => resolve((Number(text.trim()) || 0) * 1024));
  });
}

/** The folder where a package really is: where packages are links, it is another one than that beside the code. */
function packagesOf(name: string): string {
  const path = realpathSync(createRequire(import.meta.url).resolve(name));
  return path.slice(0, path.lastIndexOf(`${sep}node_modules${sep}`) + sep.length + 'node_modules'.length);
}

let made: readonly string[] | undefined;

/** Reads code only: this folder, and the packages that stand beside or above it. OCR runs on a thread, and canvas is native. */
function argumentsOf(): readonly string[] {
  if (made) return made;
  const here = realpathSync(import.meta.dirname);
  const above: string[] = [];
  for (let folder = here; folder !== dirname(folder); folder = dirname(folder)) {
    for (const name of ['node_modules', 'package.json']) if (existsSync(join(folder, name))) above.push(join(folder, name), realpathSync(join(folder, name)));
  }
  const readable = [...new Set([here, ...above, packagesOf('officeparser')])].map((path) => `--allow-fs-read=${path}`);
  const worker = join(here, `conversion-worker${extname(import.meta.filename)}`);
  return (made = [
    '--permission',
    '--allow-worker',
    '--allow-addons',
    '--no-warnings',
    '--max-semi-space-size=8',
    `--max-old-space-size=${heapMegabytes}`,
    ...readable,
    worker,
  ]);
}
