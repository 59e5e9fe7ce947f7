import type { Clock } from '#kit/async/clock';
import type { LeaseSource } from '#core/lease';
import type { Shipper } from './shipper.ts';

/** Milliseconds that a first lease waits for rows to be shipped: while a large backlog is, calls are let in all the same. */
const patience = 1000;

/**
 * A source that books what this machine has written before it grants the first lease of an account. The limit may have been set a moment ago: what its owner used
 * before that is in no lease, so the database knows only what is booked.
 */
export function leaseAfterShipping(source: LeaseSource, shipper: Pick<Shipper, 'shipWritten'>, clock: Clock): LeaseSource {
  /** A message has waited in vain, and what it waited for is not shipped yet: the next one, which may have waited for that message, does not wait as well. */
  let isOverdue = false;
  const shipped = async () => {
    const late = new AbortController();
    const shipping = shipper.shipWritten().then(() => (isOverdue = false));
    const over = clock.sleep(patience, late.signal).then(
      () => (isOverdue = true),
      () => {},
    );
    await Promise.race([shipping, over]);
    late.abort();
  };
  return {
    ...source,
    async lease(asks) {
      if (!isOverdue && asks.some(({ isFirst, account }) => isFirst && account.month !== '')) await shipped();
      return source.lease(asks);
    },
  };
}
