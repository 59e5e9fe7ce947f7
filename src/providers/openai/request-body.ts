import { encodeRequest } from '#dialects/openai/chat/encode-request';
import { fieldNames } from '#dialects/openai/chat/field-names';
import type { Quirks } from '#dialects/openai/chat/quirks';
import { splice } from '#kit/json/scan';
import type { GenerateCall } from '#core/call';
import type { Passthrough } from '#core/passthrough';
import type { ProviderRequest } from '../shared/attempt.ts';
import { isUnpromised } from '../shared/is-unpromised.ts';
import { written } from '../shared/write-request.ts';

export interface ChatRequest extends ProviderRequest {
  /** Present where the client's own bytes are forwarded. */
  readonly passthrough?: Passthrough;
}

/** The request body: the client's own bytes with the model name replaced if they may be forwarded, else an encoded one. */
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
  return { body: written(call, body), ignored, unpromised: isUnpromised(call, body, fieldNames) };
}
