import type { Clock } from '#kit/async/clock';
import type { GenerateCall } from '#core/call';
import { choiceHeaders } from '#core/choice-headers';
import type { GenerateEvent, Started, Events } from '#core/event';
import { Fault, faultOf, reasonOf } from '#core/fault';
import { fold, type GenerateResult } from '#core/fold';
import type { Generate } from '#core/generate';
import type { Context } from '#core/context';
import type { Passthrough } from '#core/passthrough';
import { promptSize } from '#core/measure';
import { answerHeaders, whoAnswered } from './answer-headers.ts';
import { cacheSecondsIn, tagsIn, targetsIn } from './choices.ts';
import { EventStream } from '#http/event-stream';
import type { Exchange } from '#http/exchange';
import type { Headers } from '#http/headers';
import type { Asked } from '#http/route';

/** What the answering of a call needs from the rest. */
export interface GeneratingDeps {
  readonly generate: Generate;
  readonly clock: Clock;
  readonly limits: () => { readonly holdHeadersSeconds: number; readonly requestSeconds: number; readonly streamSeconds: number };
}

/** A request as its face understood it, and the face's words for the answer. */
export interface Understood {
  readonly call: GenerateCall;
  readonly context: Context;
  /** Where the client's bytes may go upstream as they came. */
  readonly passthrough?: Omit<Passthrough, 'write' | 'drained'>;
  readonly words: Words;
}

export interface Words {
  /** A whole answer, ready for JSON; perhaps after something else was done with it. */
  whole(result: GenerateResult): unknown;
  /** An encoder of frames, for one stream. What `end` promises is awaited: it may keep the answer before the client is told that it is complete. */
  frames(): { encode(event: GenerateEvent): string; end(): string | Promise<string> };
  /** How a stream is framed; absent: server-sent events with comments as keep-alives. */
  readonly framing?: { readonly contentType: string; readonly keepAlive: string };
  /** What ends a stream whose frames passed as they came. */
  readonly passedEnd: string;
  /** The last frame of a stream that failed. */
  fault(fault: Fault): string;
  /** What the client calls a field of the call: `turns`, `output.schema` and `tools[0].parameters` have other names in each interface. */
  fieldOf?(field: string): string;
  /** Headers of this face's answers besides those of every answer. */
  readonly headers?: Headers;
}

/** Answers a call on the open connection, whole or as server-sent events. @throws Fault; after the head of a stream is out, the client was told already */
export async function answerCall(parts: GeneratingDeps, exchange: Exchange, understood: Understood): Promise<void> {
  const { call, words } = understood;
  try {
    if (exchange.bodyBytes > mostText) checkText(call);
    await accompanied(parts, exchange, understood, () => (call.stream ? stream(parts, exchange, understood) : whole(parts, exchange, understood)));
  } catch (error) {
    throw inClientsWords(error, words);
  }
}

/** A fault whose field is called as the client calls it; all else as it is. */
export function inClientsWords(error: unknown, { fieldOf }: Pick<Words, 'fieldOf'>): unknown {
  if (!fieldOf || !(error instanceof Fault) || error.details.field === undefined) return error;
  const { code, message, details } = error;
  const field = fieldOf(error.details.field);
  return field === details.field ? error : new Fault(code, message.replaceAll(error.details.field, field), { ...details, field });
}

/** Runs a call in the time it may take; the exchange is told on its way, whatever comes of it. */
export async function accompanied(
  { limits }: Pick<GeneratingDeps, 'limits'>,
  exchange: Exchange,
  { call, context }: { readonly call: Pick<GenerateCall, 'model' | 'stream'>; readonly context: Context },
  run: () => Promise<void>,
): Promise<void> {
  const { requestSeconds, streamSeconds } = limits();
  exchange.expire(call.stream ? streamSeconds : requestSeconds);
  try {
    await run();
  } catch (error) {
    exchange.refusalHeaders = [...answerHeaders(context.progress, undefined), ...whoAnswered(context.progress)];
    throw error;
  } finally {
    const { attempts, flags, cache } = context.progress;
    const last = attempts.at(-1);
    exchange.notes = {
      model: call.model.slice(0, 100),
      ...(last ? { provider: last.provider, attempts: attempts.length } : {}),
      ...(flags ? { flags: flags.join(', ') } : {}),
      ...(cache ? { cache } : {}),
    };
  }
}

/**
 * The circumstances of a call that came through a face.
 *
 * @param app what the body says of the application, if it does
 * @param passed names of the client's headers that may go upstream
 * @throws Fault `invalid` for what was chosen in headers and cannot be meant
 */
export function contextOf({ exchange, caller }: Asked, face: string, app: string | undefined, passed: readonly string[]): Context {
  const headers: Record<string, string> = {};
  for (const name of passed) {
    const value = exchange.header(name);
    if (value !== undefined) headers[name] = value;
  }
  return {
    requestId: exchange.id,
    step: 0,
    caller,
    face,
    app: (app ?? exchange.header('x-app-name') ?? caller.keyName).slice(0, 100),
    signal: exchange.signal,
    memory: exchange,
    strict: exchange.header(choiceHeaders.strict) === 'true',
    targets: targetsIn(exchange.header(choiceHeaders.targets)),
    tags: tagsIn(exchange.header(choiceHeaders.tags)),
    headers,
    cacheSeconds: cacheSecondsIn(exchange.header(choiceHeaders.cache)),
    progress: { attempts: [] },
  };
}

/** `app_name` is for our books and does not go upstream. @throws Fault `invalid` */
export function unlabelled(json: unknown): { readonly app?: string; readonly body: unknown } {
  if (json === null || typeof json !== 'object' || !Object.hasOwn(json, 'app_name')) return { body: json };
  const { app_name: app, ...body } = json as { readonly app_name?: unknown };
  if (typeof app !== 'string') throw new Fault('invalid', 'app_name must be a string.', { field: 'app_name' });
  return { app, body };
}

const withLane = ({ call, passthrough }: Understood, sink: Pick<Passthrough, 'write' | 'drained'>): GenerateCall =>
  passthrough ? { ...call, passthrough: { ...passthrough, ...sink } } : call;

async function whole({ generate }: GeneratingDeps, exchange: Exchange, understood: Understood): Promise<void> {
  const { context, words } = understood;
  let passed: Uint8Array | undefined;
  const sink = {
    write(bytes: Uint8Array) {
      passed = bytes;
      return true;
    },
    drained: () => Promise.resolve(),
  };
  let said: Events = [];
  for await (const events of generate(withLane(understood, sink), context)) said = said.length === 0 ? events : [...said, ...events];
  const started = said.find((event) => event.type === 'started');
  const headers = [...(words.headers ?? []), ...answerHeaders(context.progress, started)];
  if (passed) exchange.send(200, ['content-type', 'application/json', ...headers], passed);
  else exchange.sendJson(200, await words.whole(fold(said)), headers);
}

/** Bytes of all that a model reads as text, more than any does. The rest of a body is media. */
const mostText = 8_388_608;

/** For a call whose text may be longer than that: of a large body, or of what is stored. @throws Fault `too-large` */
export function checkText(call: GenerateCall): void {
  if (promptSize(call).bytes > mostText)
    throw new Fault('too-large', `The text of the request is longer than ${mostText} bytes.`, { reason: 'context-length' });
}

/** Events that are encoded in one turn of the event loop: an answer that was held back comes as hundreds of thousands at once. */
const turnEvents = 1000;

const eventStream = { contentType: 'text/event-stream; charset=utf-8', keepAlive: ': keep-alive\n\n' };

async function stream({ generate, clock, limits }: GeneratingDeps, exchange: Exchange, understood: Understood): Promise<void> {
  const { context, words } = understood;
  let started: Started | undefined;
  let passing = false;
  const out = new EventStream(exchange, {
    clock,
    holdSeconds: limits().holdHeadersSeconds,
    ...(words.framing ?? eventStream),
    headers: (early) => [...(words.headers ?? []), ...answerHeaders(context.progress, early ? undefined : started)],
  });
  const frames = words.frames();
  try {
    for await (const said of generate(withLane(understood, { write: (bytes) => out.write(bytes), drained: () => out.drained() }), context)) {
      for (let from = 0; from < said.length; from += turnEvents) {
        if (from > 0) await new Promise((resolve) => setImmediate(resolve));
        let text = '';
        const to = Math.min(said.length, from + turnEvents);
        for (let at = from; at < to; at++) {
          const event = said[at]!;
          if (event.type === 'started') started = event;
          if (event.type === 'passed') passing = true;
          if (!passing) text += frames.encode(event);
        }
        if (text !== '' && !out.write(text)) await out.drained();
      }
    }
    out.end(passing ? words.passedEnd : await frames.end());
  } catch (error) {
    if (!exchange.opened || exchange.left) throw error;
    out.write(words.fault(faultOf(inClientsWords(reasonOf(error, exchange.signal), words))));
    exchange.end();
    throw error;
  } finally {
    out.close();
  }
}
