import type { GenerateCall } from './call.ts';
import type { Model } from './target.ts';
import type { Task } from './task.ts';

/** Any call that goes through the gateway. */
export type Call = GenerateCall | Task;

/** Whether the call is a conversation, to be answered with text. */
export const isConversation = (call: Call): call is GenerateCall => !('ask' in call);

/** A call whose model name has been resolved. `movesOn`: if every target fails, another model is asked. */
export type RoutedCall = Call & { readonly route: Model; readonly movesOn?: boolean };
