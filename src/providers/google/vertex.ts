import { gemini } from '#dialects/gemini/index';
import type { Quirks } from '#dialects/gemini/quirks';
import type { JsonObject } from '#core/json';
import { knownQuirks } from '../shared/known-quirks.ts';
import { probe } from '../shared/probe.ts';
import type { ProviderFactory, ProviderModule } from '../shared/provider.ts';
import { predict } from './embed-content.ts';
import { signIn } from '../shared/sign-in.ts';
import { modelPath, vertexPlaces } from '../shared/vertex-places.ts';
import { contentTarget } from './target.ts';
import { quirksAt } from './models.ts';

/** Google's cloud platform for models: each region is a target of its own, with its own address and connection pool. */
const make: ProviderFactory = (name, settings, upstreams, clock, { thoughts, lessons } = {}) => {
  const { baseUrl = '', publisher = 'google', order = 'listed' } = settings;
  const locations = vertexPlaces(settings);
  if (locations.length === 0) return undefined;
  const credential = signIn(settings, upstreams, clock);
  const inTurn = [credential];
  const shared = {
    thoughts: thoughts && { memory: thoughts, origin: 'vertex' },
    upstreams,
    clock,
    credentials: { inTurn: () => inTurn },
    quirks: knownQuirks<Quirks>(clock, (one) => quirksAt('vertex', one), lessons?.of(name, gemini.name, baseUrl)),
    countRequest: ({ contents, systemInstruction, tools }: JsonObject): JsonObject => ({
      contents: contents!,
      ...(systemInstruction ? { systemInstruction } : {}),
      ...(tools ? { tools } : {}),
    }),
  };
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
    targets(model, { maxOutputTokens }) {
      const inside = modelPath(model, publisher);
      const embedding = predict(model);
      const [target, ...others] = locations.map(({ region, url, base, residency }) =>
        contentTarget(name, { ...shared, url, path: inside && `${base}/${inside}`, model, maxOutputTokens, embedding }, { region, residency }),
      );
      return target && { target, others, order };
    },
  };
};

export const vertex: ProviderModule = {
  dialect: gemini.name,
  kind: 'vertex',
  serves: 'Vertex AI on Google Cloud',
  takes: ['project', 'regions', 'credentials'],
  needs: ['project', 'regions'],
  otherPublishers: { anthropic: 'anthropic-messages' },
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
