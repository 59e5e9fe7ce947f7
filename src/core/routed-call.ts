import type { Call } from './call.ts';
import type { Model } from './target.ts';

/** A call whose model name has been found. `movesOn`: should every target fail, another model is asked. */
export type RoutedCall = Call & { readonly route: Model; readonly movesOn?: boolean };
