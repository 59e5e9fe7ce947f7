import type { GenerateCall } from '#core/call';
import { decoding, type Decoder } from '../shared/decoder.ts';
import { reader } from './decode-answer.ts';
import { malformed } from './faults.ts';

/** A stream of generated content → events. */
export const decoder = (model: string, ignored: readonly string[] = [], call?: Pick<GenerateCall, 'sampling'>): Decoder =>
  decoding(reader(model, ignored, { asked: call?.sampling.candidates }), malformed, callMarker);

/** Stands in every answer with arguments of a call, which alone are written again. */
export const callMarker = '"functionCall"';
