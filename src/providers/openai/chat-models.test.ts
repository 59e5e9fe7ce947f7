import { describe, expect, test } from 'vitest';
import { decodeRequest as decodeMessages } from '#dialects/anthropic/decode-request';
import { decodeRequest } from '#dialects/openai/chat/decode-request';
import { scan } from '#kit/json/scan';
import type { GenerateCall } from '#core/call';
import { vendorOf } from '../vendors.ts';
import { quirksAt } from './chat-models.ts';
import { quirksAt as responsesQuirksAt } from './responses-models.ts';
import { requestBody } from './request-body.ts';

/** What the first request to an address is: nothing has been refused there yet. */

const at = {
  openai: 'https://api.openai.com/v1',
  azure: 'https://my.openai.azure.com',
  deepseek: 'https://api.deepseek.com',
  mistral: 'https://api.mistral.ai/v1',
  groq: 'https://api.groq.com/openai/v1',
  openrouter: 'https://openrouter.ai/api/v1',
  nobody: 'http://127.0.0.1:11434/v1',
};

const sent = (address: keyof typeof at, model: string, call: GenerateCall) => requestBody(call, model, quirksAt(vendorOf(at[address]), model, at[address]));
async function body(address: keyof typeof at, model: string, call: GenerateCall): Promise<Record<string, unknown>> {
  return JSON.parse(Buffer.from(await sent(address, model, call).body).toString()) as Record<string, unknown>;
}

const ask = { model: 'm', max_tokens: 32, messages: [{ role: 'user', content: 'hi' }] };
const messagesCall = (more: object = {}): GenerateCall => decodeMessages({ ...ask, ...more });

/** A chat client's call whose bytes may be forwarded. */
function chatCall(more: object, bound?: number): GenerateCall {
  const bytes = Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }], ...more }));
  const { call, usageWanted } = decodeRequest(JSON.parse(bytes.toString()));
  const sink = { write: () => true, drained: () => Promise.resolve() };
  const limits = bound === undefined ? {} : { bound };
  const sampling = bound === undefined ? call.sampling : { ...call.sampling, maxTokens: bound };
  return { ...call, sampling, passthrough: { dialect: 'openai-chat', request: { written: { bytes, places: scan(bytes) } }, usageWanted, ...limits, ...sink } };
}

describe('the token limit', () => {
  test.each([
    ['openai', 'gpt-4o', 'max_completion_tokens'],
    ['openai', 'gpt-5', 'max_completion_tokens'],
    ['azure', 'my-deployment', 'max_completion_tokens'],
    ['deepseek', 'deepseek-chat', 'max_tokens'],
    ['mistral', 'mistral-large-latest', 'max_tokens'],
    ['groq', 'openai/gpt-oss-120b', 'max_tokens'],
    ['nobody', 'llama3.3', 'max_tokens'],
  ] as const)('of a messages client, and the one that the gateway sets for a chat client, is called so at %s (%s): %s', async (address, model, name) => {
    const other = name === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
    for (const call of [messagesCall(), chatCall({}, 32)]) {
      expect(await body(address, model, call)).toMatchObject({ [name]: 32 });
      expect(await body(address, model, call)).not.toHaveProperty(other);
    }
  });

  test('of a chat client is renamed where only the other name is accepted', async () => {
    expect(await body('mistral', 'm', chatCall({ max_completion_tokens: 9 }))).toMatchObject({ max_tokens: 9 });
    expect(await body('openai', 'o3', chatCall({ max_tokens: 9 }))).toMatchObject({ max_completion_tokens: 9 });
    expect(await body('openai', 'gpt-4o', chatCall({ max_tokens: 9 }))).toMatchObject({ max_tokens: 9 });
    expect(await body('nobody', 'm', chatCall({ max_completion_tokens: 9 }))).toMatchObject({ max_completion_tokens: 9 });
  });
});

describe('an effort', () => {
  test.each([
    ['gpt-5', 'none', 'minimal'],
    ['gpt-5-mini-2025-08-07', 'max', 'high'],
    ['o3', 'none', 'low'],
    ['gpt-5.1', 'none', 'none'],
    ['gpt-5.1', 'xhigh', 'high'],
    ['gpt-5.2', 'max', 'xhigh'],
    ['gpt-5.6-sol', 'max', 'max'],
    ['gpt-6-astra', 'none', 'low'],
    ['gpt-4o', 'high', undefined],
  ])('of %s is at once one that the model has: %s becomes %s', async (model, effort, wanted) => {
    const more = effort === 'none' ? { thinking: { type: 'disabled' } } : { output_config: { effort } };
    expect((await body('openai', model, messagesCall(more)))['reasoning_effort']).toBe(wanted);
    expect(await body('openai', model, chatCall({ reasoning_effort: effort }))).toMatchObject({ reasoning_effort: effort });
  });

  test('of Groq is what its models call it', async () => {
    expect(await body('groq', 'qwen/qwen3-32b', messagesCall({ output_config: { effort: 'high' } }))).toMatchObject({ reasoning_effort: 'default' });
    expect(await body('groq', 'openai/gpt-oss-20b', messagesCall({ output_config: { effort: 'max' } }))).toMatchObject({ reasoning_effort: 'high' });
  });
});

describe('sampling', () => {
  const sampled = messagesCall({ temperature: 0, top_p: 0.9, stop_sequences: ['END'], top_k: 5 });

  test.each([
    ['gpt-5', {}],
    ['gpt-6-sol', {}],
    ['gpt-5.2', { temperature: 0, top_p: 0.9, stop: ['END'] }],
    ['gpt-4o', { temperature: 0, top_p: 0.9, stop: ['END'] }],
  ])('of a messages client at %s is %j', async (model, wanted) => {
    const { temperature, top_p, stop } = await body('openai', model, sampled);
    expect(JSON.parse(JSON.stringify({ temperature, top_p, stop }))).toEqual(wanted);
    const { ignored } = sent('openai', model, sampled);
    expect(ignored.map((one) => one.split(':', 1).join()).toSorted()).toEqual(
      ['top_k', ...('stop' in wanted ? [] : ['stop', 'temperature', 'top_p'])].toSorted(),
    );
  });

  test('of a chat client is left to it, and its bytes are forwarded', () => {
    for (const address of ['openai', 'azure', 'deepseek', 'mistral', 'groq', 'openrouter', 'nobody'] as const)
      expect(sent(address, 'gpt-5', chatCall({ temperature: 0, top_p: 0.9, stream: true }))).toHaveProperty('passthrough');
  });

  test('by top_k goes to OpenRouter', async () => {
    expect(await body('openrouter', 'z-ai/glm-5', sampled)).toMatchObject({ top_k: 5 });
  });
});

describe('a chat client of DeepSeek and Mistral', () => {
  const system = {
    messages: [
      { role: 'developer', content: 'Be brief.' },
      { role: 'user', content: 'hi' },
    ],
  };

  test.each(['deepseek', 'mistral'] as const)('may say developer (%s)', async (address) => {
    expect(await body(address, 'm', chatCall(system))).toMatchObject({ messages: [{ role: 'system' }, { role: 'user' }] });
  });

  test('may give a schema to DeepSeek, which gets it as an instruction', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } };
    const format = { response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } };
    expect(await body('deepseek', 'm', chatCall(format))).toMatchObject({
      response_format: { type: 'json_object' },
      messages: [{ role: 'system', content: expect.stringContaining(JSON.stringify(schema)) as string }, { role: 'user' }],
    });
  });

  test("may bring others' ids of tool calls to Mistral", async () => {
    const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'x' },
    ];
    const fit = { messages: JSON.parse(JSON.stringify(messages).replaceAll('call_1', 'abcDEF123')) as unknown };
    const sentMessages = (await body('mistral', 'm', chatCall({ messages })))['messages'] as { tool_calls?: { id: string }[]; tool_call_id?: string }[];
    expect(sentMessages[1]!.tool_calls![0]!.id).toMatch(/^[A-Za-z0-9]{9}$/);
    expect(sentMessages[2]!.tool_call_id).toBe(sentMessages[1]!.tool_calls![0]!.id);
    expect(sent('mistral', 'm', chatCall(fit))).toHaveProperty('passthrough');
  });
});

test('Mistral gets a word of the model between results and what the user says behind them', async () => {
  const use = { type: 'tool_use', id: 'abcDEF123', name: 'f', input: {} };
  const result = { type: 'tool_result', tool_use_id: 'abcDEF123', content: 'x' };
  const messages = [...ask.messages, { role: 'assistant', content: [use] }, { role: 'user', content: [result, { type: 'text', text: 'well?' }] }];
  const roles = async (address: keyof typeof at) =>
    ((await body(address, 'm', messagesCall({ messages })))['messages'] as { role: string }[]).map(({ role }) => role);
  expect(await roles('mistral')).toEqual(['user', 'assistant', 'tool', 'assistant', 'user']);
  expect(await roles('nobody')).toEqual(['user', 'assistant', 'tool', 'user']);
});

test('what a model takes at an address of many vendors is left to its refusals, unless it has a name of OpenAI', () => {
  const many = 'https://my.services.ai.azure.com/models?api-version=2024-05-01-preview';
  for (const known of [quirksAt, responsesQuirksAt]) {
    expect(known(vendorOf(many), 'grok-4', many)).toBeUndefined();
    expect(known(vendorOf(many), 'gpt-5', many)).toEqual(known(vendorOf(at.azure), 'gpt-5', at.azure));
  }
  expect(quirksAt(vendorOf(at.azure), 'my-deployment', at.azure)).toMatchObject({ functionsOnly: false, allowedTools: true });
});

test('thoughts are known to be refused by the models of OpenAI, not by all that Azure serves', () => {
  const thoughts = (address: 'openai' | 'azure', model: string) => quirksAt(vendorOf(at[address]), model, at[address])?.thoughts;
  for (const model of ['gpt-4o', 'gpt-35-turbo', 'GPT-5.1-chat', 'o1', 'o4-mini', 'chatgpt-4o-latest', 'codex-mini', 'gpt-5-codex'])
    expect([model, thoughts('azure', model), thoughts('openai', model)]).toEqual([model, 'refused', 'refused']);
  for (const model of ['DeepSeek-V3.2', 'Kimi-K2-Thinking', 'my-deployment', 'gpt-oss-120b', 'o1x'])
    expect([model, thoughts('azure', model)]).toEqual([model, undefined]);
  expect(thoughts('openai', 'my-model')).toBe('refused');
});
