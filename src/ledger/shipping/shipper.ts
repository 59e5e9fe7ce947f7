import { join } from 'node:path';
import type { Clock } from '#kit/async/clock';
import { holdersIn, shipHolder, type AdoptDeps } from './adopt.ts';
import type { Booked } from '../journal/bookings.ts';
import { JournalShipment } from './journal-shipment.ts';
import type { Journal } from '../journal/journal.ts';
import { segmentsOf } from '../journal/segments.ts';

/** Brings the journals of this machine into the database: those being written, and those that earlier processes left. One a machine. */
export interface Shipper {
  /** Rows that are not in the database yet: all of this process, and of its workers those that were read from their journals. */
  readonly pendingRows: number;
  /**
   * A worker is dead: books what ran in it, and forgets its journal when all is shipped.
   *
   * @returns what it settled of each account and was not taken before, when that is in the database
   */
  adoptWriter(writer: string): Promise<readonly Booked[]>;
  /** What the workers have settled since this was last called. */
  takeSettled(): readonly WriterSettled[];
  /**
   * Ships everything and gives back the leases; for the end, when the journals are closed. What does not get there in time is shipped by the next start.
   *
   * @returns false when there was not enough time
   */
  flush(milliseconds: number): Promise<boolean>;
}

export interface WriterSettled {
  readonly writer: string;
  readonly settled: readonly Booked[];
  /** It had written no more than that a moment ago. */
  readonly isAll: boolean;
}

export interface ShipperDeps extends Omit<AdoptDeps, 'refused'> {
  readonly clock: Clock;
  /** Told when what was a problem is none any more. */
  readonly mended: (what: string) => void;
  /** This boot: all other holders with a folder here are dead, for a data folder has one process at a time. */
  readonly holder: string;
  /** Milliseconds for which workers of a parent that was killed may still write: only then are the journals of earlier starts read to their end. */
  readonly orphanMilliseconds?: number;
  /** The journal that this process writes itself, if it does. */
  readonly own?: Pick<Journal, 'writer' | 'rows'>;
}

const pauseMilliseconds = 200;
const longestPause = 10_000;
/** Batches of one journal before the others have their turn. */
const batchesInTurn = 16;

export function openShipper(given: ShipperDeps): Shipper {
  const { clock, disk, holder, own, log, mended } = given;
  const parts = { ...given, refused: join(given.folder, 'refused.jsonl'), removing: true };
  const folder = join(given.folder, holder);
  const consignments = new Map<string, JournalShipment>();
  const adopting = new Map<string, (booked: readonly Booked[]) => void>();
  const failing = new Map<string, { times: number; until: number }>();
  let stopped = false;
  let cancelRound: () => void = () => {};

  /** Does a piece of work, and leaves it alone for a while when it failed. One line a change. */
  const patiently = async (name: string, work: () => Promise<void>) => {
    const failure = failing.get(name);
    if (failure && clock.monotonic() < failure.until) return;
    try {
      await work();
      if (failing.delete(name)) mended(`The journal ${name} is shipped again.`);
    } catch (error) {
      if (!failure) log(`The journal ${name} cannot be shipped; it waits.`, error);
      const times = (failure?.times ?? 0) + 1;
      failing.set(name, { times, until: clock.monotonic() + Math.min(pauseMilliseconds * 2 ** times, longestPause) });
    }
  };

  const consignmentOf = (writer: string) => {
    let one = consignments.get(writer);
    if (!one) consignments.set(writer, (one = new JournalShipment({ ...parts, folder, writer, counting: writer !== own?.writer })));
    return one;
  };

  /** @returns true while there is more to ship at once */
  const living = async (): Promise<boolean> => {
    let more = false;
    const writers = new Set([...segmentsOf(await disk.list(folder)).keys(), ...adopting.keys()]);
    for (const writer of writers) {
      const shipment = consignmentOf(writer);
      await patiently(`${holder}/${writer}`, async () => {
        const adopted = adopting.get(writer);
        let left = true;
        for (let batch = 0; left && !stopped && batch < batchesInTurn; batch++) left = await shipment.ship(adopted !== undefined);
        more ||= left;
        if (!adopted || !shipment.done) return;
        await shipment.remove();
        consignments.delete(writer);
        adopting.delete(writer);
        adopted(shipment.takeBooked());
      });
    }
    return more;
  };
  const goRound = async () => {
    let more = false;
    await patiently('here', async () => {
      more = await living();
    });
    if (!stopped) cancelRound = clock.after(more ? 0 : pauseMilliseconds, nextRound);
  };
  /** Until none is left: later ones cannot come. */
  const bury = async () => {
    let left = 1;
    await patiently('of earlier starts', async () => {
      const others = (await holdersIn(disk, given.folder)).filter((name) => name !== holder && !buried.has(name));
      left = others.length;
      for (const other of others)
        if (!stopped)
          await patiently(other, async () => {
            await shipHolder(parts, other);
            buried.add(other);
            left--;
          });
    });
    if (left > 0 && !stopped) cancelBurial = clock.after(pauseMilliseconds, nextBurial);
  };
  const buried = new Set<string>();
  let cancelBurial: () => void = () => {};
  const nextRound = () => void (round = goRound());
  const nextBurial = () => void (burial = bury());
  let round: Promise<void> = goRound();
  let burial: Promise<void> = Promise.resolve();
  if (given.orphanMilliseconds) cancelBurial = clock.after(given.orphanMilliseconds, nextBurial);
  else nextBurial();

  return {
    get pendingRows() {
      const shipped = own ? (consignments.get(own.writer)?.rows ?? 0) : 0;
      const read = [...consignments].reduce((sum, [writer, one]) => (writer === own?.writer ? sum : sum + one.waitingRows), 0);
      return read + Math.max(0, (own?.rows ?? 0) - shipped);
    },
    adoptWriter: (writer) => new Promise((resolve) => adopting.set(writer, resolve)),
    takeSettled: () =>
      Array.from(consignments)
        .filter(([writer]) => writer !== own?.writer)
        .map(([writer, one]) => ({ writer, settled: one.takeBooked(), isAll: one.isCaughtUp && one.waitingRows === 0 })),
    async flush(milliseconds) {
      stopped = true;
      cancelRound();
      cancelBurial();
      const until = clock.monotonic() + milliseconds;
      await Promise.race([Promise.all([round, burial]), clock.sleep(milliseconds)]);
      for (;;) {
        try {
          await Promise.race([shipHolder(parts, holder), timeout(clock, until - clock.monotonic())]);
          return true;
        } catch (error) {
          if (clock.monotonic() >= until) {
            log('The journal could not be shipped before the end: the next start does it.', error);
            return false;
          }
          await clock.sleep(pauseMilliseconds);
        }
      }
    },
  };
}

async function timeout(clock: Clock, milliseconds: number): Promise<never> {
  await clock.sleep(Math.max(0, milliseconds));
  throw new Error('The time was over.');
}
