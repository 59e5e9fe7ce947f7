import { decoding, type Decoder } from '../../shared/decoder.ts';
import { reader } from './decode-answer.ts';
import { malformed } from './faults.ts';

/**
 * A chat completion stream → events.
 *
 * @param model the upstream's name for it, for answers that do not report one
 * @param ignored goes into `started`
 */
export const decoder = (model: string, ignored: readonly string[] = []): Decoder => decoding(reader(model, ignored), malformed);
