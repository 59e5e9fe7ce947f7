import { Fault } from '#core/fault';
import type { Clock } from '#kit/async/clock';
import type { Exchange } from './exchange.ts';

/** 1 KB a second, over the whole body. */
export const leastBytesPerMillisecond = 1;

interface ArrivingOptions {
  /** Seconds without a byte. */
  readonly idleSeconds: number;
  readonly clock: Clock;
  /** Ends the wait for more where the body is refused meanwhile. */
  readonly failure: { readonly promise: Promise<never>; reject(fault: Fault): void };
}

/**
 * The pieces of a body that is read as it arrives. Only the wait for more is timed, not what is done with a piece.
 * @throws Fault `slow-client`, `invalid` where the client leaves
 */
export async function* arriving(exchange: Exchange, { idleSeconds, clock, failure }: ArrivingOptions): AsyncGenerator<Buffer> {
  const { incoming } = exchange;
  const chunks = incoming.iterator({ destroyOnReturn: false }) as AsyncIterableIterator<Buffer, undefined>;
  const slow = (cut?: Fault) => failure.reject(cut ?? tooSlow());
  incoming.on('slow', slow);
  const startedAt = clock.monotonic();
  const patience = idleSeconds * 1000;
  let size = 0;
  try {
    for (;;) {
      exchange.bodyUntil = Math.min(clock.monotonic() + patience, startedAt + patience + size / leastBytesPerMillisecond);
      const { done, value }: IteratorResult<Buffer, undefined> = await Promise.race([chunks.next().catch(gone), failure.promise]);
      exchange.bodyUntil = Infinity;
      if (done) return;
      size += value.length;
      yield value;
    }
  } finally {
    exchange.bodyUntil = Infinity;
    incoming.off('slow', slow);
    if (!incoming.complete) incoming.removeAllListeners().pause(); // the iterator's listeners would keep the rest from being discarded
  }
}

export const tooSlow = () => new Fault('slow-client', 'The request body arrives too slowly.');
export const tooLarge = (bytes: number) => new Fault('too-large', `The request body is larger than ${bytes} bytes.`);

/** Bytes that are not HTTP end here too; a client that is gone gets no answer. */
export const leftOpen = (cause?: unknown) => new Fault('invalid', 'The connection closed before the body was complete.', { cause });

function gone(cause: unknown): never {
  throw leftOpen(cause);
}
