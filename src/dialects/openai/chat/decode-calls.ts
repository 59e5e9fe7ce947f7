import { randomText } from '#kit/crypto/ids';
import type { GenerateEvent } from '#core/event';
import { isEmpty, isObject, rest, textOf, type JsonObject } from '#core/json';
import { UnclosedJson } from '../../shared/unclosed-json.ts';
import { malformed } from './faults.ts';
import { dialect, type WireToolCall } from './wire.ts';

/** The tool calls of one candidate, assembled from fragments in any vendor's format. */
export interface Calls {
  readonly list: OpenCall[];
  /** The call that fragments with an index continue; absent until there is one. */
  byIndex?: Map<number, OpenCall>;
  /** The legacy `function_call`, of which there is at most one. */
  older?: OpenCall;
}

interface OpenCall {
  readonly call: number;
  /** As the upstream sent it; may be empty. */
  readonly wireId: string;
  readonly id: string;
  readonly custom: boolean;
  readonly extra: JsonObject;
  /** Is its name known, so that its first event was emitted? */
  named: boolean;
  /** Arguments that arrived before the name. */
  held: string;
  readonly unclosed: UnclosedJson;
}

export const newCalls = (): Calls => ({ list: [] });

export function takeToolCall(value: unknown, candidate: number, calls: Calls, events: GenerateEvent[]): void {
  if (!isObject(value)) throw malformed();
  const piece: WireToolCall = value;
  const custom = isObject(piece.custom);
  const inner = custom ? piece.custom : isObject(piece.function) ? piece.function : {};
  const name = textOf(inner['name']);
  const call = openCall(piece, name, custom, calls);
  events.push(...callEvents(call, name, argumentsOf(inner[custom ? 'input' : 'arguments']), candidate));
}

/**
 * The call that a fragment belongs to, by its index. Mistral may omit the index: then the id decides, or else a name opens a new call and a fragment without a
 * name continues the last. Gemini's compatible API gives all calls the index 0: there a different id together with a name opens a new call.
 */
function openCall(piece: WireToolCall, name: string, custom: boolean, calls: Calls): OpenCall {
  const id = textOf(piece.id);
  const index = typeof piece.index === 'number' ? piece.index : undefined;
  const known =
    index !== undefined ? calls.byIndex?.get(index) : id !== '' ? calls.list.find((one) => one.wireId === id) : name === '' ? calls.list.at(-1) : undefined;
  if (known && !(id !== '' && name !== '' && known.wireId !== '' && known.wireId !== id)) return known;
  const call = newCall(calls, id, custom || piece.type === 'custom', rest(piece, callMembers));
  if (index !== undefined) (calls.byIndex ??= new Map()).set(index, call);
  return call;
}

const callMembers: ReadonlySet<string> = new Set(['index', 'id', 'type', 'function', 'custom']);

/** Far more than any real answer has: a limit against misbehaving upstreams. */
const mostCalls = 1024;

function newCall(calls: Calls, wireId: string, custom: boolean, extra: JsonObject): OpenCall {
  if (calls.list.length === mostCalls) throw malformed();
  const call: OpenCall = {
    call: calls.list.length,
    wireId,
    id: wireId || `call_${randomText(24)}`,
    custom,
    extra,
    named: false,
    held: '',
    unclosed: new UnclosedJson(),
  };
  calls.list.push(call);
  return call;
}

export function takeFunctionCall(piece: Readonly<Record<string, unknown>>, candidate: number, calls: Calls, events: GenerateEvent[]): void {
  const call = (calls.older ??= newCall(calls, 'call_function', false, { '.function_call': true })); // legacy calls have no ids
  events.push(...callEvents(call, textOf(piece['name']), argumentsOf(piece['arguments']), candidate));
}

/** The first event of a call has its name, so arguments that arrive before the name are held. */
function callEvents(call: OpenCall, name: string, json: string, candidate: number): readonly GenerateEvent[] {
  const first = !call.named && name !== '';
  if (!call.custom) call.unclosed.push(json);
  if (!call.named && !first) {
    call.held += json;
    return [];
  }
  if (!first && json === '') return [];
  call.named = true;
  const older = call.extra['.function_call'] === true;
  const extra = (first || older) && !isEmpty(call.extra) ? { extra: { [dialect]: call.extra } } : {};
  const event: GenerateEvent = {
    type: 'tool-call',
    candidate,
    call: call.call,
    id: call.id,
    ...(first ? { name } : {}),
    json: first ? call.held + json : json,
    ...(call.custom ? { custom: true } : {}),
    ...extra,
  };
  call.held = '';
  return [event];
}

/** The arguments as JSON text; some vendors send an object. */
const argumentsOf = (value: unknown) => (typeof value === 'string' ? value : isObject(value) ? JSON.stringify(value) : '');
