import type { Clock } from '#kit/async/clock';

/** Requests that begin before another connection is read again. A refusal costs a quarter of an answer: so an eighth of the time goes into refusing at most. */
const begunForEach = 2;
/** Milliseconds: the longest time after which a refused request is told to come back. */
const longestMilliseconds = 5000;
/** Connections that are read again in one turn of the event loop when no request waits any more. */
const mostInTurn = 500;

export interface Connection {
  readonly destroyed: boolean;
  /** Stops and starts reading. */
  pause(): void;
  resume(): void;
}

/**
 * Connections whose last request was refused because more arrives than can be answered. They are not read for a while: with clients that ask again at once,
 * all of the process's time would go into refusing. What such a client sends waits in the system's buffers.
 */
export class RestingConnections {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** Since when (monotonic milliseconds), in this order. */
  readonly #resting = new Map<Connection, number>();
  #begun = 0;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#resting.size;
  }

  add(connection: Connection): void {
    if (connection.destroyed || this.#resting.has(connection)) return;
    connection.pause();
    this.#resting.set(connection, this.#clock.monotonic());
  }

  /** Reads those again that have rested longest: one for every two requests that began in a turn of the event loop, and those that have rested for long enough. */
  begun(requests: number): void {
    this.#begun = this.#resting.size === 0 ? 0 : this.#begun + requests;
    const longAgo = this.#clock.monotonic() - longestMilliseconds;
    for (const [connection, since] of this.#resting) {
      if (this.#begun < begunForEach && since > longAgo) break;
      this.#begun = Math.max(0, this.#begun - begunForEach);
      this.#read(connection);
    }
  }

  /** No request waits any more: reads some of them again. */
  wake(): void {
    let left = mostInTurn;
    for (const connection of this.#resting.keys()) {
      if (left-- === 0) break;
      this.#read(connection);
    }
  }

  #read(connection: Connection): void {
    this.#resting.delete(connection);
    if (!connection.destroyed) connection.resume();
  }
}
