import type { Call } from '#model/call';
import type { Model } from '#model/target';
import type { Reservation } from './ledger/index.ts';

/** A call whose model name has been found. `movesOn`: should every target fail, another model is asked. */
export type RoutedCall = Call & { readonly route: Model; readonly movesOn?: boolean };

/** A call that may spend. */
export type AdmittedCall = RoutedCall & { readonly reservation: Reservation };
