import type { Part, Turn } from '#core/conversation';
import type { Json, JsonObject } from '#core/json';
import { encodeInput, shownThought } from './encode-input.ts';
import { inputItemId, itemPlace } from './encode-items.ts';
import { nothingBefore, turnsOf } from './decode-input.ts';
import type { WireItem } from './wire.ts';

/** The items of what was kept: as a list, and one of them for whoever names it. */

/** @param id whose items they are. @returns with ids and statuses, oldest first */
export function listedItems(id: string, turns: readonly Turn[]): readonly JsonObject[] {
  return turns
    .flatMap((turn) => (turn.role === 'model' ? turn.parts.flatMap((part) => modelItems(part)) : encodeInput([turn], new Set())))
    .map((item, at) => ({ status: 'completed', ...item, id: inputItemId(id, at) }));
}

const modelItems = (part: Part): readonly JsonObject[] =>
  part.type === 'thought' ? [shownThought(part)] : encodeInput([{ role: 'model', parts: [part] }], new Set());

/** A kept response, as far as it takes to find its items again. */
export interface StoredItems {
  readonly response: JsonObject;
  /** What the client said. */
  readonly said: readonly Turn[];
  /** What the model answered, once it has. */
  readonly answer?: readonly Part[];
}

/** The responses (or conversations' entries) whose items an input names by their ids. */
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
 * Finds items by their ids, as turns; with what a provider needs to take them back. The lists in which they stand are made once, however many items a request names.
 *
 * @returns a function from the id of an item of this response to its turn
 */
export function itemFinder({ response, said, answer = [] }: StoredItems): (id: string) => Turn | undefined {
  const output = outputOf(response);
  let listed: readonly JsonObject[] | undefined;
  let parts: readonly (Part | undefined)[] | undefined;
  return (id) => {
    const place = itemPlace(id);
    if (!place) return undefined;
    if (place.from === 'input') return one((listed ??= listedItems(place.response, said))[place.index]);
    const item = output[place.index];
    if (item?.['id'] !== id) return undefined;
    const part = (parts ??= partsOf(output, answer))[place.index];
    return part ? { role: 'model', parts: [part] } : one(item);
  };
}

/** For each item of an output the part that it was made from, where it is of a kind that says less than its part. */
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

/** The parts that items of this kind were made from, one for each. */
function kindOf({ type }: JsonObject): Part['type'] | undefined {
  if (type === 'reasoning') return 'thought';
  return type === 'function_call' || type === 'custom_tool_call' ? 'tool-call' : undefined;
}

const one = (item: JsonObject | undefined): Turn | undefined => (item ? turnsOf([item as unknown as WireItem], nothingBefore)[0] : undefined);
