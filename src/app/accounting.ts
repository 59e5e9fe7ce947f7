import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Settings } from '#config/index';
import { owned, type Database } from './database.ts';
import { holdersIn } from '#ledger/shipping/adopt';
import { keepContact } from '#ledger/admission/contact';
import type { UsageSink } from '#ledger/shipping/usage-sink';
import { systemDisk } from '#ledger/journal/disk';
import { openJournal, type Journal } from '#ledger/journal/journal';
import { openShipper } from '#ledger/shipping/shipper';
import type { Settled, WorkerSettled } from '#ledger/sharing/sub-leases';
import type { Clock } from '#kit/async/clock';
import { runAll } from '#kit/async/run-all';
import { causeOf, type Log } from '#telemetry/log';
import { operatorHere } from './local-token.ts';
import { Fault } from '#core/fault';
import type { LeaseSource } from '#core/lease';
import { audit } from '#resources/audit/store';
import { freeClaimsOf } from '#resources/idempotency/claims';
import { openHolders, type Holders } from '#resources/usage/holders';
import { openLeases } from '#resources/usage/leases';
import { makeMonthsAhead } from '#resources/usage/months';
import { openShipping } from '#resources/usage/ship';
import { keepBooks } from '#resources/usage/upkeep';
import { workOnRemovals } from '#resources/users/removal';
import { lockFolder } from '#store/folder-lock';
import { jobs as openJobs } from '#store/jobs';
import type { Access, Store } from '#store/open';
import { databaseNow } from '#store/database-clock';

/** What a process that serves needs of the books. */
export interface Accounting {
  readonly source: LeaseSource;
  readonly journal: Journal;
  /** The name of this machine's boot. */
  readonly holder: string;
  /** Rows that are not in the database yet. */
  readonly pending: number;
  /** To be called when nothing is spent any more: brings what is left into the database. */
  close(): Promise<void>;
}

/** The books of a machine, in the one process that has the data folder. */
export interface MachineAccounting {
  readonly source: LeaseSource;
  /** By this name the machine holds leases, until it ends. */
  readonly holder: string;
  readonly pending: number;
  /** What a worker that is gone has settled and was not taken before, when all of it is in the database. */
  readonly settledOf: (worker: string) => Promise<readonly Settled[]>;
  /** What workers have settled since this was last called. */
  readonly takeSettled: () => readonly WorkerSettled[];
  close(): Promise<void>;
}

export interface BooksDeps {
  readonly database: Database;
  readonly settings: () => Settings;
  readonly clock: Clock;
  readonly log: Log;
  /** Somebody else has taken over what this process held: it may spend no more and should end. */
  readonly lost: (cause: unknown) => void;
}

/** Where the journals of a data folder lie. */
export const journalsIn = (data: string) => join(data, 'journal');

/** A worker whose parent is gone ends within 800. */
const orphanMilliseconds = 1000;
const shippingSeconds = 5;
/** A worker whose parent was killed is gone by then. */
const orphanSeconds = 1;

/** The accounting of a server of one process. */
export async function openAccounting(parts: BooksDeps): Promise<Accounting> {
  const { settings, clock, log } = parts;
  const { journal, machine } = await openMachine(parts, (holder) => openJournalOf({ settings, clock, log, holder, writer: 'only' }));
  return {
    source: machine.source,
    holder: machine.holder,
    journal,
    get pending() {
      return machine.pending;
    },
    close: () => runAll([() => journal.close(), () => machine.close()]),
  };
}

/** The accounting of a server of several processes, in the one that leads them: the others write journals of their own. */
export async function openMachineAccounting(parts: BooksDeps): Promise<MachineAccounting> {
  return (await openMachine(parts, async () => undefined)).machine;
}

/** The journal of one process. */
export function openJournalOf({
  settings,
  clock,
  log,
  holder,
  writer,
}: Pick<BooksDeps, 'settings' | 'clock' | 'log'> & { holder: string; writer: string }): Promise<Journal> {
  return openJournal({
    disk: systemDisk,
    clock,
    folder: join(journalsIn(settings().data), holder),
    writer,
    minFreeBytes: () => settings().limits.minFreeBytes,
    ...said(log),
  });
}

async function openMachine<Own extends Journal | undefined>(
  { database: { store }, settings, clock, log, lost }: BooksDeps,
  openOwn: (holder: string) => Promise<Own>,
): Promise<{ journal: Own; machine: MachineAccounting }> {
  const { data, databaseUrl } = settings();
  const unlock = databaseUrl ? lockFolder(data) : () => {}; // the embedded database has it locked already
  const holders = openHolders(store);
  await makeMonthsAhead(store, await databaseNow(store.db));
  const enteredAt = clock.monotonic();
  const holder = await holders.enter({ machine: hostname() });
  const journal = await openOwn(holder);
  const shipper = openShipper({
    sink: usageSink(store, holders),
    disk: systemDisk,
    clock,
    folder: journalsIn(data),
    holder,
    orphanMilliseconds,
    ...(journal ? { own: journal } : {}),
    ...said(log),
  });
  const jobs = openJobs({ store, clock, log });
  const stopKeeping = keepBooks({ store, jobs, clock, log: { ...log, info: log.debug }, months: () => settings().retention.usageMonths });
  workOnRemovals({ store, jobs, owned, log: said(log).log });
  const shipAll = async () => {
    if (await shipper.flush(shippingSeconds * 1000)) return;
    log.warn({ rows: shipper.pendingRows }, 'Usage that is not in the database yet stays in the journal for the next start.');
  };
  const former = (await holdersIn(systemDisk, journalsIn(data))).filter((one) => one !== holder);
  const stopFreeing = clock.after(orphanSeconds * 1000, () => {
    freeClaimsOf(store, former).catch((cause: unknown) => log.debug(causeOf(cause), 'Idempotency keys of an earlier start are free after their leases.'));
  });
  const contact = keepContact(
    {
      seen: (seconds) => holders.seen(holder, seconds),
      streamSeconds: () => Math.max(settings().limits.requestSeconds, settings().limits.streamSeconds),
      clock,
      lost,
    },
    enteredAt,
  );
  const machine: MachineAccounting = {
    source: { ...openLeases({ store, holder }), contact },
    holder,
    get pending() {
      return shipper.pendingRows;
    },
    settledOf: (worker) => shipper.adoptWriter(worker),
    takeSettled: () => shipper.takeSettled().map(({ writer: worker, ...said }) => ({ worker, ...said })),
    close: () => runAll([() => contact.end(), stopFreeing, stopKeeping, () => jobs.close(), shipAll, unlock]),
  };
  return { journal, machine };
}

/** The books as journals are brought into them. @param adopter where the journals are another machine's: who says so; the audit trail then tells of it */
export function usageSink(store: Store, holders: Holders, adopter?: string): UsageSink {
  const { ship, position } = openShipping(store);
  return {
    ship,
    position,
    async close(holder, rows) {
      let isNoted = adopter === undefined;
      const noted = async (inside: Access) => {
        isNoted = true;
        const after = { how: 'adopted', by: adopter, rows };
        await audit(inside, { by: operatorHere, action: 'holder.adopt', target: { kind: 'holder', id: holder }, after });
      };
      try {
        await holders.close(holder, adopter === undefined ? undefined : { by: adopter, noted });
      } catch (error) {
        if (!(error instanceof Fault && error.code === 'not-found')) throw error; // of a database that is no more
      }
      if (!isNoted && rows > 0) await store.transaction(noted); // it was closed before, and left something to be booked
    },
  };
}

const said = (log: Log) => ({
  log: (problem: string, cause: unknown) => log.error(cause === undefined ? {} : causeOf(cause), problem),
  mended: (what: string) => log.info({}, what),
});
