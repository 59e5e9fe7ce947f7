import type { ClientSide } from '../../dialect.ts';
import type { ChatAnswer } from '../chat/encoder.ts';
import { decodeRequest } from './decode-request.ts';
import { encoder } from './encoder.ts';
import { encodeResult } from './result.ts';
import { dialect } from './wire.ts';

/** The client side of the legacy completions; providers are sent chat requests. */
export const completions: ClientSide<{ readonly outside: void; readonly answer: ChatAnswer }> = {
  name: dialect,
  decodeRequest: (body) => decodeRequest(body).call,
  encoder,
  encodeResult,
};
