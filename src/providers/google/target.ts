import { gemini } from '#dialects/gemini/index';
import type { Quirks } from '#dialects/gemini/quirks';
import type { Clock } from '#kit/async/clock';
import type { Upstreams } from '#kit/upstream/pool';
import { Fault } from '#core/fault';
import type { JsonObject } from '#core/json';
import type { Target } from '#core/target';
import type { Address } from '../shared/attempt.ts';
import { tokenCounter } from '../shared/count-tokens.ts';
import type { Credentials } from '../shared/credentials.ts';
import { answering, senderAt, generateEndpoint, targetOf } from '../shared/generate.ts';
import type { KnownQuirks } from '../shared/known-quirks.ts';
import { asWritten } from '../shared/operation.ts';
import type { EndpointThoughts } from '../shared/endpoint-thoughts.ts';
import { embedContent, type EmbedOperation } from './embed-content.ts';

/** The configuration of a target: one model of a provider of the content generation API, at one address. */
export interface ContentTargetDeps {
  readonly url: URL;
  /** The path of the model, to which the operation is appended; absent for an invalid name. */
  readonly path: string | undefined;
  readonly model: string;
  readonly maxOutputTokens: number | undefined;
  readonly credentials: Credentials;
  readonly upstreams: Upstreams;
  readonly quirks: KnownQuirks<Quirks>;
  readonly clock: Clock;
  readonly embedding: EmbedOperation;
  readonly thoughts: EndpointThoughts | undefined;
  /** A request for an answer → one for the count of its tokens. */
  readonly countRequest: (body: JsonObject, model: string) => JsonObject;
}

/** @param provider its name in the settings */
export function contentTarget(
  provider: string,
  { url, path, embedding, quirks, clock, thoughts, countRequest, maxOutputTokens, ...shared }: ContentTargetDeps,
  more: Pick<Target, 'region' | 'residency'> = {},
): Target {
  const addressOf = (operation: string): Address => {
    if (path === undefined) throw new Fault('not-found', 'This is not a valid model name.', { field: 'model', reason: 'model' });
    return { url, path: `${path}:${operation}` };
  };
  const endpoint = generateEndpoint(gemini, {
    ...shared,
    quirks,
    clock,
    thoughts,
    options: { maxOutputTokens },
    address: ({ stream }) => addressOf(stream ? 'streamGenerateContent?alt=sse' : 'generateContent'),
  });
  const { decodeFault } = gemini;
  const embeddings = { ...shared, ...asWritten, embedding, decodeFault, address: ({ operation }: { readonly operation: string }) => addressOf(operation) };
  const countTokens = tokenCounter({
    ...shared,
    dialect: gemini,
    quirks,
    clock,
    address: () => addressOf('countTokens'),
    encode: (call, known) => countRequest(gemini.encodeRequest(call, shared.model, known).body, shared.model),
    member: 'totalTokens',
  });
  return targetOf(provider, endpoint, {
    ...more,
    countTokens,
    ...answering((call, context) => senderAt(endpoint, call, context)),
    embed: (call, context) => embedContent(embeddings, call, context),
  });
}
