import type { Disk, DiskFile } from './disk.ts';
import { segmentPath } from './segments.ts';

/** A file being written, and its bytes in memory: records are made there, and what a sync loses can be written again. */
export interface Segment {
  readonly number: number;
  readonly file: DiskFile;
  readonly bytes: Buffer;
  /** Bytes written, and bytes that would survive a power cut. */
  used: number;
  synced: number;
}

/** The files of a journal in the making: one is always ready, written ahead with zeros, so that what runs can settle on a full disk. */
export interface Segments {
  /** The next file, with room for so many bytes. `undefined`: the disk gives none */
  next(bytes: number): Segment | undefined;
  /** Is one ready? */
  readonly isReady: boolean;
  /** Nothing is written to it any more, and all of it is synced or saved elsewhere. An empty one is removed. */
  leave(segment: Segment): void;
  /** Looks at the room on the disk, and makes the next file if it is missing. */
  look(): Promise<void>;
  close(): Promise<void>;
}

export interface SegmentsDeps {
  readonly disk: Disk;
  readonly folder: string;
  readonly writer: string;
  readonly minFreeBytes: () => number;
  readonly segmentBytes: number;
  readonly failed: (what: string, cause: unknown) => void;
  readonly mended: (what: string) => void;
}

const little = 'there is too little room on the disk';
const missing = 'no file can be made ready';
/** Buffers of files that were left, for files to come. */
const spareBuffers = 2;

export function openSegments({ disk, folder, writer, minFreeBytes, segmentBytes, failed, mended }: SegmentsDeps): Segments {
  const buffers: Buffer[] = [];
  let count = 0;
  let newest = -1;
  let spare: Segment | undefined;
  let making: Promise<void> | undefined;
  let closed = false;

  const create = (bytes: number): Segment => {
    const number = count++;
    const file = disk.create(segmentPath(folder, writer, number));
    return {
      number,
      file,
      bytes: bytes === segmentBytes ? (buffers.pop() ?? Buffer.allocUnsafeSlow(bytes)) : Buffer.allocUnsafeSlow(bytes),
      used: 0,
      synced: 0,
    };
  };
  const release = (segment: Segment) => {
    segment.file.close();
    if (segment.bytes.length === segmentBytes && buffers.length < spareBuffers) buffers.push(segment.bytes);
  };
  const discard = async (segment: Segment) => {
    release(segment);
    await disk.remove(segmentPath(folder, writer, segment.number)).catch(() => {}); // empty: it harms nobody
  };
  const roomy = async (): Promise<boolean> => {
    const least = minFreeBytes();
    const isRoomy = least === 0 || (await disk.free(folder)) >= least;
    if (isRoomy) mended(little);
    else failed(little, undefined);
    return isRoomy;
  };
  const make = async () => {
    let made: Segment | undefined;
    try {
      if (!(await roomy()) || closed) return;
      if (spare) return mended(missing);
      made = create(segmentBytes);
      await made.file.fill(segmentBytes);
      if (made.number < newest) {
        await discard(made); // overtaken meanwhile, and numbers are used in order
        return await make();
      }
      spare = made;
      mended(missing);
    } catch (error) {
      failed(missing, error);
      if (made) await discard(made);
    }
  };
  const makeOnce = () => (making ??= make().finally(() => (making = undefined)));

  return {
    leave: (segment) => (segment.used > 0 ? release(segment) : void discard(segment)),
    get isReady() {
      return spare !== undefined;
    },
    next(bytes) {
      let segment = spare && spare.bytes.length >= bytes ? spare : undefined;
      if (segment) spare = undefined;
      try {
        segment ??= create(bytes);
      } catch (error) {
        failed(missing, error);
        return undefined;
      }
      newest = segment.number;
      if (spare && spare.number < newest) {
        void discard(spare);
        spare = undefined;
      }
      if (!closed) void makeOnce();
      return segment;
    },
    look: makeOnce,
    async close() {
      closed = true;
      await making;
      if (spare) await discard(spare);
    },
  };
}
