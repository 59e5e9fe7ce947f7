import { copied } from '#kit/text/copied';
import type { Citation, SearchPart } from '#core/conversation';
import { textOf, type Json, type JsonObject } from '#core/json';

/** The items of an output, both when added and when done. */

/** How the ids of items begin, by their type. OpenAI refuses others: openai/codex#33263, vercel/ai#11932 */
export const prefixes = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fco',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
  image_generation_call: 'ig',
  web_search_call: 'ws',
  provider_search: 'wsp', // an item of the same type, whose results only its provider could take back
  file_search_call: 'fs',
  code_interpreter_call: 'ci',
  computer_call: 'cu',
  computer_call_output: 'cuo',
  local_shell_call: 'lsh',
  local_shell_call_output: 'lsho',
  shell_call: 'sh',
  shell_call_output: 'sho',
  apply_patch_call: 'apc',
  apply_patch_call_output: 'apco',
  tool_search_call: 'tsc',
  tool_search_output: 'tso',
  compaction: 'cmp',
  mcp_list_tools: 'mcpl',
  mcp_call: 'mcp',
  mcp_approval_request: 'mcpr',
} as const;
export type ItemKind = keyof typeof prefixes;

/** @param id of the response. @returns `msg_…_0`: the first item of that response */
export const itemId = (id: string, kind: ItemKind, index: number): string => copied(`${prefixes[kind]}_${keyOf(id)}_${index}`);

/** Characters of the digest of a definition in the id of the item that asks for its approval. */
const digestLength = 16;

/** The id of an item that asks for the approval of a call, with the digest of what is to be approved. */
export const askedId = (id: string, index: number, digest: string): string => `${itemId(id, 'mcp_approval_request', index)}_${digest.slice(0, digestLength)}`;

/** @returns undefined for an id that the gateway did not make */
export const digestIn = (id: string): string | undefined => /^mcpr_[0-9A-Za-z]{22}_\d{1,5}_([\w-]{16})$/.exec(id)?.[1];

const keyOf = (id: string) => id.slice(id.indexOf('_') + 1);

/** The response and the position that an item's id encodes, where the gateway made the id. `input`: an item of the response's input. */
export function itemPlace(id: string): { readonly response: string; readonly from: 'input' | 'output'; readonly index: number } | undefined {
  const [, key, input, index] = /^[a-z]{2,4}_([0-9A-Za-z]{22})_(i?)(\d{1,5})(?:_[\w-]{16})?$/.exec(id) ?? [];
  return key === undefined ? undefined : { response: `resp_${key}`, from: input === 'i' ? 'input' : 'output', index: Number(index) };
}

/** Is it the id of the search of a provider of another wire? */
export const isProviderSearch = (id: string): boolean => id.startsWith(`${prefixes.provider_search}_`);

/** The id of an input item. Ids sent by clients are replaced: they could be those of someone else's items. */
export const inputItemId = (id: string, index: number, type = 'message'): string => `${prefixOf(type)}_${keyOf(id)}_i${index}`;

const prefixOf = (type: string): string => (Object.hasOwn(prefixes, type) ? prefixes[type as ItemKind] : 'item');

/** The types of items, of those that are sent on as they came, whose id OpenAI demands. */
const identified: ReadonlySet<string> = new Set(
  (
    'image_generation_call web_search_call file_search_call code_interpreter_call computer_call local_shell_call local_shell_call_output ' +
    'mcp_list_tools mcp_call mcp_approval_request'
  ).split(' '),
);

/** An item that may have been listed, without the id that it has only there. */
export function withoutListedId(item: JsonObject): JsonObject {
  const { id, ...others } = item;
  return typeof id === 'string' && itemPlace(id)?.from === 'input' && !identified.has(textOf(item['type'])) ? others : item;
}

export const messageItem = (id: string, status: string, content: readonly Json[], others: JsonObject = {}): JsonObject => ({
  id,
  type: 'message',
  status,
  role: 'assistant',
  content,
  ...others,
});

export const outputText = (text: string, annotations: Json, logprobs: readonly Json[]): JsonObject => ({ type: 'output_text', text, annotations, logprobs });

export const reasoningItem = (id: string, text: string, encrypted: string | undefined): JsonObject => ({
  id,
  type: 'reasoning',
  summary: text === '' ? [] : [{ type: 'summary_text', text }],
  ...(encrypted === undefined ? {} : { encrypted_content: encrypted }),
});

export interface CallItem {
  readonly id: string;
  readonly callId: string;
  readonly name: string;
  readonly custom: boolean;
  readonly others: JsonObject;
}

/** Arguments are JSON, also where a server that calls a function without parameters sent none. Those of a call that was cut off stay as they are. */
export const argumentsAt = ({ custom }: CallItem, status: string, json: string): string =>
  custom || status !== 'completed' || json.trim() !== '' ? json : '{}';

export const callItem = ({ id, callId, name, custom, others }: CallItem, status: string, json: string): JsonObject =>
  custom
    ? { ...others, id, type: 'custom_tool_call', status, call_id: callId, name, input: json }
    : { ...others, id, type: 'function_call', status, call_id: callId, name, arguments: json };
/** @param withSources does the client get the addresses that were found? */
export const searchItem = (id: string, { query, sources }: SearchPart, status: SearchPart['state'] | 'in_progress', withSources = false): JsonObject => ({
  id,
  type: 'web_search_call',
  status,
  action: { type: 'search', query, queries: [query], ...(withSources ? { sources: sources.map(({ url }) => ({ type: 'url', url })) } : {}) },
});

export const urlCitation = ({ start, end, url, title }: Citation): JsonObject => ({ type: 'url_citation', start_index: start, end_index: end, url, title });
