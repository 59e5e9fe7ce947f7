import { acceptsAsItCame } from '#dialects/openai/chat/as-it-came';
import { encodeRequest } from '#dialects/openai/chat/encode-request';
import { fieldNames } from '#dialects/openai/chat/field-names';
import { maxTokensName, type Quirks } from '#dialects/openai/chat/quirks';
import { splice } from '#kit/json/scan';
import type { GenerateCall } from '#core/call';
import { own } from '#core/json';
import type { Passthrough } from '#core/passthrough';
import type { Fit } from '#dialects/shared/fitting';
import type { OutputLimit } from '#dialects/shared/output-limit';
import { fittedRequest, type GenerateRequest } from '../shared/generate.ts';

export interface ChatRequest extends GenerateRequest {
  /** Present where the client's own bytes are forwarded. */
  readonly passthrough?: Passthrough;
}

/** The request body: the client's own bytes with the model name replaced if they may be forwarded, else an encoded one. */
export function requestBody(call: GenerateCall, model: string, quirks: Quirks | undefined, fit?: Fit<Quirks>, options?: OutputLimit): ChatRequest {
  const { passthrough } = call;
  const written = passthrough?.request.written;
  const fitted = fit?.(call, quirks);
  if (written && passthrough?.dialect === 'openai-chat' && !fitted && (!quirks || acceptsAsItCame(call, quirks))) {
    const { stream_options: streamOptions } = own(call.extra, 'openai-chat');
    const body = splice(written.bytes, written.places, {
      ...(call.model === model ? {} : { model: JSON.stringify(model) }),
      ...(passthrough.bound === undefined ? {} : { [maxTokensName(call, quirks)]: String(passthrough.bound) }),
      ...(call.stream && !passthrough.usageWanted && quirks?.usage !== false
        ? { stream_options: JSON.stringify({ ...(typeof streamOptions === 'object' ? streamOptions : {}), include_usage: true }) }
        : {}),
    });
    return { body, ignored: [], passthrough };
  }
  return fittedRequest(call, fitted, (one) => encodeRequest(one, model, quirks, options), fieldNames);
}
