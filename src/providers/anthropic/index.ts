import { messages } from '#dialects/anthropic/index';
import type { Quirks } from '#dialects/anthropic/quirks';
import { membersWhere, type JsonObject } from '#core/json';
import { trimEnd } from '#kit/text/trim-end';
import { tokenCounter } from '../shared/count-tokens.ts';
import { keyCredentials, type RequestHeaders } from '../shared/credentials.ts';
import { answering, senderAt, generateEndpoint, targetOf } from '../shared/generate.ts';
import { knownQuirks } from '../shared/known-quirks.ts';
import { offeredAt } from '../shared/offered.ts';
import { probesByKey } from '../shared/probe.ts';
import { oneTarget, type ProviderFactory, type ProviderModule } from '../shared/provider.ts';
import { quirksAt } from './models.ts';
import { originOf, vendorOf } from '../vendors.ts';

/** The API version that the dialect implements. */
const version = '2023-06-01';

/** Any provider with Anthropic's Messages API. */
const make: ProviderFactory = (name, { baseUrl, apiKeys = [], headers = {}, caching }, upstreams, clock, { thoughts, lessons } = {}) => {
  if (!baseUrl) return undefined;
  const url = new URL(baseUrl);
  const base = trimEnd(url.pathname, '/');
  const path = `${base.endsWith('/v1') ? base : `${base}/v1`}/messages`;
  const address = { url, path };
  const countAddress = { url, path: `${path}/count_tokens` };
  const headersFor = (key: string | undefined): RequestHeaders => ({
    'content-type': 'application/json',
    'accept-encoding': 'identity',
    'anthropic-version': version,
    ...(key === undefined ? {} : { 'x-api-key': key }),
    ...headers,
  });
  const vendor = vendorOf(baseUrl);
  const shared = {
    upstreams,
    clock,
    credentials: keyCredentials(apiKeys, clock, headersFor),
    quirks: knownQuirks<Quirks>(clock, (one) => quirksAt(vendor, one), lessons?.of(name, messages.name, baseUrl)),
    address: () => address,
    thoughts: thoughts && { memory: thoughts, origin: originOf(baseUrl) },
  };
  const probeRequest = { upstreams, clock, url, path: path.replace(/messages$/, 'models?limit=1'), refusal: messages.decodeFault };
  const probes = () => probesByKey(apiKeys, (key) => ({ ...probeRequest, headers: () => headersFor(key) }));
  const offered = offeredAt({
    upstreams,
    url,
    path: path.replace(/messages$/, 'models?limit=1000'),
    headers: headersFor(apiKeys[0]),
    refusal: messages.decodeFault,
  });
  const provider = oneTarget(probes, (model, maxOutputTokens) => {
    const endpoint = generateEndpoint(messages, { ...shared, model, options: { maxOutputTokens, caching } });
    const countTokens = tokenCounter({
      ...shared,
      dialect: messages,
      model,
      address: () => countAddress,
      encode: (call, quirks) => countRequest(messages.encodeRequest(call, model, quirks).body),
      member: 'input_tokens',
    });
    return targetOf(name, endpoint, { ...answering((call, context) => senderAt(endpoint, call, context)), countTokens });
  });
  return { ...provider, offered };
};

/** https://platform.claude.com/docs/en/api/messages-count-tokens */
const counted: ReadonlySet<string> = new Set(
  'model messages system tools tool_choice thinking output_config cache_control mcp_servers context_management'.split(' '),
);

const countRequest = (body: JsonObject): JsonObject => membersWhere(body, (name) => counted.has(name));

const baseUrl = 'https://api.anthropic.com';

export const anthropic: ProviderModule = {
  dialect: messages.name,
  serves: 'any server of the Anthropic Messages API',
  examples: { claude: { dialect: messages.name, baseUrl, apiKeys: ['${ANTHROPIC_API_KEY}'] } },
  fromEnvironment: { name: 'anthropic', key: 'ANTHROPIC_API_KEY', baseUrl, models: ['claude-'] },
  unread: { ANTHROPIC_BASE_URL: 'providers.anthropic.baseUrl', ANTHROPIC_AUTH_TOKEN: 'ANTHROPIC_API_KEY' },
  make,
};
