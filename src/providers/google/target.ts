import type { gemini } from '#dialects/gemini/index';
import type { Quirks } from '#dialects/gemini/quirks';
import type { Clock } from '#kit/async/clock';
import type { Upstreams } from '#kit/upstream/pool';
import { Fault } from '#core/fault';
import type { Target } from '#core/target';
import type { Address } from '../shared/attempt.ts';
import type { Credentials } from '../shared/credentials.ts';
import { generate, generateEndpoint, targetOf } from '../shared/generate.ts';
import type { KnownQuirks } from '../shared/known-quirks.ts';
import { asWritten } from '../shared/operation.ts';
import { embedContent, type EmbedOperation } from './embed-content.ts';

/** The configuration of a target: one model of a provider of the content generation API, at one address. */
export interface ContentTargetDeps {
  readonly dialect: typeof gemini;
  readonly url: URL;
  /** The path of the model, to which the operation is appended; absent for an invalid name. */
  readonly path: string | undefined;
  readonly model: string;
  readonly credentials: Credentials;
  readonly upstreams: Upstreams;
  readonly quirks: KnownQuirks<Quirks>;
  readonly clock: Clock;
  readonly embedding: EmbedOperation;
}

/** @param provider its name in the settings */
export function contentTarget(
  provider: string,
  { dialect, url, path, embedding, quirks, clock, ...shared }: ContentTargetDeps,
  more: Pick<Target, 'region' | 'residency'> = {},
): Target {
  const addressOf = (operation: string): Address => {
    if (path === undefined) throw new Fault('not-found', 'This is not a valid model name.', { field: 'model', reason: 'model' });
    return { url, path: `${path}:${operation}` };
  };
  const endpoint = generateEndpoint(dialect, {
    ...shared,
    quirks,
    clock,
    address: ({ stream }) => addressOf(stream ? 'streamGenerateContent?alt=sse' : 'generateContent'),
  });
  const { decodeFault } = dialect;
  const embeddings = { ...shared, ...asWritten, embedding, decodeFault, address: ({ operation }: { readonly operation: string }) => addressOf(operation) };
  return targetOf(provider, endpoint, {
    ...more,
    generate: (call, context) => generate(endpoint, call, context),
    embed: (call, context) => embedContent(embeddings, call, context),
  });
}
