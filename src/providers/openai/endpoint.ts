import type { Quirks } from '#dialects/openai/chat/quirks';
import { decodeFault } from '#dialects/openai/chat/faults';
import type { UpstreamResponse } from '#kit/upstream/response';
import type { Clock } from '#kit/async/clock';
import type { Upstreams } from '#kit/upstream/pool';
import type { TargetContext } from '#core/context';
import { post, refusalText } from '../shared/post.ts';
import type { KeyRing } from '../shared/keys.ts';
import type { KnownQuirks } from '../shared/known-quirks.ts';
import { addressOf, type OpenAISettings } from './address.ts';

/** One model of one provider, and what it takes to ask it. */
export interface Endpoint {
  readonly settings: OpenAISettings;
  /** By key. */
  readonly headersFor: ReadonlyMap<string, Readonly<Record<string, string>>>;
  readonly upstreams: Upstreams;
  readonly keys: KeyRing;
  readonly quirks: KnownQuirks<Quirks>;
  readonly clock: Clock;
  readonly model: string;
}

/** Asks for an operation with one key after the other until one is taken. @throws Fault */
export async function postInTurn(
  endpoint: Endpoint,
  operation: string,
  body: Uint8Array | string,
  context: TargetContext,
  contentType = 'application/json',
): Promise<UpstreamResponse> {
  const { settings, headersFor, upstreams, keys, model } = endpoint;
  const { url, path } = addressOf(settings, model, operation);
  const turns = [...keys.inTurn()];
  for (let key = turns.shift() ?? ''; ;) {
    const response = await post(upstreams, { url, path, headers: { ...headersFor.get(key)!, 'content-type': contentType }, body }, context);
    if (response.status === 200) return response;
    const fault = decodeFault(response.status, await refusalText(response), response.headers, model);
    if (fault.details.key) keys.setAside(key);
    if (!fault.details.key || turns.length === 0) throw fault;
    key = turns.shift()!;
  }
}
