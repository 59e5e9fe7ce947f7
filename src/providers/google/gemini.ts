import { gemini as dialect } from '#dialects/gemini/index';
import type { Quirks } from '#dialects/gemini/quirks';
import { trimEnd } from '#kit/text/trim-end';
import type { MediaPart } from '#core/conversation';
import type { JsonObject } from '#core/json';
import { keyCredentials, type RequestHeaders } from '../shared/credentials.ts';
import { knownQuirks } from '../shared/known-quirks.ts';
import { offeredAt } from '../shared/offered.ts';
import { probesByKey } from '../shared/probe.ts';
import { oneTarget, type ProviderFactory, type ProviderModule } from '../shared/provider.ts';
import { batchEmbed } from './embed-content.ts';
import { inPath } from '../shared/vertex-places.ts';
import { contentTarget } from './target.ts';
import { quirksAt } from './models.ts';
import { originOf, vendorOf } from '../vendors.ts';

/** The Gemini API and compatible servers: with keys, without regions. */
const make: ProviderFactory = (name, { baseUrl, apiKeys = [], headers = {} }, upstreams, clock, { thoughts, lessons } = {}) => {
  if (!baseUrl) return undefined;
  const url = new URL(baseUrl);
  const base = trimEnd(url.pathname, '/');
  const signedWith = (key: string | undefined): RequestHeaders => ({ ...(key === undefined ? {} : { 'x-goog-api-key': key }), ...headers });
  const vendor = vendorOf(baseUrl);
  const shared = {
    url,
    upstreams,
    clock,
    credentials: keyCredentials(apiKeys, clock, (key) => ({ 'content-type': 'application/json', 'accept-encoding': 'identity', ...signedWith(key) })),
    quirks: knownQuirks<Quirks>(clock, (one) => quirksAt(vendor, one), lessons?.of(name, dialect.name, baseUrl)),
    embedding: batchEmbed,
    thoughts: thoughts && { memory: thoughts, origin: originOf(baseUrl) },
    countRequest: (body: JsonObject, model: string) => ({ generateContentRequest: { model: `models/${model.replace(/^models\//, '')}`, ...body } }),
  };
  const probeRequest = { upstreams, clock, url, path: `${base}/models?pageSize=1`, refusal: dialect.decodeFault };
  const probes = () => probesByKey(apiKeys, (key) => ({ ...probeRequest, headers: () => signedWith(key) }));
  const provider = oneTarget(probes, (model, maxOutputTokens) => {
    const word = inPath(model.replace(/^models\//, ''));
    return contentTarget(name, { ...shared, model, maxOutputTokens, path: word && `${base}/models/${word}` });
  });
  const offered = offeredAt({ upstreams, url, path: `${base}/models?pageSize=1000`, headers: signedWith(apiKeys[0]), refusal: dialect.decodeFault });
  return { ...provider, offered, needsContent: (part) => !isKnownThere(part, url) };
};

/** The API accepts URLs only of its own files and of videos. https://ai.google.dev/gemini-api/docs/video-understanding */
function isKnownThere({ url = '' }: MediaPart, { origin }: URL): boolean {
  const parsedUrl = URL.parse(url);
  return parsedUrl !== null && (parsedUrl.origin === origin || /^(?:www\.youtube\.com|youtube\.com|youtu\.be)$/.test(parsedUrl.hostname));
}

const baseUrl = 'https://generativelanguage.googleapis.com/v1beta';

const families = ['gemini-', 'gemma-', 'learnlm-', 'text-embedding-00', 'embedding-00', 'text-multilingual-embedding-', 'imagen-', 'veo-', 'lyria-'];

export const gemini: ProviderModule = {
  dialect: dialect.name,
  serves: 'any server of the Gemini API',
  examples: { gemini: { dialect: dialect.name, baseUrl, apiKeys: ['${GEMINI_API_KEY}'] } },
  fromEnvironment: {
    name: 'gemini',
    key: 'GEMINI_API_KEY',
    baseUrl,
    models: families.flatMap((beginning) => [beginning, `models/${beginning}`]),
  },
  unread: { GOOGLE_API_KEY: 'GEMINI_API_KEY', GOOGLE_GEMINI_BASE_URL: 'providers.gemini.baseUrl' },
  make,
};
