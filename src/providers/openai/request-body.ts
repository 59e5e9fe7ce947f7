import { encodeRequest, type Quirks } from '#dialects/openai/chat/encode-request';
import { splice } from '#kit/json/scan';
import type { GenerateCall } from '#core/call';
import type { Lane } from '#core/passthrough';
import { written } from '../shared/write-request.ts';

/** The bytes for the provider: on the short way the client's own with the model's name put in, else ours. */
export function requestBody(
  call: GenerateCall,
  model: string,
  quirks: Quirks | undefined,
): { body: Uint8Array | string | Promise<Uint8Array>; ignored: readonly string[]; lane?: Lane } {
  const { lane } = call;
  if (lane?.dialect === 'openai-chat' && !quirks) {
    const streamOptions = call.extra['openai-chat']?.['stream_options'];
    const body = splice(lane.body, lane.places, {
      ...(call.model === model ? {} : { model: JSON.stringify(model) }),
      ...(lane.bound === undefined ? {} : { max_completion_tokens: String(lane.bound) }),
      ...(call.stream && !lane.usageWanted
        ? { stream_options: JSON.stringify({ ...(typeof streamOptions === 'object' ? streamOptions : {}), include_usage: true }) }
        : {}),
    });
    return { body, ignored: [], lane };
  }
  const { body, ignored } = encodeRequest(call, model, quirks);
  return { body: written(call, body), ignored };
}
