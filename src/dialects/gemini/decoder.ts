import type { GenerateCall } from '#core/call';
import { isWebSearch } from '#core/conversation';
import { decoding, type Decoder } from '../shared/decoder.ts';
import { reader } from './decode-answer.ts';
import { malformed } from './faults.ts';

/**
 * A stream of generated content → events.
 *
 * @param model the upstream's name for it, for answers that do not report one
 * @param ignored goes into `started`
 * @param call where it lets the model search, citations are reported, and text is kept for that
 */
export function decoder(model: string, ignored: readonly string[] = [], call?: Pick<GenerateCall, 'tools'>): Decoder {
  return decoding(reader(model, ignored, { cites: call?.tools.some(isWebSearch) ?? false }), malformed);
}
