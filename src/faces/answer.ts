import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '#kit/async/clock';
import type { GenerateCall } from '#core/call';
import { hopHeader } from '#core/hops';
import { choiceHeaders } from '#core/choice-headers';
import type { BookedFace } from '#core/usage-row';
import type { Embed } from '#core/embed';
import type { GenerateEvent, Started, Usage } from '#core/event';
import type { JsonObject } from '#core/json';
import { isMemberNote } from '#core/capabilities';
import { Fault, faultOf, notHonoured, reasonOf, type FaultDetails } from '#core/fault';
import { fold, type GenerateResult } from '#core/fold';
import { wholeAnswer, type Generate } from '#core/generate';
import type { Context } from '#core/context';
import type { Passthrough } from '#core/passthrough';
import { promptSize } from '#core/measure';
import { answerHeaders, whoAnswered } from './answer-headers.ts';
import { refuseOtherCase, type Members } from './other-case.ts';
import { appIn, cacheSecondsIn, strictIn, tagsIn, targetsIn } from './choices.ts';
import { EventStream } from '#http/event-stream';
import type { Exchange } from '#http/exchange';
import type { Headers } from '#http/headers';
import type { Asked } from '#http/route';
import { Permits } from '#core/permits';
import { largeBytes, readLargeJson } from '#kit/json/large';

/** What a face needs to answer a conversation. */
export interface GeneratingDeps {
  readonly generate: Generate;
  readonly clock: Clock;
  readonly limits: () => { readonly holdHeadersSeconds: number; readonly requestSeconds: number; readonly streamSeconds: number };
}

export interface EmbeddingDeps extends Pick<GeneratingDeps, 'limits'> {
  readonly embed: Embed;
  /** Which balance embeddings are taken from. */
  readonly embeddingBalance: () => NonNullable<Context['balance']>;
}

/** A request as its face decoded it, and how the face encodes the answer. */
export interface Understood {
  readonly call: GenerateCall;
  readonly context: Context;
  /** Present where the client's bytes may be forwarded as they came, or those of the answer. */
  readonly passthrough?: Omit<Passthrough, 'write' | 'drained'>;
  readonly words: Words;
}

export interface FieldWords {
  /** What the client calls a field of the call: see `FieldNames`. */
  fieldOf?(field: string, call: GenerateCall): string;
  /** What the client calls a member of its request that the call has no field for; absent: as it is carried. */
  memberOf?(name: string): string;
}

export interface Words extends FieldWords {
  /** Encodes a whole answer, ready for JSON, or as the text of its JSON. It may be stored first. */
  whole(result: GenerateResult): unknown;
  /** An encoder of frames for one stream; of one that is forwarded unparsed it gets what the provider did not report. `end` is awaited: the answer may be stored before the client sees that it is complete. */
  frames(): { encode(event: GenerateEvent): string; end(): string | Promise<string> };
  /** The usage of a whole answer; of faces whose answers may be forwarded as they came. */
  usage?(usage: Usage): JsonObject;
  /** The member that has it; absent: `usage`. */
  readonly usageMember?: string;
  /** How a stream is framed; absent: server-sent events with comments as keep-alives. */
  readonly framing?: { readonly contentType: string; readonly keepAlive: string };
  /** The last frame of a stream that failed. It is awaited, as `end` of `frames` is. */
  fault(fault: Fault): string | Promise<string>;
  /** What a whole answer is sent as; absent: JSON. */
  readonly wholeType?: string;
  /** Headers of this face's answers, in addition to those of every answer. */
  readonly headers?: Headers;
}

/** Answers a call on the open connection, whole or as a stream. @throws Fault; once the head of a stream is out, it has been sent to the client as well */
export function answerCall(deps: GeneratingDeps, exchange: Exchange, understood: Understood): Promise<void> {
  const { call } = understood;
  return accompanied(deps, exchange, understood, () => {
    if (exchange.bodyBytes > mostText) checkText(call);
    return call.stream ? stream(deps, exchange, understood) : whole(deps, exchange, understood);
  });
}

/** A fault that names its field as the client spelled it; any other error as it is. */
export function inClientsWords(error: unknown, words: FieldWords, call: GenerateCall): unknown {
  if (!words.fieldOf || !(error instanceof Fault) || error.details.field === undefined) return error;
  const { code, message, details } = error;
  if (details.ignored) return ignoredInClientsWords(details.ignored, details, words, call);
  const field = words.fieldOf(error.details.field, call);
  if (field === details.field) return error;
  const said = details.said ?? ''; // the provider's own sentence stays as it is
  return new Fault(code, renamed(message.slice(0, message.length - said.length), error.details.field, field) + said, { ...details, field });
}

/** The refusal of a strict client. Its field is that of the first note, unless it has another one. */
function ignoredInClientsWords(notes: readonly string[], { field = '', ...details }: FaultDetails, words: FieldWords, call: GenerateCall): Fault {
  const isOfNote = notes[0]?.startsWith(`${field}:`) === true;
  return notHonoured(notesInClientsWords(notes, words, call), isOfNote ? details : { ...details, field: words.fieldOf?.(field, call) ?? field });
}

/** Notes as `field: reason`, with the client's own names of the fields. */
function notesInClientsWords(notes: readonly string[], { fieldOf, memberOf }: FieldWords, call: GenerateCall): readonly string[] {
  if (!fieldOf) return notes;
  return notes.map((one) =>
    one.replace(/^[\w.]{1,100}(?=:)/, (name) => {
      if (isMemberNote(one, name, call)) return memberOf?.(name) ?? name;
      return fieldOf(name === 'messages' ? 'turns' : name, call); // notes call the turns of a call `messages`
    }),
  );
}

const startedInClientsWords = (started: Started | undefined, words: Words, call: GenerateCall): Started | undefined =>
  started && started.ignored.length > 0 ? { ...started, ignored: notesInClientsWords(started.ignored, words, call) } : started;

/** A field with its reason, as in a warning, keeps the name that it has there beside the client's own. */
const renamed = (text: string, field: string, own: string): string =>
  text.includes(` ${field}: `)
    ? text.replace(` ${field}: `, ` ${own} (${field}): `)
    : text.replaceAll(new RegExp(`(?<![\\w-])${RegExp.escape(field)}(?![\\w-])`, 'g'), () => own);

/** A call whose faults name their fields as they are. */
interface Unworded {
  readonly call: Pick<GenerateCall, 'model' | 'stream'>;
  readonly context: Context;
  readonly words?: undefined;
}

/**
 * Runs a call within its deadline, and leaves with the exchange what its log line and the headers of a refusal need.
 * @throws Fault, which with `words` names its field as the client spelled it
 */
export async function accompanied(
  { limits }: Pick<GeneratingDeps, 'limits'>,
  exchange: Exchange,
  { call, context, words }: Understood | Unworded,
  run: () => Promise<void>,
): Promise<void> {
  const { requestSeconds, streamSeconds } = limits();
  exchange.expire(call.stream ? streamSeconds : requestSeconds);
  try {
    await run();
  } catch (error) {
    exchange.refusalHeaders = [...answerHeaders(context.progress, undefined), ...whoAnswered(context.progress)];
    throw words ? inClientsWords(error, words, call) : error;
  } finally {
    const { attempts, flags, cache } = context.progress;
    const last = attempts.at(-1);
    if (attempts.some(({ said }) => said !== undefined)) exchange.refusals = attempts.flatMap(({ said }) => said ?? []);
    exchange.notes.model = call.model.slice(0, 100);
    if (last) {
      exchange.notes.provider = last.provider;
      exchange.notes.attempts = attempts.length;
    }
    if (flags) exchange.notes.flags = flags.join(', ');
    if (cache) exchange.notes.cache = cache;
  }
}

/**
 * The context of a call that came through a face.
 * @param app the application, where the body names it
 * @param passed names of the client's headers that may go upstream
 * @throws Fault `invalid` for a header of choices that cannot be read
 */
export function contextOf({ exchange, caller }: Asked, face: BookedFace, app: string | undefined, passed: readonly string[]): Context {
  const headers: Record<string, string> = {};
  for (const name of passed) {
    const value = exchange.header(name);
    if (value !== undefined) headers[name] = value;
  }
  const hops = exchange.header(hopHeader);
  // A spread in this literal would make each later copy ten times as slow, and every rule and target gets one.
  const context: Context = {
    requestId: exchange.id,
    step: 0,
    caller,
    face,
    address: exchange.address ?? '',
    app: (app ?? appIn(exchange.header('x-app-name')) ?? caller.keyName).slice(0, 100),
    signal: exchange.signal,
    memory: exchange,
    strict: strictIn(exchange.header(choiceHeaders.strict)),
    targets: targetsIn(exchange.header(choiceHeaders.targets)),
    tags: tagsIn(exchange.header(choiceHeaders.tags)),
    headers,
    cacheSeconds: cacheSecondsIn(exchange.header(choiceHeaders.cache)),
    permits: new Permits(),
    progress: { attempts: [] },
  };
  return hops === undefined ? context : { ...context, hops };
}

/**
 * `app_name` is for our books and does not go upstream.
 *
 * @param members that the face reads. @throws Fault `invalid`, also for one of them in another case
 */
export function unlabelled(json: unknown, members: Members): { readonly app?: string; readonly body: unknown } {
  if (json === null || typeof json !== 'object') return { body: json };
  refuseOtherCase(json, members);
  if (!Object.hasOwn(json, 'app_name')) return { body: json };
  const { app_name: app, ...body } = json as { readonly app_name?: unknown };
  if (typeof app !== 'string') throw new Fault('invalid', 'app_name must be a string.', { field: 'app_name' });
  return { app, body };
}

const withPassthrough = ({ call, passthrough }: Understood, sink: Pick<Passthrough, 'write' | 'drained'>): GenerateCall =>
  passthrough ? { ...call, passthrough: { ...passthrough, write: sink.write, drained: sink.drained } } : call;

async function whole({ generate }: GeneratingDeps, exchange: Exchange, understood: Understood): Promise<void> {
  const { context, words } = understood;
  let forwarded: Uint8Array | undefined;
  const sink = {
    write(bytes: Uint8Array) {
      forwarded = bytes;
      return true;
    },
    drained: () => Promise.resolve(),
  };
  const answer = await wholeAnswer(generate, withPassthrough(understood, sink), context);
  const started = answer.find((event) => event.type === 'started');
  const whole = forwarded ? undefined : await words.whole(fold(answer)); // before the headers: it may warn
  const about = answerHeaders(context.progress, startedInClientsWords(started, words, understood.call));
  const headers = words.headers ? [...words.headers, ...about] : about;
  const own = forwarded && answer.find(isOwnUsage);
  if (own && words.usage) exchange.sendJson(200, { ...(await parsed(forwarded!)), [words.usageMember ?? 'usage']: words.usage(own.usage) }, headers);
  else if (forwarded) exchange.send(200, ['content-type', 'application/json', ...headers], forwarded);
  else if (words.wholeType) exchange.send(200, ['content-type', words.wholeType, ...headers], JSON.stringify(whole));
  else if (typeof whole === 'string') exchange.sendJsonText(200, whole, headers);
  else exchange.sendJson(200, whole, headers);
}

const isForwarded = (event: GenerateEvent): boolean => event.type === 'passed' && !event.unseen;

/** A usage that the provider did not report, or not where clients look for it. */
const isOwnUsage = (event: GenerateEvent): event is Extract<GenerateEvent, { type: 'usage' }> =>
  event.type === 'usage' && (event.usage.source === 'estimated' || event.misplaced === true);

/** An answer that its provider's decoder has read. */
async function parsed(bytes: Uint8Array): Promise<object> {
  return (bytes.length > largeBytes ? (await readLargeJson(bytes)).value : JSON.parse(Buffer.from(bytes).toString())) as object;
}

/** Bytes of the text of a call, more than any model reads. The rest of a body is media. */
const mostText = 8_388_608;

/** For a call whose text may be longer than that: of a large body, or of what is stored. @throws Fault `too-large` */
export function checkText(call: GenerateCall): void {
  if (promptSize(call).bytes > mostText)
    throw new Fault('too-large', `The text of the request is longer than ${mostText} bytes.`, { reason: 'context-length' });
}

/** Events that are encoded in one turn of the event loop: a buffered answer comes as hundreds of thousands at once. */
const turnEvents = 1000;

const eventStream = { contentType: 'text/event-stream; charset=utf-8', keepAlive: ': keep-alive\n\n' };

async function stream({ generate, clock, limits }: GeneratingDeps, exchange: Exchange, understood: Understood): Promise<void> {
  const { call, context, words } = understood;
  let started: Started | undefined;
  let isPassthrough = false;
  const out = new EventStream(exchange, {
    clock,
    holdSeconds: limits().holdHeadersSeconds,
    ...(words.framing ?? eventStream),
    headers: (early) => [...(words.headers ?? []), ...answerHeaders(context.progress, early ? undefined : startedInClientsWords(started, words, call))],
  });
  let frames: ReturnType<Words['frames']> | undefined; // made when they are needed: an answer that passes as it comes needs none before its end
  const encode = (event: GenerateEvent): string => {
    if (!frames) {
      frames = words.frames();
      if (started && started !== event) frames.encode(started);
    }
    return frames.encode(event);
  };
  try {
    for await (const events of generate(withPassthrough(understood, { write: (bytes) => out.write(bytes), drained: () => out.drained() }), context)) {
      for (let from = 0; from < events.length; from += turnEvents) {
        if (from > 0) await nextTurn();
        let text = '';
        const to = Math.min(events.length, from + turnEvents);
        for (let at = from; at < to; at++) {
          const event = events[at]!;
          if (event.type === 'started') {
            started = event;
            isPassthrough = events.some(isForwarded);
          }
          if (isForwarded(event)) isPassthrough = true;
          if (!isPassthrough || isOwnUsage(event)) text += encode(event);
        }
        if (text !== '' && !out.write(text)) await out.drained();
      }
    }
    out.end(await (frames ?? words.frames()).end());
  } catch (error) {
    if (!exchange.opened || exchange.left) throw error;
    out.write(await words.fault(faultOf(inClientsWords(reasonOf(error, exchange.signal), words, call))));
    exchange.end();
    throw error;
  } finally {
    out.close();
  }
}
