import type { Generate } from '#model/generate';
import type { AdmittedCall, RoutedCall } from './calls.ts';
import type { Ledger } from './ledger/index.ts';

/**
 * Lets a call in that its caller's plan can pay for, with what it may spend set aside. What the inner wrapper did not settle is given back.
 *
 * @throws Fault `quota-spent`, `rate-limited`, `forbidden`, `overloaded`
 */
export function admitted(ledger: Ledger, inner: Generate<AdmittedCall>): Generate<RoutedCall> {
  return async function* (call, context) {
    const reservation = await ledger.reserve(call, context);
    try {
      yield* inner({ ...reservation.bounded(call), reservation }, context);
    } finally {
      reservation.release();
    }
  };
}
