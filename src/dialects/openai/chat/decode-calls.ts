import { randomText } from '#kit/crypto/ids';
import type { GenerateEvent } from '#core/event';
import { isEmpty, isObject, rest, textOf, type JsonObject } from '#core/json';
import { textOfArguments } from '../../shared/arguments.ts';
import { DistinctIds } from '../../shared/distinct-ids.ts';
import { UnclosedJson } from '../../shared/unclosed-json.ts';
import { malformed } from './faults.ts';
import { dialect, type WireToolCall } from './wire.ts';

/** The tool calls of one candidate, assembled from fragments in any vendor's format. */
export interface Calls {
  readonly list: OpenCall[];
  readonly ids: DistinctIds;
  /** The call that fragments with an index continue; absent until there is one. */
  byIndex?: Map<number, OpenCall>;
  /** The legacy `function_call`, of which there is at most one. */
  older?: OpenCall;
  /** The declared tools. Absent: names come whole. */
  readonly names?: ReadonlySet<string> | undefined;
}

interface OpenCall {
  readonly call: number;
  /** As the upstream sent it; may be empty. */
  readonly wireId: string;
  readonly id: string;
  readonly custom: boolean;
  readonly extra: JsonObject;
  /** What came of its name. */
  name: string;
  /** Is its name whole, so that its first event was emitted? */
  named: boolean;
  /** Arguments that arrived before the name. */
  held: string;
  /** Are its arguments nothing but white space so far? */
  isBlank: boolean;
  readonly unclosed: UnclosedJson;
}

export const newCalls = (names?: ReadonlySet<string>): Calls => ({ list: [], ids: new DistinctIds(), names });

/** Takes the pieces of one list: a whole answer has all its calls in one. */
export function takeToolCalls(pieces: readonly unknown[], candidate: number, calls: Calls, events: GenerateEvent[]): void {
  const begun = calls.list.length;
  for (const piece of pieces) takeToolCall(piece, candidate, { calls, begun }, events);
}

/** @param begun how many calls there were before the list */
function takeToolCall(value: unknown, candidate: number, { calls, begun }: { readonly calls: Calls; readonly begun: number }, events: GenerateEvent[]): void {
  if (!isObject(value)) throw malformed();
  const piece: WireToolCall = value;
  const custom = isObject(piece.custom);
  const inner = custom ? piece.custom : isObject(piece.function) ? piece.function : {};
  const name = textOf(inner['name']);
  const { length } = calls.list;
  const call = continued(piece, name, calls, begun) ?? opened(piece, custom, calls);
  if (calls.list.length > length) takeHeld(candidate, calls, events, call);
  events.push(...callEvents(call, name, textOfArguments(inner[custom ? 'input' : 'arguments']), candidate, calls));
}

/** The calls whose names nothing goes on with. @param but one that has just begun */
export function takeHeld(candidate: number, calls: Calls, events: GenerateEvent[], but?: OpenCall): void {
  for (const call of calls.list) if (call !== but && !call.named && call.name !== '') events.push(firstEvent(call, candidate));
}

/** Arguments must be JSON, even where a server sends none for a function without parameters. */
export function takeBlank(candidate: number, calls: Calls, events: GenerateEvent[]): void {
  for (const call of calls.list) if (call.isBlank && !call.custom) events.push(eventOf(call, candidate, '{}'));
}

/**
 * The call that a fragment belongs to, by its index; undefined where it begins one. Mistral may omit the index: then the id decides, or else a name opens a new
 * call and a fragment without a name continues the last. Gemini's compatible API gives all calls the index 0: there a different id together with a name opens a
 * new call. Without an index each name in a list opens one, whatever its id: some servers repeat ids.
 */
function continued(piece: WireToolCall, name: string, calls: Calls, begun: number): OpenCall | undefined {
  const id = textOf(piece.id);
  if (typeof piece.index === 'number') {
    const known = calls.byIndex?.get(piece.index);
    return known && id !== '' && name !== '' && known.wireId !== '' && known.wireId !== id ? undefined : known;
  }
  if (id !== '') return calls.list.find((one) => one.wireId === id && (one.call < begun || name === ''));
  return name === '' ? calls.list.at(-1) : undefined;
}

function opened(piece: WireToolCall, custom: boolean, calls: Calls): OpenCall {
  const call = newCall(calls, textOf(piece.id), custom || piece.type === 'custom', rest(piece, callMembers));
  if (typeof piece.index === 'number') (calls.byIndex ??= new Map()).set(piece.index, call);
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
    id: wireId === '' ? `call_${randomText(24)}` : calls.ids.take(wireId),
    custom,
    extra,
    name: '',
    named: false,
    held: '',
    isBlank: true,
    unclosed: new UnclosedJson(),
  };
  calls.list.push(call);
  return call;
}

export function takeFunctionCall(piece: Readonly<Record<string, unknown>>, candidate: number, calls: Calls, events: GenerateEvent[]): void {
  const call = (calls.older ??= newCall(calls, 'call_function', false, { '.function_call': true })); // legacy calls have no ids
  events.push(...callEvents(call, textOf(piece['name']), textOfArguments(piece['arguments']), candidate, calls));
}

/** The first event of a call has its whole name, so arguments that arrive before that are held. */
function callEvents(call: OpenCall, name: string, json: string, candidate: number, calls: Calls): readonly GenerateEvent[] {
  if (!call.custom) call.unclosed.push(json);
  call.isBlank &&= json.trim() === '';
  if (call.named) return json === '' ? [] : [eventOf(call, candidate, json)];
  call.name = nameWith(call.name, name);
  call.held += json;
  return isWhole(call, calls) ? [firstEvent(call, candidate)] : [];
}

/** Some servers send the name in pieces, some send it, or what there is of it so far, with each piece of the arguments. */
const nameWith = (before: string, piece: string): string => (piece.startsWith(before) ? piece : piece === '' ? before : before + piece);

/** Is nothing of the name to come? It is that of a tool or followed by arguments, and not the beginning of another. */
function isWhole({ name, held }: OpenCall, { names }: Calls): boolean {
  if (name === '') return false;
  if (!names || (held !== '' && names.has(name))) return true;
  for (const one of names) if (one.length > name.length && one.startsWith(name)) return false;
  return held !== '' || names.has(name);
}

function firstEvent(call: OpenCall, candidate: number): GenerateEvent {
  const { name, held } = call;
  call.named = true;
  call.held = '';
  return eventOf(call, candidate, held, name);
}

function eventOf(call: OpenCall, candidate: number, json: string, name?: string): GenerateEvent {
  const older = call.extra['.function_call'] === true;
  const extra = (name !== undefined || older) && !isEmpty(call.extra) ? { extra: { [dialect]: call.extra } } : {};
  return {
    type: 'tool-call',
    candidate,
    call: call.call,
    id: call.id,
    ...(name === undefined ? {} : { name }),
    json,
    ...(call.custom ? { custom: true } : {}),
    ...extra,
  };
}
