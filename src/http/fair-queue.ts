import type { Caller } from '#core/context';
import { Fault } from '#core/fault';
import type { Clock } from '#kit/async/clock';
import { lastInTurn } from '#kit/async/turn-end';

/** Requests that begin in one turn of the event loop. Each takes the loop 0.1 to 1 ms, and whoever else wants an answer waits for all of them. As many are refused at most, so that there is time for the others. */
const fewEachTurn = 16;
/** The same in a turn in which a connection was accepted: the runtime accepts one a turn, and more may wait for that, health checks among them. */
const fewestEachTurn = 2;
/** What refusing a request costs, as a part of what answering one does; and what accepting a connection costs, with the shorter turn that it causes. */
const costOfRefusal = 0.25;
const costOfConnection = 2;
/** Requests that may wait when a burst arrives: as many as there are connections by default. */
const burstPlaces = 10_000;
/** Milliseconds of uninterrupted waiting from which it is no burst any more: more arrives than can be answered. */
const burstMilliseconds = 2000;
/** Seconds that a request may have to wait then. */
const mostWaitSeconds = 2;
/** Milliseconds of waiting after which the number of places is found anew. */
const measuredMilliseconds = 2000;
/** One for each second after which a refused request may come back: they come back at different times. Made once: under such a load a refusal must cost little. */
const refusals = [1, 2, 3, 4, 5].map(
  (retryAfter) =>
    new Fault('overloaded', 'More requests arrive than the server can answer at the moment: send this one again in a few seconds.', { retryAfter }),
);

export interface FairQueueDeps {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** From 0 to less than 1; absent: `Math.random`. */
  readonly chance?: () => number;
  /** Runs at the end of this turn of the event loop. Absent: `lastInTurn`. */
  readonly atTurnEnd?: (run: () => void) => void;
}

/** A request that waits for its turn. */
export interface Waiting {
  readonly caller: Pick<Caller, 'userId'> | undefined;
  readonly signal: { readonly aborted: boolean };
}

interface Place {
  readonly request: Waiting;
  readonly enter: () => void;
  readonly refuse: (fault: Fault) => void;
}

/**
 * The queue of the requests with a credential, other than GETs. A few begin in each turn of the event loop, so that it comes round quickly however many arrive;
 * the rest wait, and their users take turns: who sends a thousand waits behind his own. When the queue has not been empty for two seconds, more arrives than
 * the process can answer: then only as many may wait as could begin in two seconds, each user's share of them, and further ones are refused, some in each turn.
 * A body is not read before its request begins. A fair semaphore (`kit/async`) bounds what runs; this bounds what begins, however long it runs then.
 */
export class FairQueue {
  readonly #deps: Required<FairQueueDeps>;
  /** Of each user who waits, the requests in the order in which they came. The user whose turn is next is first. */
  readonly #lines = new Map<number, Set<Place>>();
  #waiting = 0;
  /** Begun in this turn of the event loop. */
  #begun = 0;
  /** Those that are refused in one of the next turns, unless there is room for them by then. */
  readonly #left: Place[] = [];
  /** In this turn. */
  #refused = 0;
  #hasAccepted = false;
  #isTurnEndAwaited = false;
  #places = burstPlaces;
  /** Monotonic milliseconds: when the first of those came who have waited without a pause since, and when the counting of `#worked` began. */
  #waitingSince = 0;
  #countedSince = 0;
  /** Requests begun, and what refusals and connections cost, in requests. */
  #worked = 0;

  constructor({ clock, chance = Math.random, atTurnEnd = lastInTurn }: FairQueueDeps) {
    this.#deps = { clock, chance, atTurnEnd };
  }

  get waiting(): number {
    return this.#waiting + this.#left.length;
  }

  /**
   * Puts a request at the end of its user's line.
   * @returns `undefined` where it may begin now; else it resolves when it may, or when it has been aborted
   * @throws Fault `overloaded` where too many wait, now or later
   */
  enter(request: Waiting): Promise<void> | undefined {
    this.#awaitTurnEnd();
    if (this.#waiting === 0 && this.#begun < fewEachTurn) {
      this.#begun++;
      return undefined;
    }
    const hasRoom = this.#hasRoom(request);
    if (!hasRoom && (this.#refused < this.#mostNow || this.#left.length === burstPlaces)) throw this.#refusal();
    return new Promise((enter, refuse) => {
      const place = { request, enter, refuse };
      if (hasRoom) this.#put(place);
      else this.#left.push(place);
    });
  }

  /** A connection has been accepted in this turn. */
  accepted(): void {
    this.#hasAccepted = true;
    this.#worked += costOfConnection;
  }

  /** When all places are taken, a user with less than an equal share of them still gets one, of as many again. */
  #hasRoom(request: Waiting): boolean {
    const taken = this.#lines.get(ownerOf(request))?.size ?? 0;
    const users = this.#lines.size + (taken === 0 ? 1 : 0);
    return this.#waiting < this.#places || (taken < this.#places / users && this.#waiting < 2 * this.#places);
  }

  #put(place: Place): void {
    const owner = ownerOf(place.request);
    if (this.#waiting++ === 0) {
      this.#waitingSince = this.#countedSince = this.#deps.clock.monotonic();
      this.#worked = 0;
    }
    const line = this.#lines.get(owner);
    if (line) line.add(place);
    else this.#lines.set(owner, new Set([place]));
  }

  get #mostNow(): number {
    return this.#hasAccepted ? fewestEachTurn : fewEachTurn;
  }

  #refusal(): Fault {
    this.#refused++;
    this.#worked += costOfRefusal;
    return refusals[Math.floor(refusals.length * this.#deps.chance())]!;
  }

  #awaitTurnEnd(): void {
    if (this.#isTurnEndAwaited) return;
    this.#isTurnEndAwaited = true;
    this.#deps.atTurnEnd(this.#nextTurn);
  }

  readonly #nextTurn = (): void => {
    this.#isTurnEndAwaited = false;
    const most = this.#mostNow;
    this.#begun = this.#refused = 0;
    this.#hasAccepted = false;
    if (this.#waiting === 0 && this.#left.length === 0) return;
    for (const [owner, line] of this.#lines) {
      if (this.#begun >= most) break;
      this.#lines.delete(owner);
      this.#begin(line);
      if (line.size > 0) this.#lines.set(owner, line);
    }
    this.#lookAtLeft(most);
    this.#measure();
    this.#awaitTurnEnd();
  };

  /** Puts those that were left in the places that are free now, and refuses some of the others. */
  #lookAtLeft(most: number): void {
    let looked = 0;
    for (const place of this.#left) {
      if (this.#refused === most) break;
      looked++;
      if (place.request.signal.aborted) place.enter();
      else if (this.#hasRoom(place.request)) this.#put(place);
      else place.refuse(this.#refusal());
    }
    this.#left.splice(0, looked);
  }

  /** Begins the first request of a line that is still wanted. */
  #begin(line: Set<Place>): void {
    for (const place of line) {
      line.delete(place);
      this.#waiting--;
      place.enter();
      if (place.request.signal.aborted) continue;
      this.#begun++;
      this.#worked++;
      return;
    }
  }

  /** Finds how many may wait. */
  #measure(): void {
    const now = this.#deps.clock.monotonic();
    const milliseconds = now - this.#countedSince;
    if (this.#waiting === 0) this.#places = burstPlaces;
    else if (milliseconds < measuredMilliseconds) return;
    else if (now - this.#waitingSince >= burstMilliseconds) this.#places = Math.max(fewEachTurn, (mostWaitSeconds * 1000 * this.#worked) / milliseconds);
    this.#countedSince = now;
    this.#worked = 0;
  }
}

const ownerOf = ({ caller }: Waiting): number => caller?.userId ?? 0;
