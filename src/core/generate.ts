import type { GenerateCall } from './call.ts';
import type { Context } from './context.ts';
import type { Events } from './event.ts';
import type { Call } from './routed-call.ts';

/** A rule about calls is a function of this type, wrapped around another. */
export type Generate<Asked extends Call = GenerateCall> = (call: Asked, context: Context) => AsyncIterable<Events>;
