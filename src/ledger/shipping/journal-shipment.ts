import { Fault } from '#core/fault';
import type { SettledRow } from '#core/usage-row';
import type { UsageSink } from '#core/usage-sink';
import { ReusedBytes } from '#kit/memory/reused-bytes';
import { Bookings, type Booked } from '../journal/bookings.ts';
import type { Disk } from '../journal/disk.ts';
import type { Journal } from '../journal/journal.ts';
import type { RecentRow } from '../journal/recent-rows.ts';
import { placeOf, segmentOf, segmentPath } from '../journal/segments.ts';
import { Replay } from '../journal/replay.ts';
import { Tail, type Entry } from '../journal/tail.ts';

export interface JournalShipmentDeps {
  readonly sink: UsageSink;
  readonly disk: Disk;
  /** The folder of the holder's journals. */
  readonly folder: string;
  readonly holder: string;
  readonly writer: string;
  /** The file for rows that the database refuses. */
  readonly refused: string;
  /** Are settled amounts summed for `takeBooked`? */
  readonly counting: boolean;
  /** Are files removed when all in them is booked? */
  readonly removing: boolean;
  /** The journal itself, where this process writes it: its rows are shipped from memory, as long as they are there. */
  readonly memory?: Pick<Journal, 'recent' | 'oldest' | 'place'> | undefined;
  readonly log: (problem: string, cause: unknown) => void;
}

/** Bytes of records after which reading from files stops. */
const bytesAtOnce = 524_288;
/** Dead calls are shipped in batches of this size. */
const deathsAtOnce = 500;

export class JournalShipment {
  readonly #deps: JournalShipmentDeps;
  readonly #journal: string;
  readonly #bookings: Bookings | undefined;
  #tail: Tail;
  #replay: Replay;
  /** Rows are taken from the memory of the process that writes them, not from its files. */
  #isFromMemory: boolean;
  /** The oldest file that was needed when rows were last taken from memory: an end that came since may not be in a file yet. */
  #oldest = 0;
  /** With files read up to there, memory has the rest. */
  #memoryFrom = 0;
  /** The place up to which the database has it; unknown at first and after a conflict. */
  #stored: number | undefined;
  /** Read, not yet booked. */
  #waiting: readonly (Entry | RecentRow)[] = [];
  /** The rows of a shipment. */
  readonly #list = new ReusedBytes();
  #dying = false;
  #hasBegun = false;
  /** The file that was being read when others were last removed. */
  #tidied = 0;
  /** Rows that are booked or refused. */
  rows = 0;
  /** All that was written when it was last looked at has been read. */
  isCaughtUp = false;
  /** The writer is gone, and all is booked. */
  done = false;

  constructor(deps: JournalShipmentDeps) {
    this.#deps = deps;
    this.#journal = `${deps.holder}/${deps.writer}`;
    this.#bookings = deps.counting ? new Bookings() : undefined;
    this.#tail = new Tail(deps);
    this.#replay = new Replay(this.#bookings);
    this.#isFromMemory = deps.memory !== undefined;
  }

  /** Rows that were read and are not booked yet. */
  get waitingRows(): number {
    return this.#waiting.filter(({ kind }) => kind === 'settled').length;
  }

  /** What was settled in this journal since the last call, as far as it was read. */
  takeBooked(): readonly Booked[] {
    return this.#bookings?.take() ?? [];
  }

  /**
   * Ships the next rows: as many as one statement takes, since each statement costs as much as some fifty rows.
   * @param ended the writer is gone: calls that ran are booked as died when all else is booked
   * @returns true while there was more than that, or, with `ended`, while there may be more
   * @throws what the database throws; the next call goes on from there
   */
  async ship(ended: boolean): Promise<boolean> {
    if (this.#stored === undefined) await this.#begin();
    if (this.#waiting.length === 0 && !this.#dying) await this.#read(ended);
    if (this.#waiting.length === 0 && ended) await this.#die();
    const waiting = this.#waiting.slice(0, this.#dying ? deathsAtOnce : Infinity);
    if (waiting.length === 0) return false;
    const entries = waiting.filter(({ kind, to }) => kind === 'settled' && to > this.#stored!);
    if (entries.length > 0) await this.#shipped(entries, waiting.at(-1)!.to);
    this.#waiting = this.#waiting.slice(waiting.length);
    if (!ended) await this.#tidy();
    return ended || !this.isCaughtUp;
  }

  /** Removes the files of a journal that is done. */
  async remove(): Promise<void> {
    const { disk, folder, writer } = this.#deps;
    for (const segment of await this.#tail.segments()) await disk.remove(segmentPath(folder, writer, segment));
  }

  async #begin(): Promise<void> {
    const stored = await this.#deps.sink.position(this.#journal);
    if (this.#hasBegun) this.#restart();
    this.#hasBegun = true;
    this.#stored = stored;
  }

  /** The position in the database is not the one that was stored: all that is still there is read again. */
  #restart(): void {
    this.#readFiles();
    this.#waiting = [];
    this.#dying = false;
    this.rows = 0;
  }

  /** Reads the files from the first that is left. Rows that are booked are passed over. */
  #readFiles(): void {
    this.#tail = new Tail(this.#deps);
    this.#replay = new Replay(this.#bookings);
    this.#isFromMemory = false;
    this.#beginMemory();
  }

  #beginMemory(): void {
    const { memory } = this.#deps;
    memory?.recent.begin();
    this.#oldest = 0;
    this.#memoryFrom = memory?.place ?? Infinity;
  }

  async #read(ended: boolean): Promise<void> {
    const { memory } = this.#deps;
    if (memory && this.#isFromMemory) {
      if (memory.recent.isLost) this.#readFiles();
      else {
        this.#oldest = memory.oldest;
        this.#waiting = memory.recent.take();
        this.isCaughtUp = memory.recent.isEmpty;
        return;
      }
    }
    const entries: Entry[] = [];
    this.#waiting = entries; // what was read before a read that fails is shipped all the same: the tail does not go back
    this.isCaughtUp = false;
    let bytes = 0;
    do {
      const next = await this.#tail.read(ended);
      for (const entry of next) {
        this.#replay.note(entry);
        entries.push(entry);
        bytes += entry.json.length;
      }
      this.isCaughtUp = next.length === 0;
    } while (!this.isCaughtUp && bytes < bytesAtOnce);
    if (!memory || this.#tail.place < this.#memoryFrom) return;
    if (memory.recent.isLost) this.#beginMemory();
    else this.#isFromMemory = true;
  }

  /** The rows of calls that died have places after the last file. They are the same whenever they are made, so half of them may be booked already. */
  async #die(): Promise<void> {
    if (this.#dying) {
      this.done = true;
      return;
    }
    const last = Math.max(segmentOf(this.#tail.place), ...(await this.#tail.segments()));
    const deaths = this.#replay.deaths((at) => placeOf(last + 1, at + 1));
    this.#dying = true;
    this.#waiting = deaths;
    if (deaths.length === 0) this.done = true;
  }

  /** A row that can never be written must not hold up others: halves are tried until it is alone, and it is left out. */
  async #shipped(entries: readonly (Entry | RecentRow)[], to: number): Promise<void> {
    const rows = listOf(
      entries.map(({ json }) => json),
      this.#list,
    );
    let leftOut: readonly number[];
    try {
      leftOut = await this.#deps.sink.ship({ holder: this.#deps.holder, journal: this.#journal, from: this.#stored!, to, rows });
    } catch (error) {
      this.#list.leave();
      if (error instanceof Fault && error.code === 'conflict') this.#stored = undefined;
      if (!(error instanceof Fault && error.code === 'invalid') || entries.length === 0) throw error;
      if (entries.length === 1) return this.#refuse(entries[0]!, to, error);
      const middle = entries.length >> 1;
      await this.#shipped(entries.slice(0, middle), entries[middle - 1]!.to);
      return this.#shipped(entries.slice(middle), to);
    }
    this.#stored = to;
    this.rows += entries.length;
    for (const place of leftOut) await this.#leaveOut(entries[place]!);
  }

  /** Two rows of one key: two steps have the same number, which is a bug. */
  async #leaveOut({ json }: Entry | RecentRow): Promise<void> {
    const { requestId, step } = JSON.parse(json.toString()) as SettledRow;
    const { refused, log } = this.#deps;
    log(`Another row is booked under the request ${requestId} and its step ${step}: this one is left out, and kept in ${refused}.`, undefined);
    await this.#keep(json);
  }

  async #refuse({ json }: Entry | RecentRow, to: number, why: Fault): Promise<void> {
    await this.#keep(json);
    this.#deps.log(`A row cannot be written and is left out: it is kept in ${this.#deps.refused}.`, why);
    this.rows++;
    await this.#shipped([], to);
  }

  async #keep(json: Buffer): Promise<void> {
    await this.#deps.disk.append(this.#deps.refused, `${json.toString()}\n`);
  }

  /** Removes a file when all that is settled in it is booked and no call that began in it runs. */
  async #tidy(): Promise<void> {
    const { disk, folder, writer, removing, memory } = this.#deps;
    const reached = segmentOf(this.#isFromMemory ? this.#stored! : this.#tail.place);
    if (!removing || this.#waiting.length > 0 || reached === this.#tidied) return;
    const first = this.#isFromMemory ? Math.min(reached, this.#oldest, memory!.oldest) : Math.min(reached, this.#replay.oldest);
    const over = (await this.#tail.segments()).filter((segment) => segment < first);
    for (const segment of over) await disk.remove(segmentPath(folder, writer, segment));
    this.#tidied = reached;
  }
}

const [opening, comma, closing] = ['[', ',', ']'].map((text) => text.charCodeAt(0)) as [number, number, number];

/** A list of values in JSON. */
function listOf(values: readonly Buffer[], memory: ReusedBytes): Buffer {
  const list = memory.take(values.reduce((sum, { length }) => sum + length + 1, values.length === 0 ? 2 : 1));
  list[0] = opening;
  let end = 1;
  for (const value of values) {
    end += value.copy(list, end);
    list[end++] = comma;
  }
  list[list.length - 1] = closing;
  return list;
}
