import { trimEnd } from '#kit/text/trim-end';
import type { Quirks } from '#dialects/gemini/quirks';
import type { MediaPart } from '#core/conversation';
import { generateContent, inPath, type Credential } from './generate-content.ts';
import { batchEmbed, embedContent } from './embed-content.ts';
import { gemini as dialect } from '#dialects/gemini/index';
import { keyRing } from '../shared/keys.ts';
import { knownQuirks } from '../shared/known-quirks.ts';
import { oneTarget, type ProviderFactory } from '../shared/provider.ts';
import { probesByKey } from '../shared/probe.ts';
import { openSignatures } from './signatures.ts';

/** The Gemini API, and anything that speaks as it does: with keys, without regions. */
export const gemini: ProviderFactory = (name, { baseUrl, apiKeys = [], headers = {} }, upstreams, clock) => {
  if (!baseUrl) return undefined;
  const url = new URL(baseUrl);
  const base = trimEnd(url.pathname, '/');
  const ring = keyRing(apiKeys, clock);
  const byKey = new Map(apiKeys.map((key): [string, Credential] => [key, { headers: () => ({ 'x-goog-api-key': key }), refused: () => ring.setAside(key) }]));
  const credentials = () => ring.inTurn().map((key) => byKey.get(key)!);
  const shared = { url, headers, credentials, upstreams, quirks: knownQuirks<Quirks>(clock), always: {}, signatures: openSignatures(dialect.name), clock };
  const probes = () =>
    probesByKey(apiKeys, (key) => ({
      upstreams,
      clock,
      url,
      path: `${base}/models?pageSize=1`,
      refusal: dialect.decodeFault,
      headers: () => ({ ...(key === undefined ? {} : { 'x-goog-api-key': key }), ...headers }),
    }));
  const provider = oneTarget(probes, (model) => {
    const word = inPath(model.replace(/^models\//, ''));
    const path = word === undefined ? undefined : `${base}/models/${word}`;
    return {
      name: `${name}/${model}`,
      provider: name,
      model,
      thoughts: 'summary',
      get supports() {
        return dialect.supports(shared.quirks.of(model));
      },
      generate: (call, context) => generateContent({ ...shared, path, model }, call, context),
      embed: (call, context) => embedContent({ ...shared, path, model, operation: batchEmbed }, call, context),
      searches: dialect.searches!,
    };
  });
  return { ...provider, needsContent: (part) => !isKnownThere(part, url) };
};

/** Of all addresses the interface takes those of its own files, and those of videos. https://ai.google.dev/gemini-api/docs/video-understanding */
function isKnownThere({ url = '' }: MediaPart, { origin }: URL): boolean {
  const asked = URL.parse(url);
  return asked !== null && (asked.origin === origin || /^(?:www\.youtube\.com|youtube\.com|youtu\.be)$/.test(asked.hostname));
}
