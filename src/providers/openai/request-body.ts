import { encodeRequest, type Quirks } from '#dialects/openai-chat/encode-request';
import { splice } from '#kit/json-scan';
import type { GenerateCall } from '#model/call';
import type { Lane } from '#model/lane';

export type { Quirks };

/** The bytes for the provider: on the short way the client's own with the model's name put in, else ours. */
export function requestBody(
  call: GenerateCall,
  model: string,
  quirks: Quirks | undefined,
): { body: Uint8Array | string; ignored: readonly string[]; lane?: Lane } {
  const { lane } = call;
  if (lane?.dialect === 'openai-chat' && !quirks) {
    const streamOptions = call.extra['openai-chat']?.['stream_options'];
    const body = splice(lane.body, lane.places, {
      ...(call.model === model ? {} : { model: JSON.stringify(model) }),
      ...(call.stream && !lane.usageWanted
        ? { stream_options: JSON.stringify({ ...(typeof streamOptions === 'object' ? streamOptions : {}), include_usage: true }) }
        : {}),
    });
    return { body, ignored: [], lane };
  }
  const { body, ignored } = encodeRequest(call, model, quirks);
  return { body: JSON.stringify(body), ignored };
}

/** What a refusal teaches: a field that this provider does not take, or takes by its older name. `undefined`: nothing new. */
export function learnQuirk(known: Quirks = {}, status: number, text: string): Quirks | undefined {
  if (status !== 400 && status !== 422) return undefined;
  if (known.usage !== false && /stream_options|include_usage/.test(text)) return { ...known, usage: false };
  if (
    !known.maxTokensField &&
    /max_completion_tokens|max_tokens/.test(text) &&
    /unsupported|unknown|unrecognized|not supported|not permitted|extra/i.test(text)
  ) {
    return {
      ...known,
      maxTokensField:
        /Use '?"?`?max_completion_tokens|use max_completion_tokens/i.test(text) || /['"`]max_tokens['"`] is not supported/.test(text)
          ? 'max_completion_tokens'
          : 'max_tokens',
    };
  }
  return undefined;
}
