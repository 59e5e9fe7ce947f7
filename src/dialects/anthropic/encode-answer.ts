import type { Citation, SearchPart } from '#core/conversation';
import type { FinishReason, Started } from '#core/event';
import { own, type Extra, type Json, type JsonObject } from '#core/json';
import { dialect } from './wire.ts';

/** What streams and whole answers have in common. */

const stopWords: Readonly<Record<FinishReason, string>> = { stop: 'end_turn', length: 'max_tokens', tool: 'tool_use', refused: 'refusal' };
const ownWords: ReadonlySet<string> = new Set([...Object.values(stopWords), 'stop_sequence', 'pause_turn', 'model_context_window_exceeded']);

/** The members of a message before its content, and those after its end. */
export function headOf({ model, extra }: Started, id: string): { readonly head: JsonObject; readonly others: JsonObject } {
  const { id: itsId, ...others } = own(extra, dialect);
  return { head: { id: itsId ?? id, type: 'message', role: 'assistant', model }, others };
}

/** The upstream's own word for the end where it is one of this wire's. `others` are what the message says of itself at its end. */
export function stopOf(reason: FinishReason, raw: string, extra: Extra | undefined): { readonly stop: JsonObject; readonly others: JsonObject } {
  const { stop_sequence: sequence = null, stop_details: details, container, ...others } = own(extra, dialect);
  const stop: Record<string, Json> = { stop_reason: ownWords.has(raw) ? raw : stopWords[reason], stop_sequence: sequence };
  if (details !== undefined) stop['stop_details'] = details;
  if (container !== undefined) stop['container'] = container;
  return { stop, others };
}

/** Ids that say that the gateway searched: to a provider such a search is unknown. */
const searchPrefix = 'srvtoolu_gateway_';

export const isOurSearch = (id: unknown): boolean => typeof id === 'string' && id.startsWith(searchPrefix);

/** A search that is over, as the blocks of the call and of its result. */
export function searchBlocks({ id, query, state, sources }: SearchPart): readonly JsonObject[] {
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

/** Characters of what is cited. */
const longestCited = 150;

/** @param text of the part that is cited in */
export function citationsOf(citations: readonly Citation[], text: string): readonly JsonObject[] {
  const characters = Array.from(text);
  return citations.map(({ url, title, start, end }) => ({
    type: 'web_search_result_location',
    url,
    title,
    encrypted_index: '',
    cited_text: characters.slice(start, Math.min(end, start + longestCited)).join(''),
  }));
}
