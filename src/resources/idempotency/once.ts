import type { Exchange } from '#http/exchange';
import type { Asked, Once } from '#http/route';
import type { Clock } from '#kit/async/clock';
import { orAborted } from '#kit/async/or-aborted';
import type { Sealer } from '#kit/crypto/sealing';
import { Fault } from '#core/fault';
import type { Store } from '#store/open';
import { openBeats } from './beats.ts';
import { openClaims } from './claims.ts';
import { keyed, type Keyed } from './key.ts';
import { pack, replay, unpack, type ReplayRecord } from './replay-record.ts';
import { openRoom } from './room.ts';

export interface IdempotencyDeps {
  readonly store: Store;
  readonly seal: Sealer;
  /** The name of this machine's boot: what it was answering is freed by the next one. */
  readonly boot: string;
  /** 32 bytes, the same on every machine. */
  readonly pepper: Buffer;
  readonly clock: Clock;
  /** How long a request may wait for one that came before it. */
  readonly longestSeconds: () => number;
  readonly log: (problem: string, cause: unknown) => void;
}

export interface Idempotency {
  readonly once: Once;
  /** Waits until what has ended is written. */
  close(): Promise<void>;
}

/** Bytes of an answer's body. */
const mostBytes = 8 * 2 ** 20;
/** An answer waits so long for the database: to lose it would be worse than not to keep it. It is kept later, while the key is ours. */
const patienceMilliseconds = 2000;
const sorryMilliseconds = 1000;
/** Bytes of answers that have been given and wait for the database to be kept. */
const mostWaitingBytes = 64 * 2 ** 20;

/** What one of several same requests that ask at once tells the others: the answer, a refusal for all, or that the next may try. */
type Outcome = ReplayRecord | Fault | undefined;

interface Attempt {
  readonly fingerprint: Buffer;
  readonly outcome: Promise<Outcome>;
}

/**
 * One answer for all requests with the same key of a user, for 24 hours. Only an answer that ended well is kept, before its end is sent; every other end
 * frees the key: a refusal, an error inside of a stream, a client that leaves in the middle, a process that dies. While the database is away such requests
 * are refused: what cannot be remembered is not spent.
 */
export async function openIdempotency({ store, seal, boot, pepper, clock, longestSeconds, log }: IdempotencyDeps): Promise<Idempotency> {
  const claims = openClaims(store, boot);
  if (store.kind === 'embedded') await claims.freeAll(); // nobody else has the folder: who was answering is gone
  const beats = openBeats(claims, clock, log);
  const room = openRoom(claims, clock);
  const turns = new Map<string, Attempt>();
  const endings = new Set<Promise<void>>();
  let waitingBytes = 0;
  let isClosed = false;

  async function once({ exchange, caller, bytes }: Asked, key: string, run: () => Promise<void>): Promise<void> {
    const request = keyed({ userId: caller.userId, key, method: exchange.method, url: exchange.url, body: bytes }, pepper);
    const place = placeOf(request);
    exchange.expire(longestSeconds());
    for (;;) {
      const turn = turns.get(place);
      if (!turn) return lead(request, exchange, run);
      if (!turn.fingerprint.equals(request.fingerprint)) throw anotherRequest();
      const outcome = await orAborted(turn.outcome, exchange.signal);
      if (outcome instanceof Fault) throw outcome;
      if (outcome) return replay(exchange, outcome);
    }
  }

  /** The one of this process that asks the database; the others with its key wait for it. */
  async function lead(request: Keyed, exchange: Exchange, run: () => Promise<void>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const place = placeOf(request);
    turns.set(place, { fingerprint: request.fingerprint, outcome: promise });
    const end = (outcome: Outcome) => {
      turns.delete(place);
      resolve(outcome);
    };
    let found: ReplayRecord | Mine;
    try {
      found = await claimed(request, exchange.signal);
    } catch (error) {
      end(error instanceof Fault && !exchange.signal.aborted ? error : undefined);
      throw error;
    }
    if ('claim' in found) return answer({ request, mine: found, end }, exchange, run);
    end(found);
    await replay(exchange, found);
  }

  /** @returns our claim, or the answer there is */
  async function claimed(request: Keyed, signal: AbortSignal): Promise<Mine | ReplayRecord> {
    for (;;) {
      const since = clock.monotonic();
      const found = await claims.take(request);
      if (found.type === 'mine') return admitted(request, { claim: found.claim, since }, signal);
      if (!found.fingerprint.equals(request.fingerprint)) throw anotherRequest();
      if (found.type === 'kept') return unpack(seal.open(found.sealed, contextOf(request)));
      await beats.over(found.claim, signal);
    }
  }

  async function admitted({ userId }: Keyed, mine: Mine, signal: AbortSignal): Promise<Mine> {
    try {
      await room.enter(userId);
      signal.throwIfAborted();
      return mine;
    } catch (error) {
      await freed(mine.claim);
      throw error;
    }
  }

  interface Claimed {
    readonly request: Keyed;
    readonly mine: Mine;
    readonly end: (outcome: Outcome) => void;
  }

  /** Runs the request with its end held back until the answer is kept. Where the key may be another process's, the run ends: it may begin there. */
  async function answer({ request, mine: { claim, since }, end }: Claimed, exchange: Exchange, run: () => Promise<void>): Promise<void> {
    const ours = new AbortController();
    let isRunning = true;
    const release = beats.hold(claim, since, () => {
      ours.abort();
      if (isRunning) exchange.cut(lostKey());
    });
    const letGo = () => {
      isRunning = false;
      release();
    };
    const recording = exchange.record(mostBytes);
    const giveUp = () => {
      letGo();
      ending(freed(claim).then(() => end(undefined)));
    };
    try {
      await run();
    } catch (error) {
      exchange.release();
      giveUp();
      throw error;
    }
    isRunning = false;
    const { sent } = recording;
    if (!sent || sent.status < 200 || sent.status > 299) {
      exchange.release(recording.isTooLarge ? ['x-dragoman-warnings', 'Idempotency-Key: the answer is too large to be kept'] : []);
      return giveUp();
    }
    const kept: ReplayRecord = { ...sent, requestId: exchange.id };
    const keeping = keep(request, claim, kept, ours.signal).finally(letGo);
    ending(keeping);
    await within(patienceMilliseconds, keeping);
    exchange.release();
    end(kept);
  }

  /** Never rejects: an answer that cannot be kept is an answer all the same. @param ours aborted when the claim may be another's */
  async function keep(request: Keyed, claim: string, kept: ReplayRecord, ours: AbortSignal): Promise<void> {
    try {
      const sealed = seal.seal(pack(kept), contextOf(request));
      room.took(request.userId, sealed.length);
      if (!(await patiently(() => claims.keep(claim, sealed), sealed.length, ours))) throw new Error('The claim was over: it could not be renewed in time.');
    } catch (error) {
      log('An idempotent answer was not kept.', error);
      await freed(claim);
    }
  }

  /** Asks a database that is away again and again, while the claim is ours and not too much waits. */
  async function patiently(work: () => Promise<boolean>, bytes: number, ours: AbortSignal): Promise<boolean> {
    waitingBytes += bytes;
    try {
      for (;;) {
        try {
          return await work();
        } catch (error) {
          const isAway = error instanceof Fault && error.code === 'overloaded';
          if (!isAway || isClosed || ours.aborted || waitingBytes > mostWaitingBytes) throw error;
          await clock.sleep(sorryMilliseconds);
        }
      }
    } finally {
      waitingBytes -= bytes;
    }
  }

  /** Never rejects: what cannot be freed is free when its lease is over. */
  async function freed(claim: string): Promise<void> {
    await claims.free(claim).catch((error: unknown) => log('An idempotency key is free only after its lease.', error));
  }

  async function within(milliseconds: number, work: Promise<unknown>): Promise<void> {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const cancel = clock.after(milliseconds, resolve);
    await Promise.race([work, over]);
    cancel();
  }

  function ending(work: Promise<void>): void {
    endings.add(work);
    void work.finally(() => endings.delete(work));
  }

  return {
    once,
    async close() {
      isClosed = true;
      await within(patienceMilliseconds, Promise.all(Array.from(turns.values(), ({ outcome }) => outcome)));
      beats.stop();
      await Promise.all(endings);
    },
  };
}

/** The key is ours, and was asked for at this time (monotonic milliseconds). */
interface Mine {
  readonly claim: string;
  readonly since: number;
}

const lostKey = () =>
  new Fault('overloaded', 'The database was away for too long to hold the Idempotency-Key of this request: please try again.', { retryAfter: 1 });

const placeOf = ({ userId, name }: Keyed) => `${userId}/${name.toString('base64url')}`;
const contextOf = (request: Keyed) => `idempotency/${placeOf(request)}`;

const anotherRequest = () =>
  new Fault('unprocessable', 'Another request was sent with this Idempotency-Key before: use a new key for a new request.', { field: 'Idempotency-Key' });
