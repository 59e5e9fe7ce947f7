import { choiceHeaders } from '#core/choice-headers';
import type { Caller } from '#core/context';
import type { Exchange } from '#http/exchange';
import type { Headers } from '#http/headers';
import type { Asked, Once } from '#http/route';
import type { Clock } from '#kit/async/clock';
import { orAborted } from '#kit/async/or-aborted';
import type { Sealer } from '#kit/crypto/sealing';
import { Fault } from '#core/fault';
import type { Store } from '#store/open';
import { isAway } from '#store/patience';
import { openBeats, type Beats } from './beats.ts';
import { openClaims, type Claims } from './claims.ts';
import { keyed, type Keyed } from './key.ts';
import { pack, replay, unpack, type ReplayRecord } from './replay-record.ts';
import { openRoom, type Room } from './room.ts';

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
  /** What is left of the caller's limits, as an answer's headers say it. */
  readonly limitHeaders: (caller: Caller) => Headers;
  readonly log: (problem: string, cause: unknown) => void;
}

export interface Idempotency {
  readonly once: Once;
  /** Waits until what has ended is written. */
  close(): Promise<void>;
}

/** Bytes of an answer's body. */
const mostBytes = 8 * 2 ** 20;
/** How long the end of an answer waits for the database. After that it is sent all the same, and kept later while the key is ours. */
const patienceMilliseconds = 2000;
const retryMilliseconds = 1000;
/** Bytes of answers that have been given and wait for the database to be kept. */
const mostWaitingBytes = 64 * 2 ** 20;

/** How the first of several concurrent requests with one key ended: the answer for all, a fault for all, or undefined: the next one may try. */
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
export async function openIdempotency(deps: IdempotencyDeps): Promise<Idempotency> {
  const claims = openClaims(deps.store, deps.boot);
  if (deps.store.kind === 'embedded') await claims.freeAll(); // no other process has the folder: whoever was answering is gone
  const once = new OncePerKey(deps, claims);
  return { once: (asked, key, run) => once.answer(asked, key, run), close: () => once.close() };
}

interface Claimed {
  readonly request: Keyed;
  readonly mine: Mine;
  readonly end: (outcome: Outcome) => void;
}

class OncePerKey {
  readonly #deps: IdempotencyDeps;
  readonly #claims: Claims;
  readonly #beats: Beats;
  readonly #room: Room;
  /** The requests of this process that have a key, by user and key. */
  readonly #attempts = new Map<string, Attempt>();
  readonly #endings = new Set<Promise<void>>();
  #waitingBytes = 0;
  #isClosed = false;

  constructor(deps: IdempotencyDeps, claims: Claims) {
    this.#deps = deps;
    this.#claims = claims;
    this.#beats = openBeats(claims, deps.clock, deps.log);
    this.#room = openRoom(claims, deps.clock);
  }

  async answer(asked: Asked, key: string, run: () => Promise<void>): Promise<void> {
    const { exchange, caller, bytes } = asked;
    const { pepper, longestSeconds } = this.#deps;
    const request = keyed({ caller, key, method: exchange.method, url: exchange.url, choices: choicesOf(exchange), body: bytes }, pepper);
    const place = placeOf(request);
    exchange.expire(longestSeconds());
    for (;;) {
      const attempt = this.#attempts.get(place);
      if (!attempt) return this.#lead(request, asked, run);
      if (!attempt.fingerprint.equals(request.fingerprint)) throw otherRequestFault();
      const outcome = await orAborted(attempt.outcome, exchange.signal);
      if (outcome instanceof Fault) throw outcome;
      if (outcome) return replay(exchange, outcome, this.#deps.limitHeaders(caller));
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#within(patienceMilliseconds, Promise.all(Array.from(this.#attempts.values(), ({ outcome }) => outcome)));
    this.#beats.stop();
    await Promise.all(this.#endings);
  }

  /** The one request of this process that asks the database; the others with its key wait for it. */
  async #lead(request: Keyed, { exchange, caller }: Asked, run: () => Promise<void>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const place = placeOf(request);
    this.#attempts.set(place, { fingerprint: request.fingerprint, outcome: promise });
    const end = (outcome: Outcome) => {
      this.#attempts.delete(place);
      resolve(outcome);
    };
    let found: ReplayRecord | Mine;
    try {
      found = await this.#claimed(request, exchange.signal);
    } catch (error) {
      end(error instanceof Fault && !exchange.signal.aborted ? error : undefined);
      throw error;
    }
    if ('claim' in found) return this.#run({ request, mine: found, end }, exchange, run);
    end(found);
    await replay(exchange, found, this.#deps.limitHeaders(caller));
  }

  /** @returns our claim, or the answer that is kept */
  async #claimed(request: Keyed, signal: AbortSignal): Promise<Mine | ReplayRecord> {
    const { clock, seal } = this.#deps;
    for (;;) {
      const since = clock.monotonic();
      const found = await this.#claims.take(request);
      if (found.type === 'mine') return this.#admitted(request, { claim: found.claim, since }, signal);
      if (!found.fingerprint.equals(request.fingerprint)) throw otherRequestFault();
      if (found.type === 'kept') return unpack(seal.open(found.sealed, contextOf(request)));
      await this.#beats.over(found.claim, signal);
    }
  }

  async #admitted({ userId }: Keyed, mine: Mine, signal: AbortSignal): Promise<Mine> {
    try {
      await this.#room.enter(userId);
      signal.throwIfAborted();
      return mine;
    } catch (error) {
      await this.#free(mine.claim);
      throw error;
    }
  }

  /** Runs the request, and holds its end back until the answer is kept. Where another process may have the key, the run ends: it may begin there. */
  async #run({ request, mine: { claim, since }, end }: Claimed, exchange: Exchange, run: () => Promise<void>): Promise<void> {
    const ours = new AbortController();
    let isRunning = true;
    const release = this.#beats.hold(claim, since, () => {
      ours.abort();
      if (isRunning) exchange.cut(lostKeyFault());
    });
    const letGo = () => {
      isRunning = false;
      release();
    };
    const recording = exchange.record(mostBytes);
    /** The key is free before the client sees that the try failed: what it sends then may be another request. */
    const giveUp = async () => {
      letGo();
      const freed = this.#free(claim).then(() => end(undefined));
      this.#track(freed);
      await this.#within(patienceMilliseconds, freed);
    };
    try {
      await run();
    } catch (error) {
      await giveUp();
      exchange.release();
      throw error;
    }
    isRunning = false;
    const { sent } = recording;
    if (!sent || sent.status < 200 || sent.status > 299) {
      await giveUp();
      return exchange.release(recording.isTooLarge ? ['x-dragoman-warnings', 'Idempotency-Key: the answer is too large to be kept'] : []);
    }
    const kept: ReplayRecord = { ...sent, requestId: exchange.id };
    const keeping = this.#keep(request, claim, kept, ours.signal).finally(letGo);
    this.#track(keeping);
    await this.#within(patienceMilliseconds, keeping);
    exchange.release();
    end(kept);
  }

  /** Never rejects: an answer that cannot be kept is still given. @param ours aborted when another process may have the claim */
  async #keep(request: Keyed, claim: string, kept: ReplayRecord, ours: AbortSignal): Promise<void> {
    try {
      const sealed = this.#deps.seal.seal(pack(kept), contextOf(request));
      this.#room.took(request.userId, sealed.length);
      if (!(await this.#retried(() => this.#claims.keep(claim, sealed), sealed.length, ours)))
        throw new Error('The claim was over: it could not be renewed in time.');
    } catch (error) {
      this.#deps.log('An idempotent answer was not kept.', error);
      await this.#free(claim);
    }
  }

  /** Retries while the database is away, the claim is ours and not too much waits. */
  async #retried(work: () => Promise<boolean>, bytes: number, ours: AbortSignal): Promise<boolean> {
    this.#waitingBytes += bytes;
    try {
      for (;;) {
        try {
          return await work();
        } catch (error) {
          if (!isAway(error) || this.#isClosed || ours.aborted || this.#waitingBytes > mostWaitingBytes) throw error;
          await this.#deps.clock.sleep(retryMilliseconds);
        }
      }
    } finally {
      this.#waitingBytes -= bytes;
    }
  }

  /** Never rejects: a claim that cannot be freed is free when its lease is over. */
  async #free(claim: string): Promise<void> {
    await this.#claims.free(claim).catch((error: unknown) => this.#deps.log('An idempotency key is free only after its lease.', error));
  }

  async #within(milliseconds: number, work: Promise<unknown>): Promise<void> {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const cancel = this.#deps.clock.after(milliseconds, resolve);
    await Promise.race([work, over]);
    cancel();
  }

  /** Work that `close` waits for. */
  #track(work: Promise<void>): void {
    this.#endings.add(work);
    void work.finally(() => this.#endings.delete(work));
  }
}

/** The headers that choose what is answered; the others tell only how it is booked or cached. */
function choicesOf(exchange: Exchange): readonly string[] {
  return [choiceHeaders.targets, choiceHeaders.strict].flatMap((name) => {
    const value = exchange.header(name);
    return value === undefined ? [] : [name, value];
  });
}

/** The key is ours, and was asked for at this time (monotonic milliseconds). */
interface Mine {
  readonly claim: string;
  readonly since: number;
}

const lostKeyFault = () =>
  new Fault('overloaded', 'The database was away for too long to hold the Idempotency-Key of this request: please try again.', { retryAfter: 1 });

const placeOf = ({ userId, name }: Keyed) => `${userId}/${name.toString('base64url')}`;
const contextOf = (request: Keyed) => `idempotency/${placeOf(request)}`;

const otherRequestFault = () =>
  new Fault('unprocessable', 'Another request was sent with this Idempotency-Key before: use a new key for a new request.', { field: 'Idempotency-Key' });
