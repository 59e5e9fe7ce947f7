import { join } from 'node:path';
import { holdersIn, shipHolder, type AdoptDeps } from './adopt.ts';
import { Backoff, type BackoffDeps } from './backoff.ts';
import type { Clock } from '#kit/async/clock';
import type { Booked } from '../journal/bookings.ts';
import { JournalShipment } from './journal-shipment.ts';
import type { Journal } from '../journal/journal.ts';
import { segmentsOf } from '../journal/segments.ts';

/** Brings the journals of this machine into the database: those being written, and those that earlier processes left. There is one a machine. */
export interface Shipper {
  /** Rows that are not in the database yet: all of this process, and those that were read from the journals of its workers. */
  readonly pendingRows: number;
  /** Ships what has been written, at once or a moment after the last round, as far as the database takes it. Never rejects. */
  shipWritten(): Promise<void>;
  /**
   * A worker is dead: books the calls that ran in it, and removes its journal when all is shipped.
   * @returns what it settled of each account and `takeSettled` has not returned, once that is in the database
   */
  adoptWriter(writer: string): Promise<readonly Booked[]>;
  /** What the workers have settled since the last call. */
  takeSettled(): readonly WriterSettled[];
  /**
   * Ships everything and gives back the leases; for the end, when the journals are closed. What is not shipped in time is shipped by the next start.
   * @returns false when the time was too short
   */
  flush(milliseconds: number): Promise<boolean>;
}

export interface WriterSettled {
  readonly writer: string;
  readonly settled: readonly Booked[];
  /** It had written no more than that a moment ago. */
  readonly isAll: boolean;
}

export interface ShipperDeps extends Omit<AdoptDeps, 'refused'>, BackoffDeps {
  /** The holder of this start. All other holders with a folder here are dead, since a data folder has one process at a time. */
  readonly holder: string;
  /** Milliseconds for which workers of a parent that was killed may still write: only after them are the journals of earlier starts read to their end. */
  readonly orphanMilliseconds?: number;
  /** The journal that this process writes itself, if it does: then it is the only one of this start. */
  readonly own?: Pick<Journal, 'writer' | 'rows' | 'recent' | 'oldest' | 'place'>;
}

const pauseMilliseconds = 200;
/** From the beginning of one round to that of the next, where it is asked for: among many users there is always one whose first lease waits for it. */
const leastMilliseconds = 50;
/** Batches of one journal before the others have their turn. */
const batchesInTurn = 16;

export const openShipper = (deps: ShipperDeps): Shipper => new MachineShipper(deps);

class MachineShipper implements Shipper {
  readonly #deps: ShipperDeps & AdoptDeps & { readonly removing: true };
  readonly #backoff: Backoff;
  /** The folder of this holder's journals. */
  readonly #folder: string;
  readonly #shipments = new Map<string, JournalShipment>();
  /** Dead workers whose journals are being adopted. */
  readonly #adopting = new Map<string, (booked: readonly Booked[]) => void>();
  /** Holders of earlier starts that are in the books. */
  readonly #shippedHolders = new Set<string>();
  #isStopped = false;
  #cancelRound: () => void = () => {};
  #cancelEarlier: () => void = () => {};
  #round: Promise<void>;
  /** When the last round began (monotonic milliseconds). */
  #begunAt = -Infinity;
  /** A round that has not begun: it reads all that is written before. */
  #next: Promise<void> | undefined;
  #earlier: Promise<void> = Promise.resolve();

  constructor(deps: ShipperDeps) {
    this.#deps = { ...deps, refused: join(deps.folder, 'refused.jsonl'), removing: true };
    this.#backoff = new Backoff(deps);
    this.#folder = join(deps.folder, deps.holder);
    deps.own?.recent.begin();
    this.#round = this.#shipRound();
    if (deps.orphanMilliseconds) this.#cancelEarlier = deps.clock.after(deps.orphanMilliseconds, () => this.#startEarlier());
    else this.#startEarlier();
  }

  get pendingRows(): number {
    const { own } = this.#deps;
    const shipped = own ? (this.#shipments.get(own.writer)?.rows ?? 0) : 0;
    const read = [...this.#shipments].reduce((sum, [writer, one]) => (writer === own?.writer ? sum : sum + one.waitingRows), 0);
    return read + Math.max(0, (own?.rows ?? 0) - shipped);
  }

  shipWritten(): Promise<void> {
    if (this.#deps.own && this.pendingRows === 0) return Promise.resolve();
    return (this.#next ??= this.#shipNext());
  }

  adoptWriter(writer: string): Promise<readonly Booked[]> {
    return new Promise((resolve) => this.#adopting.set(writer, resolve));
  }

  takeSettled(): readonly WriterSettled[] {
    return Array.from(this.#shipments)
      .filter(([writer]) => writer !== this.#deps.own?.writer)
      .map(([writer, one]) => ({ writer, settled: one.takeBooked(), isAll: one.isCaughtUp && one.waitingRows === 0 }));
  }

  async flush(milliseconds: number): Promise<boolean> {
    const { clock, holder, log } = this.#deps;
    this.#isStopped = true;
    this.#cancelRound();
    this.#cancelEarlier();
    const until = clock.monotonic() + milliseconds;
    await Promise.race([Promise.all([this.#round, this.#earlier]), clock.sleep(milliseconds)]);
    for (;;) {
      try {
        await Promise.race([shipHolder(this.#deps, holder), timeout(clock, until - clock.monotonic())]);
        return true;
      } catch (error) {
        if (clock.monotonic() >= until) {
          log('The journal could not be shipped before the end: the next start does it.', error);
          return false;
        }
        await clock.sleep(pauseMilliseconds);
      }
    }
  }

  async #shipNext(): Promise<void> {
    const { clock } = this.#deps;
    await this.#round;
    this.#cancelRound(); // this one takes its place
    const pause = this.#begunAt + leastMilliseconds - clock.monotonic();
    if (pause > 0) await clock.sleep(pause);
    this.#next = undefined;
    if (this.#isStopped) return;
    await (this.#round = this.#shipRound());
  }

  async #shipRound(): Promise<void> {
    this.#begunAt = this.#deps.clock.monotonic();
    let more = false;
    await this.#backoff.attempt('here', async () => {
      more = await this.#shipWriters();
    });
    if (!this.#isStopped) this.#cancelRound = this.#deps.clock.after(more ? 0 : pauseMilliseconds, () => void (this.#round = this.#shipRound()));
  }

  /** Ships the journals of this holder. @returns true while there is more to ship at once */
  async #shipWriters(): Promise<boolean> {
    const { disk, holder, own } = this.#deps;
    let more = false;
    const writing = own ? [own.writer] : segmentsOf(await disk.list(this.#folder)).keys();
    const writers = new Set([...writing, ...this.#adopting.keys()]);
    for (const writer of writers) {
      const shipment = this.#shipmentOf(writer);
      await this.#backoff.attempt(`${holder}/${writer}`, async () => {
        const adopted = this.#adopting.get(writer);
        let left = true;
        for (let batch = 0; left && !this.#isStopped && batch < batchesInTurn; batch++) left = await shipment.ship(adopted !== undefined);
        more ||= left;
        if (!adopted || !shipment.done) return;
        await shipment.remove();
        this.#shipments.delete(writer);
        this.#adopting.delete(writer);
        adopted(shipment.takeBooked());
      });
    }
    return more;
  }

  #shipmentOf(writer: string): JournalShipment {
    let one = this.#shipments.get(writer);
    if (!one) {
      const own = writer === this.#deps.own?.writer ? this.#deps.own : undefined;
      one = new JournalShipment({ ...this.#deps, folder: this.#folder, writer, memory: own, counting: !own });
      this.#shipments.set(writer, one);
    }
    return one;
  }

  #startEarlier(): void {
    this.#earlier = this.#shipEarlier();
  }

  /** Ships what the holders of earlier starts left, until none is left: no more of them can come. */
  async #shipEarlier(): Promise<void> {
    const { disk, folder, holder, clock } = this.#deps;
    let left = 1;
    await this.#backoff.attempt('of earlier starts', async () => {
      const others = (await holdersIn(disk, folder)).filter((name) => name !== holder && !this.#shippedHolders.has(name));
      left = others.length;
      for (const other of others)
        if (!this.#isStopped)
          await this.#backoff.attempt(other, async () => {
            await shipHolder(this.#deps, other);
            this.#shippedHolders.add(other);
            left--;
          });
    });
    if (left > 0 && !this.#isStopped) this.#cancelEarlier = clock.after(pauseMilliseconds, () => this.#startEarlier());
  }
}

async function timeout(clock: Clock, milliseconds: number): Promise<never> {
  await clock.sleep(Math.max(0, milliseconds));
  throw new Error('The time was over.');
}
