import type { GenerateCall } from '#core/call';
import { decoding, type Decoder } from '../../shared/decoder.ts';
import { reader } from './decode-answer.ts';
import { malformed } from './faults.ts';
import { dialect } from './wire.ts';

/** A response stream → events. @param call clients of this wire see what hosted tools are doing */
export const decoder = (model: string, ignored: readonly string[] = [], call?: Pick<GenerateCall, 'dialect'>): Decoder =>
  decoding(reader(model, ignored, call?.dialect === dialect), malformed);
