import { messages } from '#dialects/anthropic/index';
import type { Quirks } from '#dialects/anthropic/quirks';
import { whenKnown } from '#kit/async/when-known';
import { Fault } from '#core/fault';
import type { TargetContext } from '#core/context';
import type { Address } from '../shared/attempt.ts';
import { knownBetas, warningOfBetas } from '../shared/betas.ts';
import { answering, senderAt, generateEndpoint, targetOf } from '../shared/generate.ts';
import { knownQuirks } from '../shared/known-quirks.ts';
import { probe } from '../shared/probe.ts';
import type { ProviderFactory, ProviderModule } from '../shared/provider.ts';
import { signIn } from '../shared/sign-in.ts';
import { modelPath, vertexPlaces } from '../shared/vertex-places.ts';
import { quirksAt } from './models.ts';

const publisher = 'anthropic';
const version = 'vertex-2023-10-16';

/** The requests have the version in place of the model. https://platform.claude.com/docs/en/build-with-claude/claude-on-vertex-ai */
const { betaHeader = '', ...others } = messages;
const dialect: typeof messages = {
  ...others,
  encodeRequest(...asked) {
    const { body, ...more } = messages.encodeRequest(...asked);
    const { model: _, ...rest } = body;
    return { ...more, body: { anthropic_version: version, ...rest } };
  },
};

/** Claude on Google's cloud platform: each region is a target of its own. */
const make: ProviderFactory = (name, settings, upstreams, clock, { thoughts, lessons } = {}) => {
  const { baseUrl = '', order = 'listed' } = settings;
  const places = vertexPlaces(settings);
  if (places.length === 0) return undefined;
  const credential = signIn(settings, upstreams, clock);
  const inTurn = [credential];
  const shared = {
    upstreams,
    clock,
    credentials: { inTurn: () => inTurn },
    quirks: knownQuirks<Quirks>(clock, (one) => quirksAt('anthropic', one.replace('@', '-')), lessons?.of(name, messages.name, baseUrl)),
    thoughts: thoughts && { memory: thoughts, origin: 'vertex' },
  };
  return {
    probes(model) {
      if (model === undefined) return [];
      const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }); // counting tokens is free
      const path = `publishers/${publisher}/models/count-tokens:rawPredict`;
      return places.map(({ region, url, base }) =>
        probe({ region, upstreams, clock, url, path: `${base}/${path}`, body, refusal: messages.decodeFault, headers: (signal) => credential.headers(signal) }),
      );
    },
    targets(model, { maxOutputTokens }) {
      const inside = modelPath(model, publisher);
      const [target, ...rest] = places.map(({ region, url, base, residency }) => {
        const address = ({ stream }: { readonly stream: boolean }): Address => {
          if (inside === undefined) throw new Fault('not-found', 'This is not a valid model name.', { field: 'model', reason: 'model' });
          return { url, path: `${base}/${inside}:${stream ? 'streamRawPredict' : 'rawPredict'}` };
        };
        const endpoint = generateEndpoint(dialect, { ...shared, model, options: { maxOutputTokens }, address });
        const asking = (context: TargetContext) => {
          const asked = context.headers[betaHeader];
          if (asked === undefined) return endpoint;
          const encode: typeof endpoint.encode = (call, quirks) => {
            const { betas, lost } = knownBetas(asked, endpoint.refusedBetas?.(quirks) ?? []);
            return warningOfBetas(withBetas(endpoint.encode(call, quirks), betas), betaHeader, lost);
          };
          return { ...endpoint, encode };
        };
        return targetOf(name, endpoint, { ...answering((call, context) => senderAt(asking(context), call, context)), region, residency });
      });
      return target && { target, others: rest, order };
    },
  };
};

/** Beta features are named in the body, and not in a header. */
function withBetas<Request extends { readonly body: Uint8Array | string | Promise<Uint8Array> }>(request: Request, betas: readonly string[]): Request {
  if (betas.length === 0) return request;
  const member = `{"anthropic_beta":${JSON.stringify(betas)},`;
  const { body } = request;
  if (typeof body === 'string') return { ...request, body: member + body.slice(1) };
  return { ...request, body: whenKnown(body, (bytes) => Buffer.concat([Buffer.from(member), bytes.subarray(1)])) };
}

export const anthropicVertex: ProviderModule = {
  dialect: messages.name,
  kind: 'vertex',
  serves: 'Claude on Vertex AI of Google Cloud',
  takes: ['project', 'regions', 'credentials'],
  needs: ['project', 'regions'],
  make,
};
