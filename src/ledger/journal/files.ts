import type { Disk, DiskFile } from './disk.ts';
import { segmentPath } from './segments.ts';

/** A file of a journal, and its bytes in memory: records are made there, and what a sync loses can be written again. */
export interface Segment {
  readonly number: number;
  readonly file: DiskFile;
  readonly bytes: Buffer;
  /** Bytes of records made, of those written to the file, and of those that would survive a power cut. */
  used: number;
  written: number;
  synced: number;
}

/** The files of a journal that is being written. The next one is always ready, filled with zeros ahead, so that running calls can settle on a full disk. */
export interface Segments {
  /** The next file, with room for this many bytes. @returns undefined where the disk gives none */
  next(bytes: number): Segment | undefined;
  /** Is the next file ready? */
  readonly isReady: boolean;
  /** Closes a file that is full, and is synced or saved elsewhere. An empty one is removed. */
  leave(segment: Segment): void;
  /** Checks the room on the disk, and makes the next file if it is missing. */
  look(): Promise<void>;
  close(): Promise<void>;
}

export interface SegmentsDeps {
  readonly disk: Disk;
  /** The holder's folder: `data/journal/<holder>`. */
  readonly folder: string;
  /** Letters, digits, `-` and `_`; never used before by this holder. */
  readonly writer: string;
  /** With less room on the disk no call that spends is admitted; 0: no such limit. */
  readonly minFreeBytes: () => number;
  /** The length of a file, which is filled with zeros ahead. */
  readonly segmentBytes: number;
  readonly failed: (what: string, cause: unknown) => void;
  /** Called when the last problem is solved. */
  readonly mended: (what: string) => void;
}

const little = 'there is too little room on the disk';
const missing = 'no file can be made ready';
/** Buffers of closed files that are kept for files to come: a file gets one when records are made in it. */
const spareBuffers = 1;

/** A file in which no records are made yet. */
type MadeFile = Pick<Segment, 'number' | 'file'>;

export const openSegments = (deps: SegmentsDeps): Segments => new SegmentFiles(deps);

class SegmentFiles implements Segments {
  readonly #deps: SegmentsDeps;
  readonly #buffers: Buffer[] = [];
  #count = 0;
  #newest = -1;
  #spare: MadeFile | undefined;
  #making: Promise<void> | undefined;
  #isClosed = false;

  constructor(deps: SegmentsDeps) {
    this.#deps = deps;
  }

  get isReady(): boolean {
    return this.#spare !== undefined;
  }

  next(bytes: number): Segment | undefined {
    const spare = bytes <= this.#deps.segmentBytes ? this.#spare : undefined;
    let segment: Segment;
    try {
      const memory = this.#buffer(bytes);
      segment = { ...(spare ?? this.#create()), bytes: memory, used: 0, written: 0, synced: 0 };
    } catch (error) {
      this.#deps.failed(missing, error);
      return undefined;
    }
    if (spare) this.#spare = undefined;
    this.#newest = segment.number;
    if (this.#spare && this.#spare.number < this.#newest) {
      void this.#discard(this.#spare);
      this.#spare = undefined;
    }
    if (!this.#isClosed) void this.look();
    return segment;
  }

  leave(segment: Segment): void {
    if (segment.bytes.length === this.#deps.segmentBytes && this.#buffers.length < spareBuffers) this.#buffers.push(segment.bytes);
    if (segment.written > 0) segment.file.close();
    else void this.#discard(segment);
  }

  look(): Promise<void> {
    return (this.#making ??= this.#make().finally(() => (this.#making = undefined)));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#making;
    const spare = this.#spare;
    this.#spare = undefined;
    if (spare) await this.#discard(spare);
  }

  #create(): MadeFile {
    const { disk, folder, writer } = this.#deps;
    const number = this.#count++;
    return { number, file: disk.create(segmentPath(folder, writer, number)) };
  }

  #buffer(bytes: number): Buffer {
    return (bytes === this.#deps.segmentBytes && this.#buffers.pop()) || Buffer.allocUnsafeSlow(bytes);
  }

  async #discard({ number, file }: MadeFile): Promise<void> {
    const { disk, folder, writer } = this.#deps;
    file.close();
    await disk.remove(segmentPath(folder, writer, number)).catch(() => {}); // an empty file that stays does no harm
  }

  async #isRoomy(): Promise<boolean> {
    const { disk, folder, minFreeBytes, failed, mended } = this.#deps;
    const least = minFreeBytes();
    const isRoomy = least === 0 || (await disk.free(folder)) >= least;
    if (isRoomy) mended(little);
    else failed(little, undefined);
    return isRoomy;
  }

  async #make(): Promise<void> {
    const { segmentBytes, failed, mended } = this.#deps;
    let made: MadeFile | undefined;
    try {
      if (!(await this.#isRoomy()) || this.#isClosed) return;
      if (this.#spare) return mended(missing);
      made = this.#create();
      await made.file.fill(segmentBytes);
      if (made.number < this.#newest) {
        await this.#discard(made); // overtaken meanwhile, and numbers are used in order
        return await this.#make();
      }
      this.#spare = made;
      mended(missing);
    } catch (error) {
      failed(missing, error);
      if (made) await this.#discard(made);
    }
  }
}
