import { describe, expect, test } from 'vitest';
import { askFace, type Face } from '../support/all-faces.ts';
import { scriptedVendors } from '../support/scripted-vendors.ts';

/** Answers of one vendor in the history of another. */
const { vendors, server } = await scriptedVendors();

const sent = () => vendors.requests.at(-1)!.body as { readonly messages: readonly object[]; readonly thinking?: object };

async function ask(face: Face, model: string, more: object, headers: Readonly<Record<string, string>> = {}) {
  const answer = await askFace(server, face, { model, content: 'hi', stream: false, more, headers });
  return { status: answer.status, raw: answer.raw, warnings: answer.headers.get('x-dragoman-warnings') ?? '' };
}

describe('a refusal', () => {
  const asked = { role: 'user', content: 'How?' };
  const refused = { role: 'assistant', content: null, refusal: 'I cannot.' };
  const item = { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'I cannot.' }] };
  const histories: readonly (readonly [Face, object])[] = [
    ['chat', { messages: [asked, refused, asked] }],
    ['responses', { input: [asked, item, asked] }],
  ];
  const elsewhere = ['mistral-large-latest', 'deepseek-chat', 'kimi-k2-thinking', 'gpt-oss-120b', 'glm-5', 'vllm-llama3.3', 'ollama-llama3.3'];

  test.each(elsewhere.flatMap((model) => histories.map(([face, more]) => ({ model, face, more }))))(
    'is a text for $model ($face)',
    async ({ model, face, more }) => {
      expect(await ask(face, model, more)).toMatchObject({ status: 200, warnings: '' });
      if (face === 'responses' || !/vllm|ollama/.test(model)) expect(sent().messages[1]).toEqual({ role: 'assistant', content: 'I cannot.' });
    },
  );

  test.each(['gpt-4o', 'azure-gpt-5'].flatMap((model) => histories.map(([face, more]) => ({ model, face, more }))))(
    'stays one for $model ($face)',
    async ({ model, face, more }) => {
      expect(await ask(face, model, more)).toMatchObject({ status: 200, warnings: '' });
      expect(sent().messages[1]).toEqual(refused);
    },
  );
});

test('the empty annotations of an answer, returned alone, reach no vendor', async () => {
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'Hello.', annotations: [] },
    { role: 'user', content: 'ho' },
  ];
  for (const model of ['mistral-large-latest', 'gpt-4o']) {
    expect(await ask('chat', model, { messages })).toMatchObject({ status: 200, warnings: '' });
    expect(sent().messages[1]).toEqual({ role: 'assistant', content: 'Hello.' });
  }
});

describe('a client of messages that asks for thinking', () => {
  const model = 'claude-haiku-4-5';
  const look = { name: 'look', input_schema: { type: 'object', properties: {} } };
  const use = (id: string) => ({ type: 'tool_use', id, name: 'look', input: {} });
  const result = (id: string) => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'Rain.' }] });
  const signed = { type: 'thinking', thinking: 'Hm.', signature: 'EqQBclaude-signed-x' };
  const answered = (...content: readonly object[]) => ({ role: 'assistant', content });
  const user = { role: 'user', content: 'hi' };
  const thinking = { type: 'enabled', budget_tokens: 1500 };
  const loop = (messages: readonly object[], headers = {}) => ask('messages', model, { tools: [look], max_tokens: 4000, thinking, messages }, headers);

  test.each([
    ['', [user, answered({ type: 'text', text: 'I look.' }, use('a')), result('a')]],
    [' in several turns', [user, answered(use('a')), result('a'), answered(use('b')), result('b')]],
    [', after one of Claude', [user, answered(signed, use('a')), result('a'), answered({ type: 'text', text: 'So.' }), user, answered(use('b')), result('b')]],
  ])('is answered without it where another model began to call tools%s', async (_, messages) => {
    const answer = await loop(messages);
    expect(answer.status).toBe(200);
    expect(answer.warnings).toContain('thinking: the thoughts before the last tool calls are not there');
    expect(sent()).not.toHaveProperty('thinking');
    expect(await loop(messages, { 'x-dragoman-strict': 'true' })).toMatchObject({ status: 400 });
  });

  test('gets it where the model thought before its calls', async () => {
    expect(await loop([user, answered(signed, use('a')), result('a')])).toMatchObject({ status: 200, warnings: '' });
    expect(sent()).toMatchObject({ thinking });
  });

  test('has it sent where Claude thought once, and then called tools in several turns', async () => {
    await loop([user, answered(signed, use('a')), result('a'), answered(use('b')), result('b')]);
    expect(vendors.requests[0]!.body).toMatchObject({ thinking });
  });
});
