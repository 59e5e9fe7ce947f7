import type { GenerateEvent } from '#model/event';
import type { Context, Generate } from '#model/generate';
import type { AdmittedCall, RoutedCall } from './calls.ts';
import type { Ledger, Reservation } from './ledger/index.ts';

/**
 * Lets a call in that its caller's plan can pay for, with what it may spend set aside. The inner wrapper settles it, however the call ends.
 *
 * @throws Fault `quota-spent`, `rate-limited`, `forbidden`, `overloaded`
 */
export function admitted(ledger: Ledger, inner: Generate<AdmittedCall>): Generate<RoutedCall> {
  const enter = (call: RoutedCall, context: Context, reservation: Reservation) => inner({ ...reservation.bounded(call), reservation }, context);
  return (call, context) => {
    const reservation = ledger.reserve(call, context);
    // Nearly every call is let in at once: then no generator stands between it and its answer.
    return reservation instanceof Promise ? waiting(reservation, (made) => enter(call, context, made)) : enter(call, context, reservation);
  };
}

async function* waiting(reservation: Promise<Reservation>, enter: (made: Reservation) => AsyncIterable<GenerateEvent>): AsyncGenerator<GenerateEvent> {
  yield* enter(await reservation);
}
