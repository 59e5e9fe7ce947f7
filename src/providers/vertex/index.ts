import type { Quirks } from '#dialects/gemini/encode-request';
import { honoursOf } from '#dialects/gemini/fields';
import type { Target } from '#model/target';
import { generateContent, inPath } from '../generating-content.ts';
import { knownQuirks } from '../known-quirks.ts';
import type { Maker } from '../maker.ts';
import { openSignatures } from '../signatures.ts';
import { signIn } from './sign-in.ts';

/** Google's cloud platform for models: each region is a target of its own, and its address a connection pool of its own. */
export const vertex: Maker = (name, settings, upstreams, clock) => {
  const { dialect, baseUrl, project, publisher = 'google', regions = [], residency = {}, order = 'listed', headers = {} } = settings;
  const projectWord = inProject(project ?? '');
  if (!baseUrl || projectWord === undefined || regions.length === 0) return undefined;
  const credential = signIn(settings.credentials, upstreams, clock);
  const shared = {
    headers,
    credentials: () => [credential],
    upstreams,
    quirks: knownQuirks<Quirks>(clock),
    always: { withoutIds: true },
    signatures: openSignatures(dialect),
    clock,
  };
  const places = regions.map((entry) => {
    const region = typeof entry === 'string' ? entry : entry.name;
    const url = new URL((typeof entry === 'string' ? baseUrl : entry.baseUrl).replaceAll('{region}', region));
    return { region, url, base: `${url.pathname.replace(/\/+$/, '')}/projects/${projectWord}/locations/${inPath(region)}` };
  });
  return {
    targets(model, { residency: list }) {
      const within = list === undefined ? places : places.filter(({ region }) => residency[list]?.includes(region));
      const inside = modelPath(model, publisher);
      const [target, ...others] = within.map(({ region, url, base }): Target => ({
        name: `${name}/${region}/${model}`,
        provider: name,
        region,
        model,
        get honours() {
          return honoursOf(shared.quirks.of(model));
        },
        generate: (call, context) => generateContent({ ...shared, url, path: inside && `${base}/${inside}`, model }, call, context),
      }));
      return target && { target, others, order };
    },
  };
};

/** `gemini-2.5-flash`, `google/gemini-2.5-flash` or `publishers/google/models/gemini-2.5-flash`. */
function modelPath(model: string, publisher: string): string | undefined {
  const match = /^(?:publishers\/([^/]+)\/models\/|([^/]+)\/)?([^/]+)$/.exec(model);
  if (!match) return undefined;
  const [, platform, short, name] = match;
  const [publisherWord, modelWord] = [inPath(platform ?? short ?? publisher), inPath(name!)];
  return publisherWord === undefined || modelWord === undefined ? undefined : `publishers/${publisherWord}/models/${modelWord}`;
}

/** Ids of projects of a domain have a colon: `example.com:shop`. */
const inProject = (project: string): string | undefined => (/^[a-z0-9][a-z0-9.:_-]{0,127}$/i.test(project) ? encodeURIComponent(project) : undefined);
