import type { ClientSide } from '../../dialect.ts';
import type { ChatAnswer } from '../chat/encoder.ts';
import { encodeFault, type OpenAIError } from '../faults.ts';
import { decodeRequest } from './decode-request.ts';
import { encoder } from './encoder.ts';
import { encodeResult } from './result.ts';
import { dialect } from './wire.ts';

/** The client's side of the older completions; providers are asked in the words of chat. */
export const completions: ClientSide<{ readonly outside: void; readonly answer: ChatAnswer; readonly fault: OpenAIError }> = {
  name: dialect,
  decodeRequest: (body) => decodeRequest(body).call,
  encoder,
  encodeResult,
  encodeFault,
};
