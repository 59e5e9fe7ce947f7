import { gemini } from '#dialects/gemini/index';
import type { Quirks } from '#dialects/gemini/quirks';
import type { Clock } from '#kit/async/clock';
import type { Upstreams } from '#kit/upstream/pool';
import type { GenerateCall } from '#core/call';
import { Fault } from '#core/fault';
import type { Events } from '#core/event';
import type { TargetContext } from '#core/context';
import { post, awaitingWords, refusalText } from '../shared/post.ts';
import type { KnownQuirks } from '../shared/known-quirks.ts';
import { isEventStream, wholeJson, streamed } from '../shared/read-answer.ts';
import type { Signatures } from './signatures.ts';
import { written } from '../shared/write-request.ts';

/** One way to sign in. */
export interface Credential {
  /** @throws Fault; or the signal's reason */
  headers(signal: AbortSignal): Promise<Readonly<Record<string, string>>> | Readonly<Record<string, string>>;
  /** It was not accepted. */
  refused(): void;
}

/** Where a model of the content generation wire is asked for. */
export interface Endpoint {
  readonly url: URL;
  /** The path of the model, to which the operation is added; absent for a name that can have none. */
  readonly path: string | undefined;
  readonly model: string;
  readonly headers: Readonly<Record<string, string>>;
  /** To be tried one after the other. */
  readonly credentials: () => readonly Credential[];
  readonly upstreams: Upstreams;
  readonly quirks: KnownQuirks<Quirks>;
  /** How the provider differs, whatever the model. */
  readonly always: Quirks;
  readonly signatures: Signatures;
  readonly clock: Clock;
}

/** Asks for content, and hands on what is said. @throws Fault */
export async function* generateContent(endpoint: Endpoint, call: GenerateCall, context: TargetContext): AsyncGenerator<Events> {
  const { response, ignored } = await answered(endpoint, call, context);
  const { model, clock, signatures } = endpoint;
  try {
    if (!(call.stream && isEventStream(response))) {
      const said = gemini.decodeResult(await wholeJson(response, context), model, ignored);
      signatures.note(said);
      yield said;
      return;
    }
    for await (const said of streamed(awaitingWords(response, context.patience, clock), undefined, gemini.decoder(model, ignored, call))) {
      signatures.note(said);
      yield said;
    }
  } finally {
    response.leave();
  }
}

/** Asks with one credential after the other until one is taken; otherwise than before where the model refused something of ours, which is remembered if that helps. */
async function answered(endpoint: Endpoint, call: GenerateCall, context: TargetContext) {
  const { url, model, upstreams, quirks, always, signatures } = endpoint;
  if (endpoint.path === undefined) throw new Fault('not-found', 'This cannot be the name of a model.', { field: 'model', reason: 'model' });
  const path = `${endpoint.path}${call.stream ? ':streamGenerateContent?alt=sse' : ':generateContent'}`;
  const credentials = [...endpoint.credentials()];
  let known = { ...always, ...quirks.of(model) };
  let learned = false;
  for (let credential = credentials.shift(); ;) {
    const { body, ignored } = gemini.encodeRequest(call, model, known, { signatureOf: signatures.of });
    if (context.strict && ignored.length > 0) throw new Fault('invalid', `Not every field can be honoured: ${ignored.join('; ')}.`);
    const headers = { 'content-type': 'application/json', 'accept-encoding': 'identity', ...(await credential?.headers(context.signal)), ...endpoint.headers };
    const json = written(call, body);
    const response = await post(upstreams, { url, path, headers, body: typeof json === 'string' ? json : await json }, context);
    if (response.status === 200) {
      if (learned) quirks.keep(model, known);
      return { response, ignored };
    }
    const fault = gemini.decodeFault(response.status, await refusalText(response), response.headers, model);
    const quirk = gemini.learn(fault, call, known);
    if (quirk) {
      known = quirk;
      learned = true;
    } else {
      if (fault.details.key) credential?.refused();
      if (!fault.details.key || credentials.length === 0) throw fault;
      credential = credentials.shift();
    }
  }
}

const segment = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** A part of an address. @returns undefined for what cannot be one: nothing in it can lead elsewhere */
export const inPath = (word: string): string | undefined => (segment.test(word) ? encodeURIComponent(word) : undefined);
