import type { Fault } from '#core/fault';
import type { Upstreams } from '#kit/upstream/pool';
import type { UpstreamResponse } from '#kit/upstream/response';
import { isObject } from '#core/json';
import { refusalText } from './post.ts';
import { jsonOf } from './read-answer.ts';

/** A model that a provider says it has. */
export interface OfferedModel {
  readonly name: string;
  readonly kind: 'chat' | 'embedding';
}

/** Asks a provider for its models. @returns undefined where it cannot be asked, or its answer is no list of models @throws Fault with `key` where it refuses the credentials */
export type AskOffered = (signal: AbortSignal) => Promise<readonly OfferedModel[] | undefined>;

interface Asked {
  readonly upstreams: Upstreams;
  readonly url: URL;
  /** Of the list, with as many models on its first page as the provider allows. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly refusal: (status: number, text: string, headers: UpstreamResponse['headers']) => Fault;
}

const mostModels = 1000;
const mostBytes = 2_097_152;
const patience = { headSeconds: 20, quietSeconds: 20 };

/** The list of models as all three dialects have it: `data: [{id}]`, or `models: [{name, supportedGenerationMethods}]`. What is not one is not learned, nor what is too long. */
export const offeredAt =
  ({ upstreams, url, path, headers, refusal }: Asked): AskOffered =>
  async (signal) => {
    const response = await upstreams.get({ url, path, headers: { 'accept-encoding': 'identity', ...headers }, signal, ...patience });
    try {
      if (!response.ok) {
        const fault = refusal(response.status, await refusalText(response), response.headers);
        if (fault.details.key) throw fault;
        return undefined;
      }
      const bytes = await response.whole(mostBytes);
      return modelsIn(await jsonOf(bytes));
    } finally {
      response.leave();
    }
  };

function modelsIn(body: unknown): readonly OfferedModel[] | undefined {
  if (!isObject(body)) return undefined;
  const items = body['data'] ?? body['models'];
  if (!Array.isArray(items) || items.length > mostModels) return undefined;
  const models = new Map<string, OfferedModel>();
  for (const item of items as readonly unknown[]) {
    const model = isObject(item) ? modelOf(item) : undefined;
    if (model) models.set(model.name, model);
  }
  return [...models.values()];
}

function modelOf({ id, name, supportedGenerationMethods: methods }: Readonly<Record<string, unknown>>): OfferedModel | undefined {
  const written = id ?? name;
  if (typeof written !== 'string' || !/^[^\s\p{Cc}]{1,200}$/u.test(written) || written.includes('*')) return undefined; // gateways list patterns too
  const embeds = Array.isArray(methods) ? methods.includes('embedContent') : /embed/i.test(written);
  return { name: written.replace(/^models\//, ''), kind: embeds ? 'embedding' : 'chat' };
}
