import type pg from 'pg';
import type { Clock } from '#kit/async/clock';
import { answers } from './connection.ts';
import { overloaded } from './sql-error.ts';
import type { StoreLog } from './log.ts';

export interface PresenceDeps {
  readonly url: string;
  readonly clock: Clock;
  readonly log: StoreLog;
}

/** How long a call waits for a server that is known to be away. */
const patienceMilliseconds = 500;
const probeMilliseconds = 500;

/** Whether the PostgreSQL server is there. A server that is away is probed in the background until it answers. */
export class Presence {
  /** Connections of an earlier generation were made before something went wrong with the server: they are not used again. */
  generation = 0;
  isClosed = false;
  readonly #deps: PresenceDeps;
  readonly #connecting = new Set<() => void>();
  /** Resolves when the server is back; present while it is away. */
  #back: PromiseWithResolvers<void> | undefined;
  #isProbing = false;

  constructor(deps: PresenceDeps) {
    this.#deps = deps;
  }

  get isAway(): boolean {
    return this.#back !== undefined;
  }

  /** Waits a moment for a server that is away. @throws Fault `overloaded` where it still is */
  async require(): Promise<void> {
    if (this.#back) await Promise.race([this.#back.promise, this.#deps.clock.sleep(patienceMilliseconds)]);
    if (this.#back) throw away();
  }

  /** Something went wrong with the server: probes it, and holds all calls back while it does not answer. */
  suspect(): void {
    if (this.#isProbing || this.isClosed) return;
    this.#isProbing = true;
    void this.#probe().finally(() => (this.#isProbing = false));
  }

  /** The connection, unless the server is found to be away first. @throws Fault `overloaded` */
  orAway(connection: Promise<pg.PoolClient>): Promise<pg.PoolClient> {
    return new Promise((resolve, reject) => {
      let hasLeft = false;
      const leave = () => {
        hasLeft = true;
        this.#connecting.delete(leave);
        reject(away());
      };
      this.#connecting.add(leave);
      connection.then(
        (client) => {
          this.#connecting.delete(leave);
          if (hasLeft) client.release(true);
          else resolve(client);
        },
        (error: unknown) => {
          this.#connecting.delete(leave);
          reject(error);
        },
      );
    });
  }

  async #probe(): Promise<void> {
    const { url, clock, log } = this.#deps;
    while (!this.isClosed && !(await answers(url))) {
      if (!this.#back) {
        log.warn({}, 'the database is away');
        this.#back = Promise.withResolvers();
        this.generation++;
        for (const leave of this.#connecting) leave();
      }
      await clock.sleep(probeMilliseconds);
    }
    if (!this.#back) return;
    if (!this.isClosed) log.info({}, 'the database is back');
    this.#back.resolve();
    this.#back = undefined;
  }
}

const away = () => overloaded('The database is away.');
