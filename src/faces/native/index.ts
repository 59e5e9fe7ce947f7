import type { TSchema } from 'typebox';
import type { GeneratingDeps } from '../answer.ts';
import { nativeRefusal } from '../native-fault.ts';
import { Fault } from '#core/fault';
import { isObject } from '#core/json';
import { coerced, unfolded } from '#http/coerce';
import { Accepted, Conversation, eventText, type Framing, type NounRoute, type PlainAsked, Speech, type Update, Updates } from '#http/noun-route';
import type { Exchange } from '#http/exchange';
import type { Face, Route } from '#http/route';
import { writeLargeJson } from '#kit/json/large';
import { parseJson } from '#kit/json/scan';
import { answerSpeech } from '../answer-speech.ts';
import { choicesIn } from '../choices.ts';
import { inOwnWords } from '../own-words.ts';
import { lastEventOf, sendPieces } from '../plain-route.ts';
import { answerConversation, delimited } from './conversation.ts';
import { envelopes, wrapped, wrappedSchema } from './envelopes.ts';
import { inKnownWords } from './known-words.ts';
import { spelledNames, withOwnNames, withVendorFields, withVendorNames } from './vendor-names.ts';

export interface NativeDeps extends Omit<GeneratingDeps, 'generate'> {
  /** As in the settings. */
  readonly compat: () => { readonly nativeErrors: 'http' | 'envelope'; readonly vendorNames: boolean };
}

/** The native interface: each answer in the envelope of its operation. Reads answer GET as well, with the fields behind the `?`. */
export function native(routes: readonly NounRoute[], deps: NativeDeps): Face {
  const { compat } = deps;
  return {
    name: 'native',
    roots: ['/user', '/server'],
    refusal,
    refusalStatus: (fault) => (compat().nativeErrors === 'envelope' ? 200 : fault.status),
    routes: routes.map((route) => withReading(spoken(route, deps))),
  };
}

/** Where clients of an earlier form of the interface look for `details` too. */
const ofAgents = /^\/server\/(?:list-agents|execute-agent|get-deep-agent)(?:\?|$)/;

function refusal(fault: Fault, requestId: string, url = '') {
  return { ...nativeRefusal(inKnownWords(fault), requestId), ...(ofAgents.test(url) ? { details: fault.details.field ?? null } : {}) };
}

function spoken(route: NounRoute, { compat, ...answering }: NativeDeps): Route {
  const envelope = envelopes[`${route.method} ${route.path}`];
  if (!envelope) throw new TypeError(`${route.method} ${route.path} has no envelope.`);
  const input = route.input && withVendorFields(route.input);
  const takesQuery = answersGet(route) || [route, ...(route.also ?? [])].some(({ method }) => hasNoBody(method));
  return {
    ...route,
    ...(input ? { input } : {}),
    takes: 'forms',
    ...(envelope.isBytes ? {} : { output: wrappedSchema(envelope, route.output) }),
    ...(route.others?.[202] ? { others: { 202: wrappedSchema({ ...envelope, status: 202 }, route.others[202]) } } : {}),
    ...(envelope.isText ? { outputType: 'text/plain' as const } : {}),
    async answer(asked) {
      const { exchange, caller, json, files } = asked;
      const by = { userId: caller.userId, keyId: caller.keyId, requestId: exchange.id, address: exchange.address };
      const { vendorNames } = compat();
      const given = fieldsOf(exchange, { input, takesQuery }, json);
      const choices = route.spends ? choicesIn((name) => exchange.header(name)) : undefined;
      if (choices?.strict && input && isObject(given)) refuseIgnored(given, input);
      const fields = isObject(given) ? withoutNulls(vendorNames ? withOwnNames(given) : given, input) : given;
      const query = route.query ? exchange.query : nothing;
      const framing = framingFor(exchange);
      const told = { ...lastEventOf(exchange), ...(framing ? { framing } : {}), ...(choices ? { choices } : {}) };
      const passed = { caller, by, params: exchange.params, query, json: fields, files, signal: exchange.signal, ...told };
      const answer = await answered(route, passed, vendorNames && isObject(given) ? spelledNames(given) : {});
      const named = (one: object) => (vendorNames ? withVendorNames({ ...one }) : one);
      if (answer instanceof Conversation) return answerConversation({ ...answering, envelope, named }, asked, answer);
      if (answer instanceof Updates) return answerUpdates(exchange, answer);
      if (answer instanceof Speech) return answerSpeech(answering, asked, 'native', answer);
      if (answer instanceof Accepted) return exchange.sendJson(202, wrapped({ ...envelope, status: 202 }, answer.value));
      const whole = named(wrapped(envelope, answer));
      return envelope.large ? sendLarge(exchange, whole) : whole;
    },
  };
}

/** @param names what the client calls fields, where it sent them under other names than ours */
async function answered(route: NounRoute, asked: PlainAsked, names: Readonly<Record<string, string>>): Promise<unknown> {
  try {
    return await route.answer(asked);
  } catch (error) {
    throw inOwnWords(error, names);
  }
}

async function sendLarge(exchange: Exchange, answer: object): Promise<void> {
  const bytes = await writeLargeJson(answer);
  exchange.need(bytes.length);
  exchange.send(200, ['content-type', 'application/json; charset=utf-8'], bytes);
}

const nothing = new URLSearchParams();

/** The body; at an address that also answers a method without one, what stands behind the `?` as well, with the body's members before it. */
function fieldsOf(exchange: Exchange, { input, takesQuery }: { readonly input: TSchema | undefined; readonly takesQuery: boolean }, json: unknown): unknown {
  const words = takesQuery ? coerced(exchange.query, input, jsonIn) : {};
  return json === undefined ? words : isObject(json) ? { ...words, ...unfolded(json, input, jsonIn) } : json;
}

/** Null is as good as absent where a field may be absent: clients send all that they know. */
function withoutNulls(fields: Readonly<Record<string, unknown>>, input: (TSchema & { readonly required?: readonly string[] }) | undefined): object {
  const isSent = ([name, value]: [string, unknown]) => value !== null || input?.required?.includes(name);
  return Object.values(fields).includes(null) ? Object.fromEntries(Object.entries(fields).filter(isSent)) : fields;
}

function jsonIn(text: string): unknown {
  try {
    return parseJson(Buffer.from(text));
  } catch {
    return undefined;
  }
}

/** What only reads answers GET too; what writes, spends or gives something away does not, for it would invite requests from other sites. */
function withReading(route: Route): Route {
  const paths = [route.path, ...(route.also ?? []).map(({ path }) => path)];
  return answersGet(route) ? { ...route, also: [...(route.also ?? []), ...paths.map((path) => ({ method: 'GET' as const, path }))] } : route;
}

const hasNoBody = (method: Route['method']): boolean => method === 'GET' || method === 'DELETE';

const answersGet = ({ method, path, scope, spends }: Pick<Route, 'method' | 'path' | 'scope' | 'spends'>): boolean =>
  method === 'POST' && scope !== 'public' && !spends && /\/((get|list|count)-|tokenizer$)/.test(path);

const longestName = 100;

/** @param input the fields that the operation knows; one with `x-ignored` is accepted and not heeded @throws Fault `invalid` naming the first field that would be ignored */
function refuseIgnored(given: Readonly<Record<string, unknown>>, input: TSchema & { readonly properties?: Readonly<Record<string, object>> }): void {
  const { properties = {} } = input;
  const isHeeded = (name: string) => Object.hasOwn(properties, name) && !('x-ignored' in properties[name]!);
  const ignored = Object.entries(given).find(([name, value]) => value !== null && !isHeeded(name))?.[0];
  if (ignored === undefined) return;
  const field = ignored.slice(0, longestName);
  throw new Fault('invalid', `${field} is ignored here.`, { field });
}

/** What a client asks for by its `Accept`; undefined: it names neither. */
function framingFor(exchange: Exchange): Framing | undefined {
  const accepts = (exchange.header('accept') ?? '').slice(0, 1000);
  if (/\btext\/event-stream\b/i.test(accepts)) return 'events';
  return /\btext\/plain\b/i.test(accepts) ? 'text' : undefined;
}

/** Sends updates as they come: as server-sent events, or as objects with delimiters between them. */
function answerUpdates(exchange: Exchange, { updates, failed, usual }: Updates): Promise<void> {
  const isText = (framingFor(exchange) ?? usual) === 'text';
  const plain = delimited();
  const framed = isText ? ({ value }: Update) => plain.framed(value) : eventText;
  const contentType = isText ? 'text/plain; charset=utf-8' : 'text/event-stream; charset=utf-8';
  const headers = ['content-type', contentType, 'x-accel-buffering', 'no'];
  return sendPieces(exchange, pieces(updates, framed), headers, (fault) => framed(failed(inKnownWords(fault))));
}

async function* pieces(updates: AsyncIterable<Update>, framed: (update: Update) => string): AsyncGenerator<string> {
  for await (const update of updates) yield framed(update);
}
