import type { Call } from '#model/call';
import type { Model } from '#model/target';
import type { Reservation } from './ledger/index.ts';

/** A call whose model name has been found. */
export type RoutedCall = Call & { readonly route: Model };

/** A call that may spend. */
export type AdmittedCall = RoutedCall & { readonly reservation: Reservation };
