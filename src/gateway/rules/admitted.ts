import { isConversation } from '#core/routed-call';
import type { Generate } from '#core/generate';
import type { Events } from '#core/event';
import type { Context } from '#core/context';
import type { RoutedCall } from '#core/routed-call';
import type { Ledger, Reservation } from '#ledger/index';

/** A call that may spend. */
export type AdmittedCall = RoutedCall & { readonly reservation: Reservation };

/**
 * Lets a call in that its caller's plan can pay for, with what it may spend set aside once somebody listens. The inner wrapper settles it, however
 * the call ends.
 *
 * @throws Fault `quota-spent`, `rate-limited`, `forbidden`, `overloaded`
 */
export function admitted(ledger: Ledger, inner: Generate<AdmittedCall>): Generate<RoutedCall> {
  const enter = (call: RoutedCall, context: Context, reservation: Reservation) => inner(withReservation(call, reservation), context);
  return (call, context) => ({
    [Symbol.asyncIterator]() {
      const reservation = ledger.reserve(call, context);
      // Nearly every call is let in at once: then no generator stands between it and its answer.
      const events = reservation instanceof Promise ? waiting(reservation, (made) => enter(call, context, made)) : enter(call, context, reservation);
      return events[Symbol.asyncIterator]();
    },
  });
}

/**
 * Lets a call in for which nobody is asked: nothing is set aside and nothing charged, and it has its row in the books.
 *
 * @throws Fault `overloaded` while nothing can be booked
 */
export function unreserved(ledger: Ledger, inner: Generate<AdmittedCall>): Generate<RoutedCall> {
  return async function* (call, context) {
    const { route } = call;
    const free = { ...call, route: { ...route, targets: [], rate: nothing, ...(route.price ? { price: nothing } : {}) } };
    yield* inner({ ...free, reservation: ledger.free(free, context) }, context);
  };
}

const nothing = { input: 0, output: 0 };

async function* waiting(reservation: Promise<Reservation>, enter: (made: Reservation) => AsyncIterable<Events>): AsyncGenerator<Events> {
  yield* enter(await reservation);
}

/** The call as it may go on: bounded where nobody could stop it, without its passthrough where somebody must listen. */
function withReservation(call: RoutedCall, reservation: Reservation): AdmittedCall {
  const { bound, isOpen } = reservation;
  if (!isConversation(call) || (bound === undefined && !isOpen)) return { ...call, reservation };
  const { passthrough, ...heard } = call;
  if (bound === undefined) return { ...heard, reservation };
  return { ...heard, ...(passthrough ? { passthrough: { ...passthrough, bound } } : {}), sampling: { ...call.sampling, maxTokens: bound }, reservation };
}
