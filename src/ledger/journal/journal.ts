import type { Clock } from '#kit/async/clock';
import { Fault } from '#core/fault';
import type { UsageRow } from '#core/usage-row';
import type { Disk } from './disk.ts';
import { beganJson, callOf, recordBytes, recordAt, settledJson, spokeJson, writeRecord, type Began, type RecordKind } from './record.ts';
import { openSegments, type Segment } from './files.ts';

/** What the ledger writes down of calls when it happens, before anybody is told. */
export interface CallJournal {
  /** A call may spend from now on. @throws Fault `overloaded` with nothing written: it must not go on */
  began(call: Began): void;
  /** Output tokens said so far, for the case that we die before the end. */
  spoke(requestId: string, step: number, outputTokens: number): void;
  /** A call is over. Where no disk takes it, it is held in memory until one does. */
  settled(row: UsageRow): void;
  /** Why no call that spends may begin: too little room, or a disk that did not do as it was told. Goes away by itself. */
  readonly trouble: Fault | undefined;
}

/** What a process did that the database does not know yet. Survives a kill at once, a power cut within 50 ms. */
export interface Journal extends CallJournal {
  readonly writer: string;
  /** Rows settled since the start. */
  readonly rows: number;
  /** Makes all that was written last. Nothing may be written any more. */
  close(): Promise<void>;
}

export interface JournalDeps {
  readonly disk: Disk;
  readonly clock: Clock;
  /** The holder's: `data/journal/<holder>`. */
  readonly folder: string;
  /** Letters, digits, `-` and `_`; never used before by this holder. */
  readonly writer: string;
  /** With less room no call that spends is admitted; 0: no matter. */
  readonly minFreeBytes: () => number;
  readonly log: (problem: string, cause: unknown) => void;
  /** Told when what was a problem is none any more. */
  readonly mended: (what: string) => void;
  /** How long a file becomes, written ahead with zeros. */
  readonly segmentBytes?: number;
}

const usualSegmentBytes = 4_194_304;
const syncMilliseconds = 50;
const lookMilliseconds = 1000;
const retryAfterSeconds = 5;
/** A call that runs for longer than so many files is written down again, so that its first file can go. */
const carriedAfter = 8;
/** Of a new file, this part at most is for them. */
const carriedShare = 4;
const tries = 3;

/** A call that began and has not settled: what is on the disk of it, and where. */
interface Running {
  readonly json: string;
  spoken: number;
  readonly segment: number;
}

type Write = (into: Buffer, at: number) => number | undefined;

/** Opens the journal of a process for writing. It does not fail: a disk that cannot be written to is trouble, which goes away. */
export async function openJournal(parts: JournalDeps): Promise<Journal> {
  const { clock, segmentBytes = usualSegmentBytes } = parts;
  const problems = new Map<string, unknown>();
  const running = new Map<string, Running>();
  /** What no disk has taken, in order. */
  const held: { readonly write: Write; readonly bytes: number }[] = [];
  /** Files with bytes that would not survive a power cut, oldest first. */
  let unsynced: Segment[] = [];
  let current: Segment | undefined;
  let syncing: Promise<void> | undefined;
  let armed = false;
  let closed = false;
  let rows = 0;
  let carriedTo = 0;

  const failed = (what: string, cause: unknown) => {
    if (problems.size === 0) parts.log(`The journal is in trouble, no call that spends is admitted: ${what}.`, cause);
    problems.set(what, cause);
  };
  const mended = (what: string) => {
    if (problems.delete(what) && problems.size === 0) parts.mended('The journal is well again.');
  };
  const isWell = () => problems.size === 0 && held.length === 0 && !closed;
  const trouble = () => {
    const [[what, cause] = ['records wait', undefined]] = problems;
    return new Fault('overloaded', 'The books cannot be written right now.', { retryAfter: retryAfterSeconds, cause: cause ?? what });
  };
  const segments = openSegments({ ...parts, segmentBytes, failed, mended });

  /** Puts a record into the file, or the next one. @returns false where no disk takes it */
  const put = (write: Write, bytes: number): boolean => {
    for (let tried = 0; tried < tries; tried++) {
      if (!current && !advance(bytes)) return false;
      const segment = current!;
      const end = write(segment.bytes, segment.used);
      if (end === undefined) {
        retire();
        continue;
      }
      try {
        segment.file.write(segment.bytes, segment.used, end);
      } catch (error) {
        failed('a write failed', error);
        retire();
        continue;
      }
      segment.used = end;
      if (unsynced.at(-1) !== segment) unsynced.push(segment);
      arm(syncMilliseconds);
      if (carriedTo < segment.number) carry(segment.number);
      return true;
    }
    return false;
  };
  const record = (kind: RecordKind, json: string) => put((into, at) => writeRecord(into, at, kind, json), recordBytes(json));
  const recordOrHold = (kind: RecordKind, json: string) => {
    if (held.length === 0 && record(kind, json)) return;
    held.push({ write: (into, at) => writeRecord(into, at, kind, json), bytes: recordBytes(json) });
  };

  const advance = (bytes: number): boolean => {
    current = segments.next(Math.max(bytes, segmentBytes));
    return current !== undefined;
  };
  const retire = () => {
    if (current && !unsynced.includes(current)) segments.leave(current);
    current = undefined;
  };
  /** Calls that began long ago are written down again, the oldest first: a file goes when nothing in it is running. */
  const carry = (segment: number) => {
    carriedTo = segment;
    let bytes = 0;
    for (const [name, call] of running) {
      if (call.segment > segment - carriedAfter || bytes > segmentBytes / carriedShare) return;
      bytes += recordBytes(call.json);
      running.delete(name);
      running.set(name, { ...call, segment });
      record('began', call.json);
      if (call.spoken > 0) record('spoke', `${callOf(Buffer.from(call.json))},"outputTokens":${call.spoken}}`);
    }
  };

  const arm = (milliseconds: number) => {
    if (armed || closed) return;
    armed = true;
    clock.after(milliseconds, () => {
      armed = false;
      void syncOnce();
    });
  };
  const syncOnce = () => (syncing ??= sync().finally(() => (syncing = undefined)));
  const sync = async () => {
    for (const segment of unsynced.slice()) {
      const upTo = segment.used;
      try {
        await segment.file.sync();
      } catch (error) {
        failed('a sync failed', error);
        rescue();
        arm(lookMilliseconds);
        return;
      }
      segment.synced = upTo;
      if (segment.used > upTo) continue;
      unsynced = unsynced.filter((one) => one !== segment);
      if (segment !== current) segments.leave(segment);
    }
    mended('a sync failed');
    if (unsynced.length > 0) arm(syncMilliseconds);
  };
  /** After a failed sync nobody knows what the disk has, and a later one would lie: all that was not synced is written again, elsewhere. */
  const rescue = () => {
    const lost = unsynced;
    unsynced = [];
    current = undefined;
    for (const segment of lost) {
      for (let at = segment.synced; at < segment.used;) {
        const { from, to } = recordAt(segment.bytes, at)!;
        const line = Buffer.from(segment.bytes.subarray(from, to));
        const write: Write = (into, at) => (at + line.length > into.length ? undefined : at + line.copy(into, at));
        if (held.length > 0 || !put(write, line.length)) held.push({ write, bytes: line.length });
        at = to;
      }
      segments.leave(segment);
    }
  };

  /** Writes what waits in memory. */
  const unhold = () => {
    while (held[0] && put(held[0].write, held[0].bytes)) held.shift();
    if (held.length === 0 && segments.isReady) mended('a write failed');
  };
  const look = async () => {
    await segments.look();
    unhold();
    if (!closed) cancelLook = clock.after(lookMilliseconds, () => void look());
  };
  let cancelLook: () => void = () => {};
  await look();
  advance(segmentBytes);
  await segments.look();

  return {
    writer: parts.writer,
    get trouble() {
      return isWell() ? undefined : trouble();
    },
    get rows() {
      return rows;
    },
    began(call) {
      const json = beganJson(call);
      if (!isWell() || !record('began', json)) throw trouble();
      running.set(nameOf(call.requestId, call.step), { json, spoken: 0, segment: current!.number });
    },
    spoke(requestId, step, outputTokens) {
      const call = running.get(nameOf(requestId, step));
      if (!call || closed) return;
      call.spoken = outputTokens;
      if (held.length === 0) record('spoke', spokeJson(requestId, step, outputTokens));
    },
    settled(row) {
      running.delete(nameOf(row.requestId, row.step));
      if (closed) return parts.log(`Request ${row.requestId} settled after its journal was closed: the next start books it.`, undefined);
      rows++;
      recordOrHold('settled', settledJson(row));
    },
    async close() {
      cancelLook();
      for (let tried = 0; tried < tries && (held.length > 0 || unsynced.length > 0); tried++) {
        unhold();
        await syncOnce();
        while (unsynced.length > 0 && !problems.has('a sync failed')) await syncOnce();
      }
      closed = true;
      if (held.length > 0) parts.log(`${held.length} records of the journal are lost.`, undefined);
      retire();
      for (const segment of unsynced) segments.leave(segment);
      await segments.close();
    },
  };
}

/** Of a running call. Nearly all are a first step: a text that is put together for each is dearer to look up than one that is there already. */
const nameOf = (requestId: string, step: number) => (step === 0 ? requestId : `${requestId} ${step}`);
