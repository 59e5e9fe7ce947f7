import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Settings } from '#config/index';
import { type Database, owned, sharedTables } from './database.ts';
import { holdersIn } from '#ledger/shipping/adopt';
import { keepContact } from '#ledger/admission/contact';
import type { UsageSink } from '#core/usage-sink';
import { systemDisk } from '#ledger/journal/disk';
import { type Journal, openJournal } from '#ledger/journal/journal';
import { leaseAfterShipping } from '#ledger/shipping/lease-after-shipping';
import { openShipper } from '#ledger/shipping/shipper';
import type { Settled, WorkerSettled } from '#ledger/sharing/sub-leases';
import type { Clock } from '#kit/async/clock';
import { runAll } from '#kit/async/run-all';
import { causeOf, problemsTo, type Log } from '#telemetry/log';
import { operatorHere } from './local-token.ts';
import { Fault } from '#core/fault';
import type { LeaseSource } from '#core/lease';
import { audit } from '#resources/audit/store';
import { freeClaimsOf } from '#resources/idempotency/claims';
import { type Holders, openHolders } from '#resources/usage/holders';
import { type AlertSender, workOnAlerts } from '#resources/usage/limit-alerts';
import { openLeases } from '#resources/usage/leases';
import { makeMonthsAhead } from '#resources/usage/months';
import { openShipping } from '#resources/usage/ship';
import { keepBooks } from '#resources/usage/upkeep';
import { purgeDatasetsOf } from '#resources/datasets/removal';
import { openPassageIndex } from '#resources/datasets/search/index';
import { workOnRemovals } from '#resources/users/removal';
import { lockFolder } from '#store/folder-lock';
import { jobs as openJobs } from '#store/jobs';
import type { Access, Store } from '#store/open';
import { databaseNow } from '#store/database-clock';
import { openGuardedFetch } from '#kit/net/guarded-fetch';
import { outwardOf } from './upstreams.ts';

/** What a serving process needs of the ledger. */
export interface Accounting {
  readonly source: LeaseSource;
  readonly journal: Journal;
  /** The name under which this start of the server holds leases. */
  readonly holder: string;
  /** Usage rows not yet in the database. */
  readonly pending: number;
  /** Ships what is left to the database. Called when nothing is spent any more. */
  close(): Promise<void>;
}

/** The accounting of a machine, in the one process that has the data folder. */
export interface MachineAccounting extends Omit<Accounting, 'journal'> {
  /** What a worker that has ended had settled and `takeSettled` has not returned; resolves when all of it is in the database. */
  readonly settledOf: (worker: string) => Promise<readonly Settled[]>;
  /** What workers have settled since the last call. */
  readonly takeSettled: () => readonly WorkerSettled[];
}

export interface AccountingDeps {
  readonly database: Database;
  readonly settings: () => Settings;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when another machine has taken over this one's leases: the process may spend no more and should end. */
  readonly lost: (cause: unknown) => void;
}

export const journalsIn = (data: string) => join(data, 'journal');

/** By then a worker whose parent was killed has ended: it does so within 800. */
const orphanMilliseconds = 1000;
/** How long a stop waits until all usage is in the database. */
const shippingSeconds = 5;

/** The accounting of a server of one process. */
export async function openAccounting(deps: AccountingDeps): Promise<Accounting> {
  const { settings, clock, log } = deps;
  const { journal, machine } = await openMachine(deps, (holder) => openJournalOf({ settings, clock, log, holder, writer: 'only' }));
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

/** The accounting of a server of several processes, in their parent: workers write journals of their own. */
export const openMachineAccounting = async (deps: AccountingDeps): Promise<MachineAccounting> => (await openMachine(deps, async () => undefined)).machine;

/** The journal of one process. */
export function openJournalOf({
  settings,
  clock,
  log,
  holder,
  writer,
}: Pick<AccountingDeps, 'settings' | 'clock' | 'log'> & { holder: string; writer: string }): Promise<Journal> {
  return openJournal({
    disk: systemDisk,
    clock,
    folder: join(journalsIn(settings().data), holder),
    writer,
    minFreeBytes: () => settings().limits.minFreeBytes,
    ...reporting(log),
  });
}

async function openMachine<Own extends Journal | undefined>(
  { database: { store }, settings, clock, log, lost }: AccountingDeps,
  openOwn: (holder: string) => Promise<Own>,
): Promise<{ journal: Own; machine: MachineAccounting }> {
  const { data, databaseUrl } = settings();
  const unlock = databaseUrl ? lockFolder(data) : () => {}; // the embedded database has locked it already
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
    ...reporting(log),
  });
  const jobs = openJobs({ store, clock, log });
  const stopKeeping = keepBooks({ store, jobs, clock, log: { ...log, info: log.debug }, months: () => settings().retention.usageMonths });
  workOnAlerts({ store, jobs, clock, settings: () => settings().alerts, post: alertPost(settings(), clock) });
  const index = openPassageIndex(store);
  const also = (userId: number, signal: AbortSignal) => purgeDatasetsOf({ store, jobs, index }, userId, signal);
  workOnRemovals({ store, jobs, owned, shared: sharedTables, also, log: reporting(log).log });
  const shipAll = async () => {
    if (await shipper.flush(shippingSeconds * 1000)) return;
    log.warn({ rows: shipper.pendingRows }, 'Usage that is not in the database yet stays in the journal; the next start ships it.');
  };
  const former = (await holdersIn(systemDisk, journalsIn(data))).filter((one) => one !== holder);
  const stopFreeing = clock.after(orphanMilliseconds, () => {
    freeClaimsOf(store, former).catch((cause: unknown) =>
      log.debug(causeOf(cause), 'The idempotency keys of an earlier start could not be freed; they are free when their leases end.'),
    );
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
    source: { ...leaseAfterShipping(openLeases({ store, holder }), shipper, clock), contact },
    holder,
    get pending() {
      return shipper.pendingRows;
    },
    settledOf: (worker) => shipper.adoptWriter(worker),
    takeSettled: () => shipper.takeSettled().map(({ writer: worker, ...settled }) => ({ worker, ...settled })),
    close: () => runAll([() => contact.end(), stopFreeing, stopKeeping, () => jobs.close(), shipAll, unlock]),
  };
  return { journal, machine };
}

/**
 * Where the shipper brings journals: the usage tables of the database.
 * @param adopter who ships the journals of another machine; the audit trail then records it
 */
export function usageSink(store: Store, holders: Holders, adopter?: string): UsageSink {
  const { ship, position } = openShipping(store);
  return {
    ship,
    position,
    async close(holder, rows) {
      let isAudited = adopter === undefined;
      const noted = async (inside: Access) => {
        isAudited = true;
        const after = { how: 'adopted', by: adopter, rows };
        await audit(inside, { by: operatorHere, action: 'holder.adopt', target: { kind: 'holder', id: holder }, after });
      };
      try {
        await holders.close(holder, adopter === undefined ? undefined : { by: adopter, noted });
      } catch (error) {
        if (!(error instanceof Fault && error.code === 'not-found')) throw error; // a holder of another database
      }
      if (!isAudited && rows > 0) await store.transaction(noted); // it was closed before, and left usage to be booked
    },
  };
}

const reporting = (log: Log) => ({
  log: problemsTo(log),
  mended: (what: string) => log.info({}, what),
});

const mostBytes = 65_536;

/** Sends alerts to an address that the operator chose, which may be a private one. */
function alertPost(settings: Settings, clock: Clock): AlertSender['post'] {
  const outward = outwardOf(settings);
  return async (url, body, headers, signal) => {
    const { fetch } = openGuardedFetch({ ...outward, clock, allow: [new URL(url).origin] });
    await fetch({ url, owner: 'alerts', signal, maxBytes: mostBytes, takes: () => true, headers, body, anySuccess: true });
  };
}
