import { isConversation } from '#core/routed-call';
import type { Generate } from '#core/generate';
import type { Events } from '#core/event';
import type { Context } from '#core/context';
import { withoutPassthrough } from '#core/passthrough';
import type { RoutedCall } from '#core/routed-call';
import type { Ledger, Reservation } from '#ledger/index';

/** A call that may spend. */
export type AdmittedCall = RoutedCall & { readonly reservation: Reservation };

/**
 * Admission: lets in a call that its caller's plan can pay for, with what it may spend set aside when its answer is first read. The inner wrapper settles it,
 * however the call ends.
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
 * Admits a call that no provider answers (cache hit, refusal): no quota, and one row when it is settled.
 *
 * @throws Fault `overloaded` while nothing can be booked
 */
export function unreserved(ledger: Ledger, call: RoutedCall, context: Context): AdmittedCall {
  const { route } = call;
  const free = { ...call, route: { ...route, targets: [], rate: nothing, ...(route.price ? { price: nothing } : {}) } };
  return { ...free, reservation: ledger.free(free, context) };
}

const nothing = { input: 0, output: 0 };

async function* waiting(reservation: Promise<Reservation>, enter: (made: Reservation) => AsyncIterable<Events>): AsyncGenerator<Events> {
  yield* enter(await reservation);
}

/** The call as it is admitted: with a maximum where its answer cannot be ended later, without passthrough where its answer must be read. */
function withReservation(call: RoutedCall, reservation: Reservation): AdmittedCall {
  const { bound, isOpen } = reservation;
  if (!isConversation(call) || (bound === undefined && !isOpen)) return { ...call, reservation };
  if (bound === undefined) return { ...withoutPassthrough(call), reservation };
  const { passthrough } = call;
  return { ...call, ...(passthrough ? { passthrough: { ...passthrough, bound } } : {}), sampling: { ...call.sampling, maxTokens: bound }, reservation };
}
