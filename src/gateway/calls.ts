import type { GenerateCall } from '#model/call';
import type { Model } from '#model/target';
import type { Reservation } from './ledger/index.ts';

/** A call whose model name has been found. */
export interface RoutedCall extends GenerateCall {
  readonly route: Model;
}

/** A call that may spend. */
export interface AdmittedCall extends RoutedCall {
  readonly reservation: Reservation;
}
