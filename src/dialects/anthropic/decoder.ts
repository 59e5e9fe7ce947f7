import { decoding, type Decoder } from '../shared/decoder.ts';
import { reader } from './decode-answer.ts';
import { malformed } from './faults.ts';

/** A message stream → events. */
export const decoder = (model: string, ignored: readonly string[] = []): Decoder => decoding(reader(model, ignored), malformed, callMarker);

/** Stands in every answer with arguments of a call, which alone are written again. Most streams have them as text, in pieces; some servers send them at once. */
export const callMarker = '"tool_use"';
