import type { Citation, ForeignPart, Part, SearchPart } from '#core/conversation';
import type { FinishReason, Started } from '#core/event';
import { own, type Extra, type Json, type JsonObject } from '#core/json';
import { tokenOf } from '#core/thoughts';
import { dialect } from './wire.ts';

/** Helpers that streams and whole answers share. */

const stopReasons: Readonly<Record<FinishReason, string>> = { stop: 'end_turn', length: 'max_tokens', tool: 'tool_use', refused: 'refusal' };
const ownReasons: ReadonlySet<string> = new Set([...Object.values(stopReasons), 'stop_sequence', 'pause_turn', 'model_context_window_exceeded']);

/** The members of a message: those before its content, and the carried ones after it. */
export function headOf({ model, extra }: Started, id: string): { readonly head: JsonObject; readonly others: JsonObject } {
  const { id: itsId, ...others } = own(extra, dialect);
  return { head: { id: itsId ?? id, type: 'message', role: 'assistant', model }, others };
}

/** The upstream's own stop reason where it is one of this wire. `others`: carried members of the message at its end. */
export function stopOf(reason: FinishReason, raw: string, extra: Extra | undefined): { readonly stop: JsonObject; readonly others: JsonObject } {
  const { '.stop_reason': newer, stop_sequence: sequence = null, stop_details: details, container, ...others } = own(extra, dialect);
  const stop: Record<string, Json> = { stop_reason: newer ?? (ownReasons.has(raw) ? raw : stopReasons[reason]), stop_sequence: sequence };
  if (details !== undefined) stop['stop_details'] = details;
  if (container !== undefined) stop['container'] = container;
  return { stop, others };
}

/** The carried members of a thought: where another wire's is shown, the gateway's own token is its signature. */
export function thoughtMembers(extra: Extra | undefined): JsonObject {
  const members = own(extra, dialect);
  const token = members['signature'] === undefined ? tokenOf(extra) : undefined;
  return token === undefined ? members : { ...members, signature: token };
}

/** Marks the ids of searches that the gateway ran: no provider knows them. */
const searchPrefix = 'srvtoolu_gateway_';

export const isOurSearch = (id: unknown): boolean => typeof id === 'string' && id.startsWith(searchPrefix);

/** A search that the gateway made, or a provider of another wire. */
export type ShownSearch = SearchPart | (ForeignPart & { readonly search: Omit<SearchPart, 'type'> });

/** Did the gateway, or a provider of another wire, search the web? */
export const isSearch = (part: Part): part is ShownSearch =>
  part.type === 'search' || (part.type === 'foreign' && part.dialect !== dialect && part.search !== undefined);

/** Searches that did not fail: the others are not counted in `usage`. */
export const isCounted = (part: ShownSearch): boolean => (part.type === 'search' ? part : part.search).state === 'completed';

/** A finished search as its tool use block and its result block; none while it runs. */
export function searchBlocks(part: ShownSearch): readonly JsonObject[] {
  const { id, query, state, sources } = part.type === 'search' ? part : part.search;
  if (state === 'searching') return [];
  const tool = `${searchPrefix}${id}`;
  const content: Json =
    state === 'failed'
      ? { type: 'web_search_tool_result_error', error_code: 'unavailable' }
      : sources.map(({ url, title }) => ({ type: 'web_search_result', url, title, encrypted_content: '', page_age: null }));
  return [
    { type: 'server_tool_use', id: tool, name: 'web_search', input: { query } },
    { type: 'web_search_tool_result', tool_use_id: tool, content },
  ];
}

/** Characters of `cited_text`. */
const maxCitedText = 150;

/** @param text of the part that has the citations */
export function citationsOf(citations: readonly Citation[], text: string): readonly JsonObject[] {
  const characters = Array.from(text);
  return citations.map(({ url, title, start, end }) => ({
    type: 'web_search_result_location',
    url,
    title,
    encrypted_index: '',
    cited_text: characters.slice(start, Math.min(end, start + maxCitedText)).join(''),
  }));
}
