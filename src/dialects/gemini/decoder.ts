import { decoding, type Decoder } from '../shared/decoder.ts';
import { reader } from './decode-answer.ts';
import { malformed } from './faults.ts';

/** A stream of generated content → events. */
export function decoder(model: string, ignored: readonly string[] = []): Decoder {
  return decoding(reader(model, ignored), malformed, callMarker);
}

/** Stands in every answer with arguments of a call, which alone are written again. */
export const callMarker = '"functionCall"';
