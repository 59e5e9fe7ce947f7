/* What the database keeps beside the books, in memory: jobs and responses of runs in the background, by the rules of src/store/jobs.ts; users and keys. */
import type { Entry } from '../../src/faces/chatcompat/responses/stored-body.ts';
import type { Plan } from '#core/plan';
import type { Found } from '../../src/resources/api-keys/store.ts';

interface Job {
  readonly id: string;
  readonly userId: number;
  readonly responseId: string;
  readonly keyId: number;
  state: 'waiting' | 'running' | 'over';
  tries: number;
  taken: number;
  /** Another one each time it is taken. */
  holder: number;
  leaseUntil: number;
  runAt: number;
  isCancelWanted: boolean;
}

export type Taken = Readonly<Job>;

export const ownerOf = ({ userId }: { readonly userId: number }) => `user:${userId}`;

/** How the taking of a job ended. */
export type RunEnding = 'over' | 'interrupted' | 'postponed' | 'again';

export interface RunsModel {
  keep(entry: Entry, keyId: number): void;
  /** Writes it anew while its status is one of these. */
  renewEntry(entry: Entry, statuses: readonly string[]): boolean;
  find(id: string): Entry | undefined;
  readonly entries: readonly Entry[];
  /** The jobs that wait or whose worker has said nothing for too long, in their order; each is somebody's for `leaseMilliseconds`. @param mostOf how many of an owner */
  take(most: number, mostOf: (owner: string) => number): readonly Taken[];
  /** @returns undefined where it is somebody else's by now */
  renew(job: Taken): { readonly isCancelWanted: boolean } | undefined;
  settle(job: Taken, ending: RunEnding): void;
  cancel(job: string): void;
  waiting(userId: number): readonly Taken[];
}

/** A worker that says nothing for so long is taken for dead. */
export const leaseMilliseconds = 3000;
const againMilliseconds = 1000;

/** @param now milliseconds */
export function runsModel(now: () => number): RunsModel {
  const jobs = new Map<string, Job>();
  const entries = new Map<string, Entry>();
  /** Only while it is the holder's. */
  const own = ({ id, holder }: Taken) => {
    const job = jobs.get(id)!;
    return job.holder === holder && job.state === 'running' ? job : undefined;
  };
  return {
    keep(entry, keyId) {
      const { id: responseId, userId } = entry;
      const job: Job = {
        id: entry.body.run!.job,
        userId,
        responseId,
        keyId,
        state: 'waiting',
        tries: 0,
        taken: 0,
        holder: 0,
        leaseUntil: 0,
        runAt: now(),
        isCancelWanted: false,
      };
      jobs.set(job.id, job);
      entries.set(responseId, structuredClone(entry));
    },
    renewEntry(entry, statuses) {
      const before = entries.get(entry.id);
      if (!before || !statuses.includes(before.status)) return false;
      entries.set(entry.id, structuredClone(entry));
      return true;
    },
    find: (id) => structuredClone(entries.get(id)),
    get entries() {
      return [...entries.values()];
    },
    take(most, mostOf) {
      for (const job of jobs.values()) if (job.state === 'running' && job.leaseUntil < now()) job.state = job.isCancelWanted ? 'over' : 'waiting';
      const waiting = [...jobs.values()].filter(({ state, runAt }) => state === 'waiting' && runAt <= now()).toSorted((one, other) => one.runAt - other.runAt);
      const some = [...Map.groupBy(waiting, ownerOf)].flatMap(([owner, own]) => own.slice(0, Math.max(0, mostOf(owner)))).slice(0, most);
      for (const job of some) {
        Object.assign(job, { state: 'running', leaseUntil: now() + leaseMilliseconds });
        job.tries++;
        job.taken++;
        job.holder++;
      }
      return some.map((job) => ({ ...job }));
    },
    renew(taken) {
      const job = own(taken);
      if (job) job.leaseUntil = now() + leaseMilliseconds;
      return job && { isCancelWanted: job.isCancelWanted };
    },
    settle(taken, ending) {
      const job = own(taken);
      if (!job) return;
      job.state = ending === 'over' ? 'over' : 'waiting';
      if (ending === 'interrupted' || ending === 'postponed') job.tries--;
      if (ending !== 'postponed') job.runAt = now() + (ending === 'interrupted' ? 0 : againMilliseconds); // who waits for a limit keeps their place
    },
    cancel(id) {
      const job = jobs.get(id)!;
      job.isCancelWanted = true;
      if (job.state === 'waiting') job.state = 'over';
    },
    waiting: (userId) => [...jobs.values()].filter((job) => job.userId === userId && job.state === 'waiting'),
  };
}

/** Who has which key, and who may use it. */
export interface KeysModel {
  /** The key a user asks with now. */
  keyOf(userId: number): number;
  /** The keys that are good of these at this moment, in milliseconds. `revision` grows with each change. */
  callers(keyIds: readonly number[]): { readonly revision: number; readonly readAt: number; readonly found: ReadonlyMap<number, Found> };
  /** The user's key is revoked; the next one is good. */
  revoke(userId: number): void;
  suspend(userId: number): void;
  resume(userId: number): void;
  /** From now on each key has these limits. */
  limit(keyLimits: Plan): void;
  /** Since when a key is not good, in milliseconds; undefined: it is. */
  badSince(keyId: number): number | undefined;
  /** Told of each change. */
  subscribe(listen: (userId: number) => void): () => void;
}

const keysEach = 1000;

/** @param now milliseconds @param keyLimits of each key, from the beginning */
export function keysModel(now: () => number = () => 0, keyLimits?: Plan): KeysModel {
  const current = new Map<number, number>();
  const revoked = new Map<number, number>();
  const suspended = new Map<number, number>();
  const listeners = new Set<(userId: number) => void>();
  let revision = 0;
  const keyOf = (userId: number) => current.get(userId) ?? userId * keysEach;
  const changed = (userId: number) => {
    revision++;
    for (const listen of listeners) listen(userId);
  };
  return {
    keyOf,
    callers(keyIds) {
      const found = new Map<number, Found>();
      for (const keyId of keyIds) {
        const userId = Math.floor(keyId / keysEach);
        if (suspended.has(userId) || keyOf(userId) !== keyId) continue;
        found.set(keyId, {
          caller: { userId, email: '', role: 'user', plan: 'p', teamIds: [1], keyId, keyName: '', ...(keyLimits && { keyLimits }) },
          expiresIn: undefined,
        });
      }
      return { revision, readAt: now(), found };
    },
    revoke(userId) {
      revoked.set(keyOf(userId), now());
      current.set(userId, keyOf(userId) + 1);
      changed(userId);
    },
    suspend(userId) {
      if (!suspended.has(userId)) suspended.set(userId, now());
      changed(userId);
    },
    resume(userId) {
      if (suspended.delete(userId)) changed(userId);
    },
    limit(limits) {
      keyLimits = limits;
      for (const userId of [1, 2]) changed(userId);
    },
    badSince: (keyId) => revoked.get(keyId) ?? suspended.get(Math.floor(keyId / keysEach)),
    subscribe(listen) {
      listeners.add(listen);
      return () => void listeners.delete(listen);
    },
  };
}
