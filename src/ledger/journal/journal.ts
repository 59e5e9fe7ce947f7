import type { Clock } from '#kit/async/clock';
import { OpenMap } from '#kit/async/open-map';
import { atTurnEnd as usualTurnEnd } from '#kit/async/turn-end';
import type { Fault } from '#core/fault';
import type { UsageRow } from '#core/usage-row';
import { openSegments, type SegmentsDeps } from './files.ts';
import { JournalTrouble } from './journal-trouble.ts';
import { RecentRows } from './recent-rows.ts';
import { beganJson, callOf, recordBytes, settledJson, spokeJson, type Began } from './record.ts';
import { SegmentWriter } from './segment-writer.ts';

/** What the ledger writes down of calls as it happens, before the client gets the end. */
export interface CallJournal {
  /**
   * A call may spend as soon as this is written.
   * @param open where its meter will be
   * @returns resolves then; rejects with `overloaded` where no disk takes it: the call must not go on
   * @throws Fault `overloaded` where that is known at once
   */
  began(call: Began, open?: OpenCall): Promise<void>;
  /** Output tokens of the answer so far, in case this process dies before the end. */
  spoke(requestId: string, step: number, outputTokens: number): void;
  /** A call is over. Where no disk takes it, it is held in memory until one does. @returns resolves when it is written or held: the client is told the end then */
  settled(row: UsageRow): Promise<void>;
  /** Why no call that spends may begin: too little room on the disk, or a disk that failed. Goes away by itself. */
  readonly trouble: Fault | undefined;
}

/** Calls that are written at once when all are settled. */
const flushedCalls = 50;

/** A call that runs, as far as `settleAll` needs it. Its meter comes when it has begun. */
export interface OpenCall {
  meter?: { settle(): unknown };
}

/**
 * What a process has done that the database does not know yet. The records of one turn of the event loop are written together, at its end. What is written
 * survives a kill at once, and a power cut after 50 ms.
 */
export interface Journal extends CallJournal {
  readonly writer: string;
  /** Rows settled since the start. */
  readonly rows: number;
  /** The rows that were written last, for those who ship them. */
  readonly recent: RecentRows;
  /** The oldest file that knows of a call which is running. */
  readonly oldest: number;
  /** The place behind the last record, written or about to be. */
  readonly place: number;
  /** Settles the calls that run by what they have said, and writes it before it returns: this process ends at once. */
  settleAll(): void;
  /** Syncs all that was written. Nothing may be written after it. */
  close(): Promise<void>;
}

export interface JournalDeps extends Omit<SegmentsDeps, 'failed' | 'segmentBytes'>, Partial<Pick<SegmentsDeps, 'segmentBytes'>> {
  readonly clock: Clock;
  readonly log: (problem: string, cause: unknown) => void;
  /** Runs at the end of this turn of the event loop. Absent: as Node does it, after all that has arrived was looked at. */
  readonly atTurnEnd?: (run: () => void) => void;
}

const usualSegmentBytes = 4_194_304;
const lookMilliseconds = 1000;
/** A call that runs for longer than this many files is written down again, so that its first file can go. */
const carriedAfter = 8;
/** Calls that are written down again take at most this part of a new file. */
const carriedShare = 4;

/** A call that began and has not settled: its record, and the file that has it. */
interface Running {
  readonly json: string;
  readonly open: OpenCall;
  spoken: number;
  readonly segment: number;
}

/** Opens the journal of a process for writing. It does not fail: a disk that cannot be written to is trouble, which goes away. */
export async function openJournal(deps: JournalDeps): Promise<Journal> {
  const { clock, log, segmentBytes = usualSegmentBytes, atTurnEnd = usualTurnEnd } = deps;
  const running = new OpenMap<Running>();
  const recent = new RecentRows();
  let rows = 0;

  const trouble = new JournalTrouble(deps);
  const segments = openSegments({ ...deps, segmentBytes, failed: (what, cause) => trouble.failed(what, cause), mended: (what) => trouble.mended(what) });
  const writer = new SegmentWriter({
    segments,
    segmentBytes,
    trouble,
    clock,
    atTurnEnd,
    advanced: (segment) => carry(running, writer, segment, segmentBytes / carriedShare),
    refused: (requestId, step) => void running.delete(nameOf(requestId, step)),
    recent,
  });
  const isWell = () => !trouble.isAny && writer.held === 0 && !writer.isClosed;

  /** Watches the room on the disk, and tries again to write what is held in memory. */
  const look = async () => {
    await segments.look();
    writer.unhold();
    if (!writer.isClosed) cancelLook = clock.after(lookMilliseconds, () => void look());
  };
  let cancelLook: () => void = () => {};
  await look();
  writer.advance(segmentBytes);
  await segments.look();

  return {
    writer: deps.writer,
    get trouble() {
      return isWell() ? undefined : trouble.fault;
    },
    get rows() {
      return rows;
    },
    recent,
    get oldest() {
      if (writer.held > 0) return 0; // a call whose end is only in memory may be in any file
      return running.oldest?.value.segment ?? Infinity;
    },
    get place() {
      return writer.place;
    },
    began(call, open = {}) {
      if (!isWell()) throw trouble.fault;
      const json = beganJson(call);
      const written = writer.began(json);
      running.set(nameOf(call.requestId, call.step), { json, open, spoken: 0, segment: writer.segment.number });
      return written;
    },
    spoke(requestId, step, outputTokens) {
      const call = running.get(nameOf(requestId, step));
      if (!call || writer.isClosed) return;
      call.spoken = outputTokens;
      writer.spoke(spokeJson(requestId, step, outputTokens));
    },
    settled(row) {
      running.delete(nameOf(row.requestId, row.step));
      if (writer.isClosed) {
        log(`Request ${row.requestId} settled after its journal was closed: the next start books it.`, undefined);
        return Promise.resolve();
      }
      rows++;
      return writer.settled(settledJson(row));
    },
    settleAll: () => settleRunning(running, writer),
    async close() {
      cancelLook();
      const lost = await writer.close();
      if (lost > 0) log(`${lost} records of the journal are lost.`, undefined);
      await segments.close();
    },
  };
}

/** Settles all calls that run. What some cost is written before the others are looked at: who ends this process may not wait for the last one. */
function settleRunning(running: OpenMap<Running>, writer: SegmentWriter): void {
  let settled = 0;
  try {
    for (const { open } of running.values()) {
      void open.meter?.settle();
      if (++settled % flushedCalls === 0) writer.flush();
    }
  } finally {
    writer.flush();
  }
}

/** Writes calls that began long ago down again, the oldest first: a file can go when no call in it runs. @param most bytes */
function carry(running: OpenMap<Running>, writer: SegmentWriter, segment: number, most: number): void {
  let bytes = 0;
  for (let first = running.oldest; first && first.value.segment <= segment - carriedAfter && bytes <= most; first = running.oldest) {
    const { name, value: call } = first;
    bytes += recordBytes(call.json);
    if (!writer.again('began', call.json)) return;
    running.set(name, { ...call, segment: writer.segment.number }); // where a write failed, that is a later file
    if (call.spoken > 0) writer.again('spoke', `${callOf(Buffer.from(call.json))},"outputTokens":${call.spoken}}`);
  }
}

/** The name of a running call. Nearly all calls are a first step: for those no string is made. */
const nameOf = (requestId: string, step: number) => (step === 0 ? requestId : `${requestId} ${step}`);
