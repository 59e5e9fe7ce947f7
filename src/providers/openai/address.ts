import { trimEnd } from '#kit/text/trim-end';
import { Fault } from '#core/fault';

export interface OpenAISettings {
  /** `https://api.openai.com/v1`, or an Azure resource's address. */
  readonly baseUrl: URL;
  /** None: the provider asks for no key. */
  readonly apiKeys: readonly string[];
  /** `azure`: the model is a deployment in the path, the key has a header of its own. */
  readonly kind?: 'azure';
  readonly apiVersion?: string;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
}

const segment = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/**
 * Where an operation of this model, such as `chat/completions`, is asked for. Nothing in the model's name can change the host or the path: only Azure has it in the address, as one
 * plain segment.
 *
 * @throws Fault `not-found` for a name that cannot be a deployment
 */
export function addressOf({ baseUrl: url, kind, apiVersion = '' }: OpenAISettings, model: string, operation: string): { url: URL; path: string } {
  const base = trimEnd(url.pathname, '/');
  if (kind !== 'azure') return { url, path: `${base}/${operation}${url.search}` };
  if (!segment.test(model)) throw new Fault('not-found', 'This model name cannot be a deployment.', { field: 'model', reason: 'model' });
  return { url, path: `${base}/openai/deployments/${model}/${operation}?api-version=${encodeURIComponent(apiVersion)}` };
}
