import type { Clock } from '#kit/async/clock';
import type { Segment, Segments } from './files.ts';
import type { JournalTrouble } from './journal-trouble.ts';
import { recordAt, recordBytes, writeRecord, type RecordKind } from './record.ts';

export interface SegmentWriterDeps {
  readonly segments: Segments;
  /** The length of a file. */
  readonly segmentBytes: number;
  readonly trouble: JournalTrouble;
  readonly clock: Clock;
  /** Called after the first record in each further file. */
  readonly advanced: (segment: number) => void;
}

const syncMilliseconds = 50;
/** Milliseconds until the next try after a failed sync. */
const retryMilliseconds = 1000;
/** Files that are tried for one record, and rounds of syncing at the end. */
const tries = 3;

/** Copies a record into a file's bytes. @returns where it ends; undefined: there is no room for it */
type Write = (into: Buffer, at: number) => number | undefined;

/**
 * Writes records into the files of a journal, one file after the other, and syncs them within `syncMilliseconds`. A record that no disk takes is held in memory
 * until one does; what a failed sync may have lost is written again.
 */
export class SegmentWriter {
  readonly #deps: SegmentWriterDeps;
  /** Records that no disk has taken, in order. */
  readonly #held: { readonly write: Write; readonly bytes: number }[] = [];
  /** Files with bytes that would not survive a power cut, oldest first. */
  #unsynced: Segment[] = [];
  #current: Segment | undefined;
  #reached = 0;
  #syncing: Promise<void> | undefined;
  #isArmed = false;
  /** Nothing is written any more. */
  isClosed = false;

  constructor(deps: SegmentWriterDeps) {
    this.#deps = deps;
  }

  /** Records held in memory. */
  get held(): number {
    return this.#held.length;
  }

  /** The number of the file that the last record went into. */
  get segment(): number {
    return this.#current!.number;
  }

  /** @returns false where no disk takes the record */
  record(kind: RecordKind, json: string): boolean {
    return this.#put((into, at) => writeRecord(into, at, kind, json), recordBytes(json));
  }

  /** As `record`; what no disk takes is held. Records keep their order. */
  recordOrHold(kind: RecordKind, json: string): void {
    if (this.#held.length === 0 && this.record(kind, json)) return;
    this.#held.push({ write: (into, at) => writeRecord(into, at, kind, json), bytes: recordBytes(json) });
  }

  /** Tries the held records again. */
  unhold(): void {
    const held = this.#held;
    while (held[0] && this.#put(held[0].write, held[0].bytes)) held.shift();
    if (held.length === 0 && this.#deps.segments.isReady) this.#deps.trouble.mended('a write failed');
  }

  /** Goes to a file that has room for so many bytes. @returns false where no disk gives one */
  advance(bytes: number): boolean {
    this.#current = this.#deps.segments.next(Math.max(bytes, this.#deps.segmentBytes));
    return this.#current !== undefined;
  }

  /** Writes and syncs what is left, and closes the files. @returns records that are lost */
  async close(): Promise<number> {
    const { segments, trouble } = this.#deps;
    for (let tried = 0; tried < tries && (this.#held.length > 0 || this.#unsynced.length > 0); tried++) {
      this.unhold();
      await this.#syncOnce();
      while (this.#unsynced.length > 0 && !trouble.has('a sync failed')) await this.#syncOnce();
    }
    this.isClosed = true;
    this.#retire();
    for (const segment of this.#unsynced) segments.leave(segment);
    return this.#held.length;
  }

  #put(write: Write, bytes: number): boolean {
    for (let tried = 0; tried < tries; tried++) {
      if (!this.#current && !this.advance(bytes)) return false;
      const segment = this.#current!;
      const end = write(segment.bytes, segment.used);
      if (end === undefined) {
        this.#retire();
        continue;
      }
      try {
        segment.file.write(segment.bytes, segment.used, end);
      } catch (error) {
        this.#deps.trouble.failed('a write failed', error);
        this.#retire();
        continue;
      }
      segment.used = end;
      if (this.#unsynced.at(-1) !== segment) this.#unsynced.push(segment);
      this.#arm(syncMilliseconds);
      if (this.#reached < segment.number) {
        this.#reached = segment.number;
        this.#deps.advanced(segment.number);
      }
      return true;
    }
    return false;
  }

  #retire(): void {
    if (this.#current && !this.#unsynced.includes(this.#current)) this.#deps.segments.leave(this.#current);
    this.#current = undefined;
  }

  #arm(milliseconds: number): void {
    if (this.#isArmed || this.isClosed) return;
    this.#isArmed = true;
    this.#deps.clock.after(milliseconds, () => {
      this.#isArmed = false;
      void this.#syncOnce();
    });
  }

  #syncOnce(): Promise<void> {
    return (this.#syncing ??= this.#sync().finally(() => (this.#syncing = undefined)));
  }

  async #sync(): Promise<void> {
    const { segments, trouble } = this.#deps;
    for (const segment of this.#unsynced.slice()) {
      const upTo = segment.used;
      try {
        await segment.file.sync();
      } catch (error) {
        trouble.failed('a sync failed', error);
        this.#rescue();
        this.#arm(retryMilliseconds);
        return;
      }
      segment.synced = upTo;
      if (segment.used > upTo) continue;
      this.#unsynced = this.#unsynced.filter((one) => one !== segment);
      if (segment !== this.#current) segments.leave(segment);
    }
    trouble.mended('a sync failed');
    if (this.#unsynced.length > 0) this.#arm(syncMilliseconds);
  }

  /** After a failed sync it is not known what the disk has, and a later sync would report success all the same: what was not synced is written again, elsewhere. */
  #rescue(): void {
    const lost = this.#unsynced;
    this.#unsynced = [];
    this.#current = undefined;
    for (const segment of lost) {
      for (let at = segment.synced; at < segment.used;) {
        const { from, to } = recordAt(segment.bytes, at)!;
        const line = Buffer.from(segment.bytes.subarray(from, to));
        const write: Write = (into, at) => (at + line.length > into.length ? undefined : at + line.copy(into, at));
        if (this.#held.length > 0 || !this.#put(write, line.length)) this.#held.push({ write, bytes: line.length });
        at = to;
      }
      this.#deps.segments.leave(segment);
    }
  }
}
