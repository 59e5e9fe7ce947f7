import { encodeRequest } from '#dialects/openai/chat/encode-request';
import type { Quirks } from '#dialects/openai/chat/quirks';
import { splice } from '#kit/json/scan';
import type { GenerateCall } from '#core/call';
import type { Passthrough } from '#core/passthrough';
import type { ProviderRequest } from '../shared/attempt.ts';
import { written } from '../shared/write-request.ts';

export interface ChatRequest extends ProviderRequest {
  /** Present where the client's own bytes are passed through. */
  readonly passthrough?: Passthrough;
}

/** The bytes for the provider: the client's own with the model's name put in where they may be passed through, else ours. */
export function requestBody(call: GenerateCall, model: string, quirks: Quirks | undefined): ChatRequest {
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
