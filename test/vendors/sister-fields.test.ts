import { describe, expect, test } from 'vitest';
import { askFace, type Face } from '../support/all-faces.ts';
import { scriptedVendors } from '../support/scripted-vendors.ts';

/** What both APIs of OpenAI have under one name, and members of fields that other wires have in part. */

const { vendors, server } = await scriptedVendors();

const strict = { 'x-dragoman-strict': 'true' };
const ask = async (face: Face, model: string, more: object, headers: Readonly<Record<string, string>> = {}) => {
  const { status, raw, headers: answered } = await askFace(server, face, { model, content: 'hi', stream: false, more, headers });
  return { status, raw, warnings: answered.get('x-dragoman-warnings') };
};
const sent = () => vendors.requests.at(-1)!;

const prompt_cache_breakpoint = { mode: 'explicit' };
const options = { prompt_cache_options: { mode: 'explicit' }, moderation: { model: 'omni-moderation-latest' } };
const parameters = { type: 'object', properties: {} };
const tools = { chat: [{ type: 'function', function: { name: 'look', parameters } }], responses: [{ type: 'function', name: 'look', parameters }] };
const url = 'data:image/png;base64,iVBO';
const call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } };
const messages = (breakpoint: object, ofAnswer: object = breakpoint) => [
  { role: 'system', content: [{ type: 'text', text: 'Be brief.', ...breakpoint }] },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'one', ...breakpoint },
      { type: 'image_url', image_url: { url }, ...breakpoint },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBE', filename: 'a.pdf' }, ...breakpoint },
    ],
  },
  { role: 'assistant', content: [{ type: 'text', text: 'two', ...ofAnswer }], tool_calls: [call] },
  { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: 'three', ...breakpoint }] },
  { role: 'user', content: 'four' },
];
const input = [
  { role: 'system', content: [{ type: 'input_text', text: 'Be brief.', prompt_cache_breakpoint }] },
  {
    role: 'user',
    content: [
      { type: 'input_text', text: 'one', prompt_cache_breakpoint },
      { type: 'input_image', image_url: url, prompt_cache_breakpoint },
      { type: 'input_file', file_data: 'data:application/pdf;base64,JVBE', filename: 'a.pdf', prompt_cache_breakpoint },
    ],
  },
  { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' },
  { type: 'function_call_output', call_id: 'call_1', output: [{ type: 'input_text', text: 'three', prompt_cache_breakpoint }] },
  { role: 'user', content: 'four' },
];
const breakpoints = () => sent().text.match(/"prompt_cache_breakpoint":\{"mode":"explicit"\}/g)?.length ?? 0;

describe('cache options, moderation and the breakpoints of parts', () => {
  const ofChat = { ...options, messages: messages({ prompt_cache_breakpoint }, {}), tools: tools.chat };
  const ofResponses = { ...options, input, tools: tools.responses };
  test.each([
    ['of chat', 'on the chat API', 'chat', 'gpt-4o', ofChat],
    ['of chat', 'on the Responses API', 'chat', 'gpt-5-on-responses', ofChat],
    ['of chat', 'to which the gateway moves the call', 'chat', 'gpt-6-sol', ofChat],
    ['of responses', 'on the chat API', 'responses', 'gpt-4o', ofResponses],
    ['of responses', 'on the Responses API', 'responses', 'gpt-5-on-responses', ofResponses],
  ] as const)('%s reach OpenAI %s', async (_, __, face, model, more) => {
    const { status, warnings } = await ask(face, model, more, strict);
    expect([status, warnings, sent().status]).toEqual([200, null, 200]);
    expect(sent().body).toMatchObject(options);
    expect(breakpoints()).toBe(5);
  });

  test('a breakpoint of an answer, which the Responses API has none for, is named', async () => {
    const { warnings } = await ask('chat', 'gpt-5-on-responses', { messages: messages({ prompt_cache_breakpoint }), tools: tools.chat });
    expect(warnings).toBe("prompt_cache_breakpoint: the provider's interface does not have this field.");
    expect(breakpoints()).toBe(5);
  });

  test.each(['mistral-large-latest', 'gpt-oss-120b', 'claude-haiku-4-5', 'gemini-2.5-flash'])('are named where %s is asked', async (model) => {
    for (const more of [{ ...options, input }, { input: [input[2]!, input[3]!] }]) {
      const { status, warnings } = await ask('responses', model, { ...more, tools: tools.responses });
      expect([status, sent().status]).toEqual([200, 200]);
      expect(warnings).toContain('prompt_cache_breakpoint: ');
      if ('moderation' in more) expect(warnings).toMatch(/moderation: .*prompt_cache_options: |prompt_cache_options: .*moderation: /);
    }
  });
});

describe('of a field that other wires have in part, what they lose is named', () => {
  const reasoning = { effort: 'low', summary: 'auto', mode: 'pro', context: 'all_turns' };
  test.each(['gpt-oss-120b', 'claude-opus-4-6', 'gemini-2.5-flash'])('reasoning of a responses request to %s', async (model) => {
    const { status, warnings } = await ask('responses', model, { reasoning });
    expect([status, warnings?.match(/reasoning[\w.]*: the provider's interface does not have this field/g)]).toEqual([
      200,
      ['mode', 'context'].map((name) => `reasoning.${name}: the provider's interface does not have this field`),
    ]);
    expect(await ask('responses', model, { reasoning }, strict)).toMatchObject({ status: 400, raw: expect.stringContaining('reasoning.mode') as string });
    expect((await ask('responses', model, { reasoning: { effort: 'low', summary: 'auto', generate_summary: 'auto' } }, strict)).status).toBe(200);
  });

  test('reasoning of a responses request reaches the Responses API whole', async () => {
    expect(await ask('responses', 'gpt-5-on-responses', { reasoning }, strict)).toMatchObject({ status: 200, warnings: null });
    expect(sent().body.reasoning).toEqual(reasoning);
  });

  test.each(['gpt-5', 'gpt-5-on-responses', 'gemini-2.5-flash'])('output_config of a messages request to %s', async (model) => {
    const config = { max_tokens: 3000, output_config: { effort: 'low', task_budget: { type: 'tokens', total: 20_000 } } };
    const { status, warnings } = await ask('messages', model, config);
    expect([status, warnings]).toEqual([200, "output_config.task_budget: the provider's interface does not have this field."]);
    expect(await ask('messages', model, config, strict)).toMatchObject({ status: 400, raw: expect.stringContaining('output_config.task_budget') as string });
  });
});
