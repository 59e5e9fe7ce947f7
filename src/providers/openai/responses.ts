import { responses } from '#dialects/openai/responses/index';
import { hasAddress } from '#dialects/openai/responses/media';
import type { Quirks } from '#dialects/openai/responses/quirks';
import { keyCredentials } from '../shared/credentials.ts';
import { answering, senderAt, generateEndpoint, targetOf } from '../shared/generate.ts';
import { knownQuirks } from '../shared/known-quirks.ts';
import { probesByKey } from '../shared/probe.ts';
import { oneTarget, type ProviderFactory, type ProviderModule } from '../shared/provider.ts';
import { responsesAddress } from './address.ts';
import { headersOf } from './headers.ts';
import { azure, openaiUrl } from './kinds.ts';
import { quirksAt } from './responses-models.ts';
import { originOf, vendorOf } from '../vendors.ts';

/** Any provider with OpenAI's Responses API. Responses are not stored there: each request contains the whole conversation. */
const make: ProviderFactory = (name, { baseUrl, kind, apiKeys = [], apiVersion, headers = {} }, upstreams, clock, { thoughts, lessons } = {}) => {
  if (!baseUrl) return undefined;
  const address = responsesAddress({ url: new URL(baseUrl), isAzure: kind === 'azure' }, apiVersion ?? 'v1');
  const { url, path } = address;
  const headersFor = headersOf(kind, headers);
  const vendor = kind === 'azure' ? 'azure' : vendorOf(baseUrl);
  const shared = {
    upstreams,
    clock,
    credentials: keyCredentials(apiKeys, clock, headersFor),
    quirks: knownQuirks<Quirks>(clock, (one) => quirksAt(vendor, one, baseUrl), lessons?.of(name, responses.name, baseUrl)),
    address: () => address,
    thoughts: thoughts && { memory: thoughts, origin: originOf(baseUrl) },
  };
  const list = path.replace(/\/responses(?=\?|$)/, '/models');
  const probeRequest = { upstreams, clock, url, path: list, refusal: responses.decodeFault };
  const probes = () => probesByKey(apiKeys, (key) => ({ ...probeRequest, headers: () => headersFor(key) }));
  const provider = oneTarget(probes, (model, maxOutputTokens) => {
    const endpoint = generateEndpoint(responses, { ...shared, model, options: { maxOutputTokens } });
    return targetOf(
      name,
      endpoint,
      answering((call, context) => senderAt(endpoint, call, context)),
    );
  });
  return { ...provider, needsContent: ({ kind }) => kind === 'audio', hasAddress };
};

export const openaiResponses: ProviderModule = {
  dialect: responses.name,
  serves: 'any server of the OpenAI Responses API',
  versioned: true,
  examples: { responses: { dialect: responses.name, baseUrl: openaiUrl, apiKeys: ['${OPENAI_API_KEY}'] } },
  make,
};

export const azureResponses: ProviderModule = { ...azure, dialect: responses.name, make };
