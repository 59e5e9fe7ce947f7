import { describe, expect, test } from 'vitest';
import { scriptedVendors } from '../support/scripted-vendors.ts';

/** Items of conversations and of stored responses, given back as the input of a request, as the sessions of `openai-agents` do. */

const { vendors, server } = await scriptedVendors();

// oxlint-disable-next-line typescript/no-explicit-any -- answers are read as a client in JavaScript does
type Any = any;
const root = '/server/chatcompat/v1';
const read = async (address: string, body?: object, headers: Readonly<Record<string, string>> = {}): Promise<Any> => {
  const answer = await server.ask(`${root}${address}`, body, { headers });
  return { http: answer.status, warnings: answer.headers.get('x-dragoman-warnings'), ...((await answer.json()) as object) };
};

const user = { type: 'message', role: 'user', content: 'hi' };
const done = { status: 'completed' };
const shell = { commands: ['ls'], timeout_ms: null, max_output_length: null };
/** As OpenAI gives them; the tools of a search for tools are declared to other wires. */
const items: readonly Any[] = [
  { type: 'web_search_call', id: 'ws_abc', ...done, action: { type: 'search', query: 'x' } },
  { type: 'file_search_call', id: 'fs_abc', ...done, queries: ['x'], results: null },
  { type: 'code_interpreter_call', id: 'ci_abc', ...done, code: '1', container_id: 'cntr_1', outputs: null },
  { type: 'image_generation_call', id: 'ig_abc', ...done, result: 'iVBO' },
  { type: 'computer_call', id: 'cu_abc', ...done, call_id: 'call_c', action: { type: 'screenshot' }, pending_safety_checks: [] },
  { type: 'computer_call_output', id: 'cuo_abc', call_id: 'call_c', output: { type: 'computer_screenshot', image_url: 'data:image/png;base64,iVBO' } },
  { type: 'local_shell_call', id: 'lsh_abc', ...done, call_id: 'call_l', action: { type: 'exec', command: ['ls'], env: {} } },
  { type: 'local_shell_call_output', id: 'lsho_abc', output: 'a' },
  { type: 'shell_call', id: 'sh_abc', ...done, call_id: 'call_s', action: shell },
  { type: 'shell_call_output', id: 'sho_abc', call_id: 'call_s', output: [], max_output_length: null },
  { type: 'apply_patch_call', id: 'apc_abc', ...done, call_id: 'call_a', operation: { type: 'delete_file', path: 'a' } },
  { type: 'apply_patch_call_output', id: 'apco_abc', ...done, call_id: 'call_a' },
  { type: 'tool_search_call', id: 'tsc_abc', ...done, execution: 'server', arguments: {}, call_id: null },
  { type: 'tool_search_output', id: 'tso_abc', ...done, execution: 'server', call_id: null, tools: [] },
  { type: 'compaction', id: 'cmp_abc', encrypted_content: 'sealed' },
];
const sent = () => vendors.requests.at(-1)!.body.input as readonly Any[];
const bare = ({ id: _, ...item }: Any) => item;

describe.each(items.map((item) => ({ item, type: item.type })))('an item of the type $type', ({ item }) => {
  const given = [user, item, user];

  test.each(['conversations', 'input_items'])('that %s lists is taken by OpenAI, as it was given', async (source) => {
    let list: string;
    if (source === 'conversations') list = `/conversations/${(await read('/conversations', { items: given })).id}/items`;
    else list = `/responses/${(await read('/responses', { model: 'gpt-5-on-responses', input: given })).id}/input_items`;
    const { data } = await read(`${list}?order=asc`);
    expect(data.map(({ type }: Any) => type)).toEqual(given.map(({ type }) => type));
    expect(data[1].id.split('_')[0]).toBe(item.id.split('_')[0]);
    expect(bare(data[1])).toEqual(bare(item));
    const answer = await read('/responses', { model: 'gpt-5-on-responses', input: data }, { 'x-dragoman-strict': 'true' });
    expect([answer.http, answer.warnings, vendors.requests.at(-1)!.status]).toEqual([200, null, 200]);
    expect(sent().map(({ type }) => type)).toEqual(given.map(({ type }) => type));
    expect(bare(sent()[1])).toEqual(bare(item));
  });

  test('that is named by its id has its own id upstream', async () => {
    const { id } = await read('/responses', { model: 'gpt-5-on-responses', input: given });
    const { data } = await read(`/responses/${id}/input_items?order=asc`);
    const input = data.map((one: Any) => ({ type: 'item_reference', id: one.id }));
    expect((await read('/responses', { model: 'gpt-5-on-responses', input })).http).toBe(200);
    expect(sent()[1]).toEqual(item);
  });
});

/** What a warning names, where it is not the type of the item: it is read as a picture of the model's. */
const named: Readonly<Record<string, string>> = { image_generation_call: 'image: ' };

/** The tools that a search found are declared on other wires: nothing of such an item is lost. */
const lost = items.filter(({ type }) => type !== 'tool_search_output');

test.each(lost.map((item) => ({ item, type: item.type })))(
  'an item of the type $type that is listed is named in a warning where the model is of another wire',
  async ({ item, type }) => {
    const { id } = await read('/conversations', { items: [user, item, user] });
    const { data } = await read(`/conversations/${id}/items?order=asc`);
    const answer = await read('/responses', { model: 'claude-haiku-4-5', input: data });
    expect([answer.http, answer.warnings]).toEqual([200, expect.stringContaining(named[type] ?? type)]);
  },
);
