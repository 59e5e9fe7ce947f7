import { trimEnd } from '#kit/text/trim-end';
import { Fault } from '#core/fault';
import type { Address } from '../shared/attempt.ts';

/** The base address of a provider of OpenAI's APIs. */
export interface OpenAIBase {
  /** `https://api.openai.com/v1`, or the address of an Azure resource. */
  readonly url: URL;
  /** The model is a deployment, named in the path. */
  readonly isAzure: boolean;
  /** Azure only. */
  readonly apiVersion: string;
}

const segment = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/**
 * The address of an operation of this model, such as `chat/completions`. A model name cannot change the host or the path: only Azure has it in the address, as
 * one plain path segment.
 * @throws Fault `not-found` for a name that cannot be a deployment
 */
export function addressOf({ url, isAzure, apiVersion }: OpenAIBase, model: string, operation: string): Address {
  const base = trimEnd(url.pathname, '/');
  if (!isAzure) return { url, path: `${base}/${operation}${url.search}` };
  if (!segment.test(model)) throw new Fault('not-found', 'This model name cannot be a deployment.', { field: 'model', reason: 'model' });
  return { url, path: `${base}/openai/deployments/${model}/${operation}?api-version=${encodeURIComponent(apiVersion)}` };
}

/** The address of the Responses API, where the model is named in the body, on Azure too. @param version of Azure's API; its current version needs none */
export function responsesAddress({ url, isAzure }: Pick<OpenAIBase, 'url' | 'isAzure'>, version?: string): Address {
  const base = trimEnd(url.pathname, '/');
  if (!isAzure) return { url, path: `${base}/responses${url.search}` };
  return { url, path: `${base}/openai/v1/responses${version === undefined ? '' : `?api-version=${encodeURIComponent(version)}`}` };
}
