import type { Clock } from '#kit/async/clock';
import type { LeaseSource } from '#core/lease';
import type { MachineLease } from './machine-lease.ts';

export interface LeaseOutboxDeps {
  readonly source: LeaseSource;
  readonly clock: Clock;
  /** Grants what is free of a lease to the workers that wait for it. */
  readonly serve: (lease: MachineLease) => void;
  /** The source had too little for a lease: other workers may have what they do not need. */
  readonly recall: (lease: MachineLease) => void;
  readonly log: (problem: string, cause: unknown) => void;
}

/** Messages of a machine to the source of its leases. What comes together goes in one message, and one is under way at a time, so that the source gets them in order. */
export class LeaseOutbox {
  readonly #deps: LeaseOutboxDeps;
  /** Leases with something for the source. */
  readonly #waiting = new Set<MachineLease>();
  #sending: Promise<void> | undefined;

  constructor(deps: LeaseOutboxDeps) {
    this.#deps = deps;
  }

  /** Reports these leases to the source with the next message. */
  add(...leases: readonly MachineLease[]): void {
    for (const lease of leases) this.#waiting.add(lease);
    queueMicrotask(() => void (this.#waiting.size > 0 && (this.#sending ??= this.#send())));
  }

  /** Gives back all that is free of these leases. Resolves when the source has answered. */
  async returnAll(leases: readonly MachineLease[]): Promise<void> {
    for (const lease of leases) lease.returnsAll = true;
    this.add(...leases);
    await Promise.resolve(); // others may add to this message
    await this.#sending;
  }

  async #send(): Promise<void> {
    while (this.#waiting.size > 0) {
      const leases = [...this.#waiting];
      this.#waiting.clear();
      const now = this.#deps.clock.monotonic();
      await this.#giveBack(
        leases.filter((lease) => lease.hasReturns(now)),
        now,
      );
      await this.#request(leases.filter(({ isAsking }) => isAsking));
    }
    this.#sending = undefined;
  }

  async #request(asking: readonly MachineLease[]): Promise<void> {
    if (asking.length === 0) return;
    const { source, clock, serve, recall } = this.#deps;
    const now = clock.monotonic();
    const requests = asking.map((lease) => lease.nextRequest(now));
    try {
      const grants = await source.lease(requests);
      for (const [at, lease] of asking.entries()) {
        lease.acknowledge();
        lease.granted(grants[at]!);
      }
      for (const lease of asking) serve(lease);
      for (const lease of asking) recall(lease);
    } catch (error) {
      for (const lease of asking) {
        lease.missed();
        serve(lease);
        lease.refuse(error);
      }
    }
  }

  async #giveBack(returning: readonly MachineLease[], now: number): Promise<void> {
    if (returning.length === 0) return;
    const { source, log } = this.#deps;
    try {
      await source.giveBack(returning.map((lease) => lease.returns(now)));
      for (const lease of returning) lease.acknowledge();
    } catch (error) {
      for (const lease of returning) lease.missed();
      log('A lease could not be given back.', error);
    }
  }
}
