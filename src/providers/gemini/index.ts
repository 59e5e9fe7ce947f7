import type { Quirks } from '#dialects/gemini/encode-request';
import { honoursOf } from '#dialects/gemini/fields';
import { generateContent, inPath, type Credential } from '../generating-content.ts';
import { keyRing } from '../keys.ts';
import { knownQuirks } from '../known-quirks.ts';
import { oneTarget, type Maker } from '../maker.ts';
import { openSignatures } from '../signatures.ts';

/** The Gemini API, and anything that speaks as it does: with keys, without regions. */
export const gemini: Maker = (name, { dialect, baseUrl, apiKeys = [], headers = {} }, upstreams, clock) => {
  if (!baseUrl) return undefined;
  const url = new URL(baseUrl);
  const base = url.pathname.replace(/\/+$/, '');
  const ring = keyRing(apiKeys, clock);
  const byKey = new Map(apiKeys.map((key): [string, Credential] => [key, { headers: () => ({ 'x-goog-api-key': key }), refused: () => ring.setAside(key) }]));
  const credentials = () => ring.inTurn().map((key) => byKey.get(key)!);
  const shared = { url, headers, credentials, upstreams, quirks: knownQuirks<Quirks>(clock), always: {}, signatures: openSignatures(dialect), clock };
  return oneTarget((model) => {
    const word = inPath(model.replace(/^models\//, ''));
    const path = word === undefined ? undefined : `${base}/models/${word}`;
    return {
      name: `${name}/${model}`,
      provider: name,
      model,
      get honours() {
        return honoursOf(shared.quirks.of(model));
      },
      generate: (call, context) => generateContent({ ...shared, path, model }, call, context),
    };
  });
};
