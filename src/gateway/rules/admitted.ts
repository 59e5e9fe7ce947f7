import { whenKnown } from '#kit/async/when-known';
import { isConversation } from '#core/routed-call';
import { inBothVerbs, wholeAnswer, type Generate } from '#core/generate';
import type { Events } from '#core/event';
import type { Context } from '#core/context';
import { withoutPassthrough } from '#core/passthrough';
import type { RoutedCall } from '#core/routed-call';
import type { Ledger, Reservation } from '#ledger/index';

/** A call that has been admitted to spend quota. */
export type AdmittedCall = RoutedCall & { readonly reservation: Reservation };

/**
 * Admission: admits a call that its caller's plan can pay for, and reserves its maximum cost when its answer is first read. The inner wrapper settles the
 * reservation, however the call ends.
 * @throws Fault `quota-spent`, `rate-limited`, `forbidden`, `overloaded`
 */
export function admitted(ledger: Ledger, inner: Generate<AdmittedCall>): Generate<RoutedCall> {
  const enter = (call: RoutedCall, context: Context, reservation: Reservation) => inner(withReservation(call, reservation), context);
  const answered = (call: RoutedCall, context: Context, reservation: Reservation) => wholeAnswer(inner, withReservation(call, reservation), context);
  return inBothVerbs(
    (call, context) => ({
      [Symbol.asyncIterator]() {
        const reservation = ledger.reserve(call, context);
        // Nearly every call is admitted at once: then no extra generator wraps its answer.
        const events = reservation instanceof Promise ? waiting(reservation, (made) => enter(call, context, made)) : enter(call, context, reservation);
        return events[Symbol.asyncIterator]();
      },
    }),
    (call, context) => whenKnown(ledger.reserve(call, context), (reservation) => answered(call, context, reservation)),
  );
}

/**
 * Admits a call that no provider answers (cache hit, refusal): no quota, and one row when it is settled.
 * @throws Fault `overloaded` while nothing can be booked
 */
export function unreserved(ledger: Ledger, call: RoutedCall, context: Context): AdmittedCall {
  const { route } = call;
  const free = { ...call, route: { ...route, targets: [], rate: nothing, price: nothing } };
  return { ...free, reservation: ledger.free(free, context) };
}

const nothing = { input: 0, output: 0 };

async function* waiting(reservation: Promise<Reservation>, enter: (made: Reservation) => AsyncIterable<Events>): AsyncGenerator<Events> {
  yield* enter(await reservation);
}

/** The admitted call: with a maximum if its answer cannot be cut short later, without passthrough if its answer must be read. */
function withReservation(call: RoutedCall, reservation: Reservation): AdmittedCall {
  const { bound, isOpen } = reservation;
  if (!isConversation(call) || (bound === undefined && !isOpen)) return { ...call, reservation };
  if (bound === undefined) return { ...withoutPassthrough(call), reservation };
  const { passthrough } = call;
  return { ...call, ...(passthrough ? { passthrough: { ...passthrough, bound } } : {}), sampling: { ...call.sampling, maxTokens: bound }, reservation };
}
