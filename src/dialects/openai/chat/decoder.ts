import { decoding, type Decoder } from '../../shared/decoder.ts';
import { reader } from './decode-answer.ts';
import { malformed } from './faults.ts';

/**
 * A chat completion stream → events.
 *
 * @param model the model's upstream name, for answers that do not report one
 * @param ignored notes about ignored fields, reported by the `started` event
 */
export const decoder = (model: string, ignored: readonly string[] = []): Decoder => decoding(reader(model, ignored), malformed);
