import { Fault } from '#core/fault';
import type { UsageRow } from '#core/usage-row';
import { Bookings, type Booked } from '../journal/bookings.ts';
import type { UsageSink } from './usage-sink.ts';
import type { Disk } from '../journal/disk.ts';
import { placeOf, segmentOf, segmentPath } from '../journal/segments.ts';
import { Replay } from '../journal/replay.ts';
import { Tail, type Entry } from '../journal/tail.ts';

export interface ConsignmentDeps {
  readonly sink: UsageSink;
  readonly disk: Disk;
  /** The folder of the holder's journals. */
  readonly folder: string;
  readonly holder: string;
  readonly writer: string;
  /** The file for rows that no database takes. */
  readonly refused: string;
  /** Is somebody going to ask what was settled? */
  readonly counting: boolean;
  /** Do the files go when all in them is in the books? */
  readonly removing: boolean;
  readonly log: (problem: string, cause: unknown) => void;
}

/** What is shipped at once of the calls that died. */
const deathsAtOnce = 500;

/** One journal on its way into the books. */
export class JournalShipment {
  readonly #parts: ConsignmentDeps;
  readonly #journal: string;
  readonly #bookings: Bookings | undefined;
  #tail: Tail;
  #replay: Replay;
  /** The place up to which the database has it; unknown at first and after a quarrel. */
  #stored: number | undefined;
  /** Read, not yet in the books. */
  #waiting: readonly Entry[] = [];
  #dying = false;
  /** The file that was being read when others were last removed. */
  #tidied = 0;
  /** Rows that are in the books or refused by them. */
  rows = 0;
  /** All that was written when it was last looked at has been read. */
  isCaughtUp = false;
  /** The writer is gone, and all is in the books. */
  done = false;

  constructor(parts: ConsignmentDeps) {
    this.#parts = parts;
    this.#journal = `${parts.holder}/${parts.writer}`;
    this.#bookings = parts.counting ? new Bookings() : undefined;
    this.#tail = new Tail(parts);
    this.#replay = new Replay(this.#bookings);
  }

  /** Rows that were read and are not in the books yet. */
  get waitingRows(): number {
    return this.#waiting.filter(({ kind }) => kind === 'settled').length;
  }

  /** What was settled in this journal, as far as it was read, and not taken before. */
  takeBooked(): readonly Booked[] {
    return this.#bookings?.take() ?? [];
  }

  /**
   * Ships the next rows.
   *
   * @param ended the writer is gone: what ran is booked as died when all else is in the books
   * @returns true while there may be more
   * @throws what the books threw, and then goes on from where it was
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
    return true;
  }

  /** Removes the files of a journal that is done. */
  async remove(): Promise<void> {
    const { disk, folder, writer } = this.#parts;
    for (const segment of await this.#tail.segments()) await disk.remove(segmentPath(folder, writer, segment));
  }

  async #begin(): Promise<void> {
    const stored = await this.#parts.sink.position(this.#journal);
    if (this.#tail.place > 0) this.#restart();
    this.#stored = stored;
  }

  /** The database does not know what it knew, or more: all that is still there is read again. */
  #restart(): void {
    this.#tail = new Tail(this.#parts);
    this.#replay = new Replay(this.#bookings);
    this.#waiting = [];
    this.#dying = false;
    this.rows = 0;
  }

  async #read(ended: boolean): Promise<void> {
    this.#waiting = await this.#tail.read(ended);
    this.isCaughtUp = this.#waiting.length === 0;
    for (const entry of this.#waiting) this.#replay.note(entry);
  }

  /** The last rows stand behind the last file. They are the same whenever they are made, so that half of them may be there already. */
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

  /** One row that can never be written holds up no other: halves are tried until it stands alone, and it is let go. */
  async #shipped(entries: readonly Entry[], to: number): Promise<void> {
    const rows = `[${entries.map(({ json }) => json.toString()).join(',')}]`;
    let leftOut: readonly number[];
    try {
      leftOut = await this.#parts.sink.ship({ holder: this.#parts.holder, journal: this.#journal, from: this.#stored!, to, rows });
    } catch (error) {
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

  /** Two rows of one key: somebody numbered two steps alike. */
  async #leaveOut({ json }: Entry): Promise<void> {
    const { requestId, step } = JSON.parse(json.toString()) as UsageRow;
    const { refused, log } = this.#parts;
    log(`Another row is booked under the request ${requestId} and its step ${step}: this one is left out, and kept in ${refused}.`, undefined);
    await this.#keep(json);
  }

  async #refuse({ json }: Entry, to: number, why: Fault): Promise<void> {
    await this.#keep(json);
    this.#parts.log(`A row cannot be written and is left out: it is kept in ${this.#parts.refused}.`, why);
    this.rows++;
    await this.#shipped([], to);
  }

  async #keep(json: Buffer): Promise<void> {
    await this.#parts.disk.append(this.#parts.refused, `${json.toString()}\n`);
  }

  /** A file goes when all that is settled in it is in the books and nothing that began in it is running. */
  async #tidy(): Promise<void> {
    const { disk, folder, writer, removing } = this.#parts;
    if (!removing || this.#waiting.length > 0 || segmentOf(this.#tail.place) === this.#tidied) return;
    const first = Math.min(segmentOf(this.#tail.place), this.#replay.oldest);
    const over = (await this.#tail.segments()).filter((segment) => segment < first);
    for (const segment of over) await disk.remove(segmentPath(folder, writer, segment));
    this.#tidied = segmentOf(this.#tail.place);
  }
}
