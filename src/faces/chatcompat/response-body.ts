import { turnsOf, nothingBefore } from '#dialects/openai/responses/decode-input';
import { callOf, requestOf } from '#dialects/openai/responses/decode-request';
import type { GenerateCall } from '#core/call';
import { Fault } from '#core/fault';
import { isObject } from '#core/json';
import type { FieldWords } from '../answer.ts';
import { fieldWords } from './responses/entry.ts';

/** Cursor asks for a chat completion with the body of a request for a response. https://forum.cursor.com/t/override-openai-base-url-sends-responses-api-payload-to-chat-completions-but-expects-chat-completions-output/159298 */
export function isForResponse(body: unknown): body is object {
  if (!isObject(body)) return false;
  const { input, messages } = body;
  return (typeof input === 'string' || Array.isArray(input)) && (messages === undefined || (Array.isArray(messages) && messages.length === 0));
}

/** @throws Fault `invalid`, naming the field as the client spelled it */
export function decodeResponseBody(body: object): {
  readonly call: GenerateCall;
  readonly usageWanted: boolean;
  readonly named: FieldWords;
} {
  const { messages: _, ...asked } = body as { readonly messages?: unknown };
  const request = requestOf(asked);
  for (const field of ['previous_response_id', 'conversation', 'background'] as const)
    if (request[field]) throw new Fault('invalid', `${field} is understood by /responses only.`, { field });
  const said = turnsOf(request.input, nothingBefore);
  return { call: callOf(request, said), usageWanted: request.stream_options?.['include_usage'] === true, named: fieldWords(request, { said }) };
}
