import { gemini } from '#dialects/gemini/index';
import type { Quirks } from '#dialects/gemini/quirks';
import { trimEnd } from '#kit/text/trim-end';
import type { Credential } from '../shared/credentials.ts';
import { knownQuirks } from '../shared/known-quirks.ts';
import { probe } from '../shared/probe.ts';
import type { ProviderFactory, ProviderModule } from '../shared/provider.ts';
import { predict } from './embed-content.ts';
import { signIn } from './sign-in.ts';
import { openSignatures, withSignatures } from './signatures.ts';
import { contentTarget, inPath } from './target.ts';
import { quirksAt } from './models.ts';

/** Google's cloud platform for models: each region is a target of its own, with its own address and connection pool. */
const make: ProviderFactory = (name, settings, upstreams, clock, lessons) => {
  const { baseUrl, project, publisher = 'google', regions = [], residency = {}, order = 'listed', headers = {} } = settings;
  const projectWord = inProject(project ?? '');
  if (!baseUrl || projectWord === undefined || regions.length === 0) return undefined;
  const account = signIn(settings.credentials, upstreams, clock);
  const credential: Credential = {
    headers: async (signal) => ({ 'content-type': 'application/json', 'accept-encoding': 'identity', ...(await account.headers(signal)), ...headers }),
    refused: () => account.refused(),
  };
  const inTurn = [credential];
  const shared = {
    dialect: withSignatures(gemini, openSignatures(gemini.name)),
    upstreams,
    clock,
    credentials: { inTurn: () => inTurn },
    quirks: knownQuirks<Quirks>(clock, (one) => quirksAt('vertex', one), lessons?.of(name, gemini.name, baseUrl)),
  };
  const lists = Object.keys(residency);
  const locations = regions.map((entry) => {
    const region = typeof entry === 'string' ? entry : entry.name;
    const url = new URL((typeof entry === 'string' ? baseUrl : entry.baseUrl).replaceAll('{region}', region));
    return {
      region,
      url,
      residency: lists.filter((list) => residency[list]?.includes(region)),
      base: `${trimEnd(url.pathname, '/')}/projects/${projectWord}/locations/${inPath(region)}`,
    };
  });
  return {
    probes(model) {
      const inside = model === undefined ? undefined : modelPath(model, publisher);
      if (inside === undefined) return [];
      // counting tokens is free and requires the same permissions as generating
      const body = JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] });
      return locations.map(({ region, url, base }) =>
        probe({
          region,
          upstreams,
          clock,
          url,
          path: `${base}/${inside}:countTokens`,
          body,
          refusal: gemini.decodeFault,
          headers: (signal) => credential.headers(signal),
        }),
      );
    },
    targets(model) {
      const inside = modelPath(model, publisher);
      const embedding = predict(model);
      const [target, ...others] = locations.map(({ region, url, base, residency }) =>
        contentTarget(name, { ...shared, url, path: inside && `${base}/${inside}`, model, embedding }, { region, residency }),
      );
      return target && { target, others, order };
    },
  };
};

/** `gemini-2.5-flash`, `google/gemini-2.5-flash` or `publishers/google/models/gemini-2.5-flash`; models of other publishers need a provider of their own. */
function modelPath(model: string, publisher: string): string | undefined {
  const match = /^(?:publishers\/([^/]+)\/models\/|([^/]+)\/)?([^/]+)$/.exec(model);
  if (!match) return undefined;
  const [, platform, short, name] = match;
  if ((platform ?? short ?? publisher) !== publisher) return undefined;
  const [publisherWord, modelWord] = [inPath(publisher), inPath(name!)];
  return publisherWord === undefined || modelWord === undefined ? undefined : `publishers/${publisherWord}/models/${modelWord}`;
}

/** IDs of domain-scoped projects have a colon: `example.com:shop`. */
const inProject = (project: string): string | undefined => (/^[a-z0-9][a-z0-9.:_-]{0,127}$/i.test(project) ? encodeURIComponent(project) : undefined);

export const vertex: ProviderModule = {
  dialect: gemini.name,
  kind: 'vertex',
  serves: 'Vertex AI on Google Cloud',
  takes: ['project', 'regions', 'credentials'],
  needs: ['project', 'regions'],
  examples: {
    platform: {
      dialect: gemini.name,
      kind: 'vertex',
      project: 'my-project',
      publisher: 'google',
      baseUrl: 'https://{region}-aiplatform.googleapis.com/v1',
      credentials: { serviceAccountFile: 'key.json' },
      regions: ['us-central1', 'us-east1', 'us-east4', 'us-east5', 'us-south1', 'us-west1', 'us-west4'],
      residency: { us: ['us-central1', 'us-east1'] },
      order: 'listed',
    },
  },
  make,
};
