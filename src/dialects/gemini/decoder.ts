import type { GenerateCall } from '#core/call';
import { isWebSearch } from '#core/conversation';
import { decoding, type Decoder } from '../shared/decoder.ts';
import { reader } from './decode-answer.ts';
import { malformed } from './faults.ts';

/** A stream of generated content → events. @param call where it lets the model search, citations are reported, and text is buffered for them */
export function decoder(model: string, ignored: readonly string[] = [], call?: Pick<GenerateCall, 'tools'>): Decoder {
  return decoding(reader(model, ignored, { cites: call?.tools.some(isWebSearch) ?? false }), malformed, callMarker);
}

/** Stands in every answer with arguments of a call, which alone are written again. */
export const callMarker = '"functionCall"';
