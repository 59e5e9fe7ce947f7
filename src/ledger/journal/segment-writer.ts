import type { Clock } from '#kit/async/clock';
import type { Segment, Segments } from './files.ts';
import type { JournalTrouble } from './journal-trouble.ts';
import type { RecentRows } from './recent-rows.ts';
import { placeOf } from './segments.ts';
import { callOf, jsonIn, recordAt, recordBytes, recordLine, writeRecord, type FoundRecord, type RecordKind } from './record.ts';

export interface SegmentWriterDeps {
  readonly segments: Segments;
  /** The length of a file. */
  readonly segmentBytes: number;
  readonly trouble: JournalTrouble;
  readonly clock: Clock;
  /** Runs at the end of this turn of the event loop. */
  readonly atTurnEnd: (run: () => void) => void;
  /** Called after the first record in each further file. */
  readonly advanced: (segment: number) => void;
  /** A call that was told that it may not begin after all. */
  readonly refused: (requestId: string, step: number) => void;
  /** The rows that are written in their order; lost where they are not. */
  readonly recent: Pick<RecentRows, 'add' | 'written' | 'lose'>;
}

const syncMilliseconds = 50;
/** Milliseconds until the next try after a failed sync. */
const retryMilliseconds = 1000;
/** Files that are tried for one write, and rounds of syncing at the end. */
const tries = 3;

/**
 * Writes records into the files of a journal, one file after the other, and syncs them within `syncMilliseconds`. The records of one turn of the event loop are
 * one write, at its end: who needs to know that a record is written waits for it. What no disk takes is held in memory until one does; what a failed sync may
 * have lost is written again.
 */
export class SegmentWriter {
  readonly #deps: SegmentWriterDeps;
  /** Lines of records that no disk has taken, in order. */
  readonly #held: Buffer[] = [];
  /** Files with bytes that would not survive a power cut, oldest first. */
  #unsynced: Segment[] = [];
  #current: Segment | undefined;
  /** For those who wait for the end of the turn. */
  #admitted: PromiseWithResolvers<void> | undefined;
  #booked: PromiseWithResolvers<void> | undefined;
  #isDue = false;
  #reached = 0;
  #syncing: Promise<void> | undefined;
  #isArmed = false;
  /** The place behind the last record that is written. */
  #place = 0;
  /** Where the last record that was added begins in its file. */
  #last = 0;
  /** Nothing is written any more. */
  isClosed = false;

  constructor(deps: SegmentWriterDeps) {
    this.#deps = deps;
  }

  get held(): number {
    return this.#held.length;
  }

  /** The place behind the last record, written or about to be. */
  get place(): number {
    const segment = this.#current;
    return segment && segment.used > segment.written ? placeOf(segment.number, segment.used) : this.#place;
  }

  /** The file that the last record went into. */
  get segment(): Segment {
    return this.#current!;
  }

  /**
   * Writes down that a call begins.
   * @returns resolves when it is written; rejects with `overloaded` where no disk takes it
   * @throws Fault `overloaded` where that is known at once
   */
  began(json: string): Promise<void> {
    if (!this.#add('began', json)) throw this.#deps.trouble.fault;
    if (!this.#admitted) {
      this.#admitted = Promise.withResolvers();
      this.#admitted.promise.catch(() => {}); // a call that has ended meanwhile does not wait for it
    }
    const { promise } = this.#admitted;
    this.#due();
    return promise;
  }

  /** Writes down what may be lost. */
  spoke(json: string): void {
    if (this.#held.length === 0 && this.#add('spoke', json)) this.#due();
  }

  /** Writes down the end of a call. @returns resolves when it is written, or held */
  settled(json: string): Promise<void> {
    if (this.#held.length > 0 || !this.#add('settled', json)) {
      this.#hold(recordLine('settled', json));
      return Promise.resolve();
    }
    const { number, bytes, used } = this.segment;
    this.#deps.recent.add(jsonIn(bytes, this.#last, used), placeOf(number, used));
    const { promise } = (this.#booked ??= Promise.withResolvers());
    this.#due();
    return promise;
  }

  /** Writes a record at once. @returns false where no disk takes it */
  again(kind: RecordKind, json: string): boolean {
    return this.#held.length === 0 && this.#put(recordLine(kind, json));
  }

  /** Tries the held records again. */
  unhold(): void {
    const held = this.#held;
    while (held[0] && this.#put(held[0])) {
      held.shift();
      this.#deps.recent.lose();
    }
    if (held.length === 0 && this.#deps.segments.isReady) this.#deps.trouble.mended('a write failed');
  }

  /** Goes to a file that has room for this many bytes. @returns false where no disk gives one */
  advance(bytes: number): boolean {
    this.#current = this.#deps.segments.next(Math.max(bytes, this.#deps.segmentBytes));
    return this.#current !== undefined;
  }

  /** Writes and syncs what is left, and closes the files. @returns records that are lost */
  async close(): Promise<number> {
    const { segments, trouble } = this.#deps;
    for (let tried = 0; tried < tries; tried++) {
      this.flush();
      if (this.#held.length === 0 && this.#unsynced.length === 0) break;
      this.unhold();
      await this.#syncOnce();
      while (this.#unsynced.length > 0 && !trouble.has('a sync failed')) await this.#syncOnce();
    }
    this.isClosed = true; // nothing is added any more
    this.flush();
    if (this.#unsynced.length > 0) await this.#syncOnce();
    this.#retire();
    for (const segment of this.#unsynced.splice(0)) segments.leave(segment);
    return this.#held.length;
  }

  /** Adds a record to those of this turn. @returns false where there is no file with room for it */
  #add(kind: RecordKind, json: string): boolean {
    for (let tried = 0; tried < tries; tried++) {
      if (!this.#current && !this.advance(recordBytes(json))) return false;
      const segment = this.#current!;
      const end = writeRecord(segment.bytes, segment.used, kind, json);
      if (end !== undefined) {
        this.#last = segment.used;
        segment.used = end;
        return true;
      }
      this.flush();
      if (this.#current === segment) this.#retire();
    }
    return false;
  }

  #due(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#deps.atTurnEnd(() => {
      this.#isDue = false;
      this.flush();
    });
  }

  /** Writes the records of this turn so far, and tells those who wait for them. */
  flush(): void {
    const [admitted, booked, segment] = [this.#admitted, this.#booked, this.#current];
    this.#admitted = this.#booked = undefined;
    if (segment && segment.used > segment.written && !this.#isWritten(segment)) {
      const lines = Buffer.from(segment.bytes.subarray(segment.written, segment.used));
      segment.used = segment.written;
      this.#deps.recent.lose();
      this.#retire();
      if (!this.#put(lines)) {
        this.#giveUp(lines);
        admitted?.reject(this.#deps.trouble.fault);
      }
    }
    this.#deps.recent.written();
    admitted?.resolve();
    booked?.resolve();
  }

  /** Writes what a file's bytes have and the file has not. */
  #isWritten(segment: Segment): boolean {
    try {
      segment.file.write(segment.bytes, segment.written, segment.used);
    } catch (error) {
      this.#deps.trouble.failed('a write failed', error);
      return false;
    }
    segment.written = segment.used;
    this.#place = placeOf(segment.number, segment.written);
    if (this.#unsynced.at(-1) !== segment) this.#unsynced.push(segment);
    this.#arm(syncMilliseconds);
    if (this.#reached < segment.number) {
      this.#reached = segment.number;
      this.#deps.advanced(segment.number);
    }
    return true;
  }

  /** No disk takes the records of a turn: calls that were about to begin do not, and what calls have cost is held. A part of them may be written all the same. */
  #giveUp(lines: Buffer): void {
    const settled = new Set<string>();
    const began = new Set<string>();
    for (const { kind, json, from, to } of recordsIn(lines)) {
      if (kind === 'began') began.add(callOf(json));
      if (kind !== 'settled') continue;
      settled.add(callOf(json));
      this.#hold(lines.subarray(from, to));
    }
    for (const call of began.difference(settled)) {
      const json = `${call}}`;
      const { requestId, step } = JSON.parse(json) as { requestId: string; step: number };
      this.#deps.refused(requestId, step);
      this.#hold(recordLine('refused', json));
    }
  }

  #hold(line: Buffer): void {
    this.#held.push(line);
    this.#deps.recent.lose();
  }

  /** Writes lines at once, into the next file where one fails. @returns false where no disk takes them */
  #put(lines: Buffer): boolean {
    if (this.#current && this.#current.used > this.#current.written) this.flush();
    for (let tried = 0; tried < tries; tried++) {
      if (!this.#current && !this.advance(lines.length)) return false;
      const segment = this.#current!;
      if (segment.used + lines.length <= segment.bytes.length) {
        segment.used += lines.copy(segment.bytes, segment.used);
        if (this.#isWritten(segment)) return true;
        segment.used = segment.written;
      }
      this.#retire();
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
      const upTo = segment.written;
      try {
        await segment.file.sync();
      } catch (error) {
        trouble.failed('a sync failed', error);
        this.#rescue();
        this.#arm(retryMilliseconds);
        return;
      }
      segment.synced = upTo;
      if (segment.written > upTo) continue;
      this.#unsynced = this.#unsynced.filter((one) => one !== segment);
      if (segment !== this.#current) segments.leave(segment);
    }
    trouble.mended('a sync failed');
    if (this.#unsynced.length > 0) this.#arm(syncMilliseconds);
  }

  /** After a failed sync it is not known what the disk has, and a later sync would report success all the same: what was not synced is written again, elsewhere. */
  #rescue(): void {
    this.flush();
    const lost = this.#unsynced;
    this.#unsynced = [];
    this.#current = undefined;
    this.#deps.recent.lose();
    for (const segment of lost) {
      for (const { from, to } of recordsIn(segment.bytes.subarray(segment.synced, segment.written))) {
        const line = Buffer.from(segment.bytes.subarray(segment.synced + from, segment.synced + to));
        if (this.#held.length > 0 || !this.#put(line)) this.#hold(line);
      }
      this.#deps.segments.leave(segment);
    }
  }
}

/** The records of lines that were made here. */
function* recordsIn(lines: Buffer): Generator<FoundRecord> {
  for (let at = 0; at < lines.length;) {
    const record = recordAt(lines, at)!;
    yield record;
    at = record.to;
  }
}
