import { randomText } from '#kit/crypto/ids';
import type { GenerateEvent } from '#core/event';
import { isEmpty, isObject, rest, textOf, type JsonObject } from '#core/json';
import { UnclosedJson } from '../../shared/unclosed-json.ts';
import { malformed } from './faults.ts';
import { dialect, type WireToolCall } from './wire.ts';

/** The tool calls of one candidate, put in order whatever their vendor's way of cutting them into pieces. */
export interface Calls {
  readonly list: OpenCall[];
  /** The call that pieces with this index go on with. */
  readonly byIndex: Map<number, OpenCall>;
  /** The only call of the older form. */
  older: OpenCall | undefined;
}

interface OpenCall {
  readonly call: number;
  /** As the upstream gave it; may be empty. */
  readonly wireId: string;
  readonly id: string;
  readonly custom: boolean;
  readonly extra: JsonObject;
  /** Is its name known, and so its first event out? */
  named: boolean;
  /** Arguments that came before the name. */
  held: string;
  readonly unclosed: UnclosedJson;
}

export const newCalls = (): Calls => ({ list: [], byIndex: new Map(), older: undefined });

export function takeToolCall(value: unknown, candidate: number, calls: Calls, events: GenerateEvent[]): void {
  if (!isObject(value)) throw malformed();
  const piece: WireToolCall = value;
  const custom = isObject(piece.custom);
  const inner = custom ? piece.custom : isObject(piece.function) ? piece.function : {};
  const name = textOf(inner['name']);
  const call = openCall(piece, name, custom, calls);
  events.push(...saidByCall(call, name, argumentsOf(inner[custom ? 'input' : 'arguments']), candidate));
}

/**
 * The call that a piece belongs to. Its index says so; but Mistral may leave it out (then the id does, or else a name opens a call and the last one goes on),
 * and Gemini's compatible interface gives all calls the index 0 (then another id together with a name opens a call).
 */
function openCall(piece: WireToolCall, name: string, custom: boolean, calls: Calls): OpenCall {
  const id = textOf(piece.id);
  const index = typeof piece.index === 'number' ? piece.index : undefined;
  const known =
    index !== undefined ? calls.byIndex.get(index) : id !== '' ? calls.list.find((one) => one.wireId === id) : name === '' ? calls.list.at(-1) : undefined;
  if (known && !(id !== '' && name !== '' && known.wireId !== '' && known.wireId !== id)) return known;
  const call = newCall(calls, id, custom || piece.type === 'custom', rest(piece, callMembers));
  if (index !== undefined) calls.byIndex.set(index, call);
  return call;
}

const callMembers: ReadonlySet<string> = new Set(['index', 'id', 'type', 'function', 'custom']);

/** No answer has more: beyond, somebody wants to keep us busy. */
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
  const call = (calls.older ??= newCall(calls, 'call_function', false, { '.function_call': true })); // the older form has no ids
  events.push(...saidByCall(call, textOf(piece['name']), argumentsOf(piece['arguments']), candidate));
}

/** The first event of a call has its name, so what comes before the name is held. */
function saidByCall(call: OpenCall, name: string, json: string, candidate: number): readonly GenerateEvent[] {
  const first = !call.named && name !== '';
  if (!call.custom) call.unclosed.hear(json);
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

/** JSON text; some vendors send the object itself. */
const argumentsOf = (value: unknown) => (typeof value === 'string' ? value : isObject(value) ? JSON.stringify(value) : '');
