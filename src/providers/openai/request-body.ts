import { encodeRequest } from '#dialects/openai/chat/encode-request';
import type { Quirks } from '#dialects/openai/chat/quirks';
import { splice } from '#kit/json/scan';
import type { GenerateCall } from '#core/call';
import type { Passthrough } from '#core/passthrough';
import { written } from '../shared/write-request.ts';

/** The bytes for the provider: passed through the client's own with the model's name put in, else ours. */
export function requestBody(
  call: GenerateCall,
  model: string,
  quirks: Quirks | undefined,
): { body: Uint8Array | string | Promise<Uint8Array>; ignored: readonly string[]; passthrough?: Passthrough } {
  const { passthrough } = call;
  if (passthrough?.dialect === 'openai-chat' && !quirks) {
    const streamOptions = call.extra['openai-chat']?.['stream_options'];
    const body = splice(passthrough.body, passthrough.places, {
      ...(call.model === model ? {} : { model: JSON.stringify(model) }),
      ...(passthrough.bound === undefined ? {} : { max_completion_tokens: String(passthrough.bound) }),
      ...(call.stream && !passthrough.usageWanted
        ? { stream_options: JSON.stringify({ ...(typeof streamOptions === 'object' ? streamOptions : {}), include_usage: true }) }
        : {}),
    });
    return { body, ignored: [], passthrough };
  }
  const { body, ignored } = encodeRequest(call, model, quirks);
  return { body: written(call, body), ignored };
}
