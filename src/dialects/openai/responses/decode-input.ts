import { textTurn, type MediaPart, type Part, type RefusalPart, type SearchPart, type TextPart, type Turn } from '#core/conversation';
import { Fault, invalid } from '#core/fault';
import { allMembers, rest, type Extra, type JsonObject } from '#core/json';
import { bounded } from '../../shared/read-fields.ts';
import { itemNote } from '../../shared/lone-items.ts';
import { isProviderSearch, itemPlace, withoutListedId } from './encode-items.ts';
import { mediaOf } from './media.ts';
import { partOfItem } from './server-steps.ts';
import { thoughtOf } from './thoughts.ts';
import { carriedAs, dialect, imageNote, type WireContentPart, type WireItem } from './wire.ts';

/** The stored conversation that a request continues. */
export interface Before {
  /** The conversation so far, oldest first. */
  readonly turns: readonly Turn[];
  /** The turns of the items that the input refers to, by item id. */
  readonly items: ReadonlyMap<string, Turn>;
  /** Is the item in the conversation so far? It is not taken again. */
  readonly has?: (item: WireItem) => boolean;
}

export const nothingBefore: Before = { turns: [], items: new Map() };

/**
 * Input → turns. Consecutive items of the model (a thought, a message, its calls) are one turn, as are consecutive tool results.
 * @param field the client's name for the input
 * @throws Fault `invalid`, `not-found` for a reference to an unknown item
 */
export function turnsOf(input: string | readonly WireItem[], before: Before, field = 'input'): readonly Turn[] {
  if (typeof input === 'string') return [textTurn('user', input)];
  const builder = new TurnBuilder(before.turns);
  input.forEach((item, at) => {
    if (!before.has?.(item)) take(item, `${field}[${at}]`, builder, before.items);
  });
  return builder.turns;
}

class TurnBuilder {
  readonly turns: { readonly role: Turn['role']; readonly parts: Part[]; readonly extra?: Extra; readonly results?: true }[] = [];
  /** Ids of the tool calls so far. */
  readonly calls = new Set<string>();

  constructor(before: readonly Turn[]) {
    for (const { parts } of before) this.#note(parts);
  }

  turn(turn: Turn): void {
    this.#note(turn.parts);
    this.turns.push({ ...turn, parts: [...turn.parts] });
  }

  /** @param message the parts are a message of their own, which does not continue another */
  model(parts: readonly Part[], message = false): void {
    this.#note(parts);
    const last = this.turns.at(-1);
    const continuesLast = last?.role === 'model' && !(message && last.parts.some((part) => part.type === 'text' || part.type === 'refusal'));
    if (continuesLast) last.parts.push(...parts);
    else this.turns.push({ role: 'model', parts: [...parts] });
  }

  result(part: Part): void {
    const last = this.turns.at(-1);
    if (last?.results) last.parts.push(part);
    else this.turns.push({ role: 'user', parts: [part], results: true });
  }

  #note(parts: readonly Part[]): void {
    for (const part of parts) if (part.type === 'tool-call') this.calls.add(part.id);
  }
}

function take(item: WireItem, place: string, builder: TurnBuilder, items: Before['items']): void {
  switch (item.type) {
    case undefined:
    case null:
    case 'message':
      return takeMessage(item, place, builder);
    case 'function_call': {
      const { call_id: id, name, arguments: json } = item;
      return builder.model([{ type: 'tool-call', id, name, json, ...carriedAs(rest(item, functionCallMembers)) }]);
    }
    case 'custom_tool_call': {
      const { call_id: id, name, input: json } = item;
      return builder.model([{ type: 'tool-call', id, name, json, custom: true, ...carriedAs(rest(item, customCallMembers)) }]);
    }
    case 'function_call_output':
    case 'custom_tool_call_output': {
      const { call_id: id, output } = item;
      if (!builder.calls.has(id)) throw invalid(`${place}.call_id`, 'must be the call_id of an earlier tool call');
      return builder.result({
        type: 'tool-result',
        id,
        parts: contentParts(output, `${place}.output`),
        ...carriedAs(rest(item, outputMembers)),
      });
    }
    case 'reasoning':
      return builder.model([thoughtOf(item)]);
    case 'item_reference': {
      const found = items.get(item.id);
      if (!found) throw new Fault('not-found', 'There is no item with this id.', { field: `${place}.id` });
      if (found.role === 'model') return builder.model(found.parts);
      const [part] = found.parts;
      if (part?.type !== 'tool-result') return builder.turn(found);
      if (!builder.calls.has(part.id)) throw invalid(`${place}.id`, 'names an output whose tool call does not come before it');
      return builder.result(part);
    }
    default: {
      const search = isSearch(item) ? searchOf(item) : undefined;
      if (search) return builder.model([search]);
      const part = partOfItem(bounded(withoutListedId(allMembers(item)), place));
      const image = imageOf(part.value);
      if (image) return builder.model([image]);
      return isFromClient(part.value) ? builder.turn({ role: 'user', parts: [part], ...carriedAs({ [itemNote]: true }) }) : builder.model([part]);
    }
  }
}

/** The image that an item of an answer has, with the rest of the item for providers of this wire. */
function imageOf({ result, ...item }: JsonObject): MediaPart | undefined {
  if (item['type'] !== 'image_generation_call' || typeof result !== 'string' || result === '') return undefined;
  return { type: 'media', kind: 'image', base64: result, extra: { [dialect]: { [imageNote]: item } } };
}

const isSearch = ({ type }: { readonly type: string }) => type === 'web_search_call';

/** A search that the gateway made an item of, by its id: no provider knows it. In lists, those of providers have such ids, too. */
function searchOf(item: object): SearchPart | undefined {
  const { id } = item as { readonly id?: unknown };
  if (typeof id !== 'string' || itemPlace(id)?.from !== 'output') return undefined;
  return { type: 'search', id, query: '', state: 'completed', sources: [], ...(isProviderSearch(id) ? { isLost: true } : {}) };
}

/** Is the item from the client, and not from the model? */
export function isFromClient({ type, role }: JsonObject): boolean {
  const name = typeof type === 'string' ? type : '';
  if (typeof role === 'string') return role !== 'assistant';
  return name.endsWith('_output') || name === 'mcp_approval_response' || name === 'compaction_trigger' || name === 'additional_tools';
}

const functionCallMembers = new Set(['type', 'id', 'call_id', 'name', 'arguments', 'status']);
const customCallMembers = new Set(['type', 'id', 'call_id', 'name', 'input', 'status']);
const outputMembers = new Set(['type', 'id', 'call_id', 'output', 'status']);
const messageMembers = new Set(['type', 'id', 'role', 'content', 'status']);

type Message = Extract<WireItem, { role: unknown }>;

function takeMessage(item: Message, place: string, builder: TurnBuilder): void {
  const carried = rest(item, messageMembers);
  const { role, content } = item;
  switch (role) {
    case 'system':
    case 'developer': {
      const parts = contentParts(content, `${place}.content`);
      return builder.turn({ role: 'system', parts, ...carriedAs({ ...carried, ...(role === 'developer' ? { '.role': role } : {}) }) });
    }
    case 'user':
      return builder.turn({ role: 'user', parts: contentParts(content, `${place}.content`), ...carriedAs(carried) });
    case 'assistant': {
      const [first, ...others] = modelParts(content, `${place}.content`);
      if (!first) return;
      const marked: Part = Object.keys(carried).length > 0 && first.type === 'text' ? withMessage(first, carried) : first;
      return builder.model([marked, ...others], true);
    }
    default:
      return role satisfies never;
  }
}

/** The members of a message are carried on its first text. */
const withMessage = (part: TextPart, carried: JsonObject): TextPart => ({
  ...part,
  extra: { ...part.extra, [dialect]: { ...part.extra?.[dialect], '.message': carried } },
});

function contentParts(content: Message['content'], place: string): (TextPart | MediaPart)[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.map((part, at) => {
    if (part.type === 'input_text' || part.type === 'output_text') return textOf(part);
    if (part.type === 'refusal') throw invalid(`${place}[${at}].type`, 'must be "input_text", "input_image", "input_file" or "input_audio"');
    return mediaOf(part, `${place}[${at}]`);
  });
}

function modelParts(content: Message['content'], place: string): (TextPart | RefusalPart)[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return content.map((part, at) => {
    if (part.type === 'refusal') return { type: 'refusal', text: part.refusal };
    if (part.type === 'input_text' || part.type === 'output_text') return textOf(part);
    throw invalid(`${place}[${at}].type`, 'must be "output_text" or "refusal" in a message of the assistant');
  });
}

/** A text part; its annotations are carried and its log probabilities dropped. */
function textOf(part: Extract<WireContentPart, { text: string }>): TextPart {
  const { annotations, ...carried } = rest(part, textMembers);
  const cited = Array.isArray(annotations) && annotations.length > 0 ? { '.annotations': annotations } : {};
  return { type: 'text', text: part.text, ...carriedAs({ ...carried, ...cited }) };
}
const textMembers = new Set(['type', 'text', 'logprobs']);
