import type { Part, Turn } from '#core/conversation';
import { textOf, type Json, type JsonObject } from '#core/json';
import { encodeInput, shownThought } from './encode-input.ts';
import { inputItemId, itemPlace } from './encode-items.ts';
import { nothingBefore, turnsOf } from './decode-input.ts';
import type { WireItem } from './wire.ts';

/** The items of stored responses: as a list, and one by its id. */

/** @param id of the response or the conversation entry. @returns items with ids and statuses, oldest first */
export const listedItems = (id: string, turns: readonly Turn[]): readonly JsonObject[] =>
  itemsOf(turns).map((item, at) => {
    const type = textOf(item['type']);
    return { ...(withStatus.has(type) ? { status: 'completed' } : {}), ...item, id: inputItemId(id, at, type) };
  });

/** Items that are listed with a status though they are stored without. Those that are sent on as they came keep what they have: some types have none. */
const withStatus: ReadonlySet<string> = new Set('message reasoning function_call function_call_output custom_tool_call custom_tool_call_output'.split(' '));

/** The items that turns were decoded from; those that are sent on as they came have their own ids. */
const itemsOf = (turns: readonly Turn[]): readonly JsonObject[] =>
  turns.flatMap((turn) => (turn.role === 'model' ? turn.parts.flatMap((part) => modelItems(part)) : encodeInput([turn], new Set())));

const modelItems = (part: Part): readonly JsonObject[] =>
  part.type === 'thought' ? [shownThought(part)] : encodeInput([{ role: 'model', parts: [part] }], new Set());

/** The members of a stored response that its items are found in. */
export interface StoredItems {
  readonly response: JsonObject;
  /** The client's input. */
  readonly said: readonly Turn[];
  /** The model's answer, once it is complete. */
  readonly answer?: readonly Part[];
}

/** The ids of the responses (or conversation entries) whose items an input refers to. */
export function referredResponses(input: Json | readonly unknown[] | undefined): ReadonlySet<string> {
  const ids = new Set<string>();
  if (!Array.isArray(input)) return ids;
  for (const item of input as readonly { readonly type?: unknown; readonly id?: unknown }[]) {
    if (item?.type !== 'item_reference' || typeof item.id !== 'string') continue;
    const place = itemPlace(item.id);
    if (place) ids.add(place.response);
  }
  return ids;
}

/**
 * Finds items of a stored response by their ids, as turns that can be sent to a provider again. The lists are built once for all references of a request.
 * @returns a function from the id of an item of this response to its turn
 */
export function itemFinder({ response, said: input, answer = [] }: StoredItems): (id: string) => Turn | undefined {
  const output = outputOf(response);
  let items: readonly JsonObject[] | undefined;
  let parts: readonly (Part | undefined)[] | undefined;
  return (id) => {
    const place = itemPlace(id);
    if (!place) return undefined;
    if (place.from === 'input') return one((items ??= itemsOf(input))[place.index]);
    const item = output[place.index];
    if (item?.['id'] !== id) return undefined;
    const part = (parts ??= partsOf(output, answer))[place.index];
    return part ? { role: 'model', parts: [part] } : one(item);
  };
}

/** For each output item the part that it was encoded from, where its kind loses members of the part. */
function partsOf(output: readonly JsonObject[], answer: readonly Part[]): readonly (Part | undefined)[] {
  const byKind = Map.groupBy(answer, ({ type }) => type);
  const taken = new Map<Part['type'], number>();
  return output.map((item) => {
    const kind = kindOf(item);
    if (kind === undefined) return undefined;
    const at = taken.get(kind) ?? 0;
    taken.set(kind, at + 1);
    return byKind.get(kind)?.[at];
  });
}

export const outputOf = ({ output }: JsonObject): readonly JsonObject[] => (Array.isArray(output) ? (output as readonly JsonObject[]) : []);

/** The part type that items of this kind were encoded from, one item per part; undefined for kinds without loss. */
function kindOf({ type }: JsonObject): Part['type'] | undefined {
  if (type === 'reasoning') return 'thought';
  return type === 'function_call' || type === 'custom_tool_call' ? 'tool-call' : undefined;
}

/** One item as a turn. An output is decoded behind a placeholder of its call; `take` of decode-input checks for the real one. */
function one(item: JsonObject | undefined): Turn | undefined {
  if (!item) return undefined;
  const call: Turn = { role: 'model', parts: [{ type: 'tool-call', id: textOf(item['call_id']), name: '', json: '' }] };
  return turnsOf([item as unknown as WireItem], { ...nothingBefore, turns: [call] })[0];
}
