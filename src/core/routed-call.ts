import type { GenerateCall } from './call.ts';
import type { Model } from './target.ts';
import type { Task } from './task.ts';

/** Whatever goes through the gateway. */
export type Call = GenerateCall | Task;

/** Is it a conversation, to be answered with text? */
export const isConversation = (call: Call): call is GenerateCall => !('ask' in call);

/** A call whose model name has been found. `movesOn`: should every target fail, another model is asked. */
export type RoutedCall = Call & { readonly route: Model; readonly movesOn?: boolean };
