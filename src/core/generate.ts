import type { GenerateCall } from './call.ts';
import type { Context } from './context.ts';
import type { Events } from './event.ts';
import type { Call } from './routed-call.ts';

/** Everything that happens to one call is a function of this type, wrapped around another. */
export type Generate<Asked extends Call = GenerateCall> = (call: Asked, context: Context) => AsyncIterable<Events>;
