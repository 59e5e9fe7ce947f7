import { describe, expect, test } from 'vitest';
import { always, ok } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** Members of a request that an interface does not have are named as the client wrote them, also where a call has a field of that name. */

const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

type Body = Readonly<Record<string, unknown>>;
const messages = [{ role: 'user', content: 'hi' }];
const contents = [{ role: 'user', parts: [{ text: 'hi' }] }];
const tool = { name: 'f', parameters: { type: 'object', properties: {} } };
const schema = { type: 'object', properties: {}, additionalProperties: false };

const asked: Readonly<Record<string, (model: string, body: Body) => readonly [string, Body]>> = {
  chat: (model, body) => ['/server/chatcompat/v1/chat/completions', { model, messages, ...body }],
  responses: (model, body) => ['/server/chatcompat/v1/responses', { model, input: 'hi', ...body }],
  messages: (model, body) => ['/v1/messages', { model, max_tokens: 100, messages, ...body }],
  gencompat: (model, body) => [`/server/gencompat/v1beta/models/${model}:generateContent`, { contents, ...body }],
};

async function ask(face: string, model: string, body: Body, isStrict = false) {
  upstream.script(always(ok()));
  const answer = await server.ask(...asked[face]!(model, body), { headers: isStrict ? { 'x-dragoman-strict': 'true' } : {} });
  const said = (await answer.json()) as { readonly error?: { readonly message: string; readonly param?: string } };
  return { status: answer.status, warnings: answer.headers.get('x-dragoman-warnings') ?? '', message: said.error?.message ?? '', param: said.error?.param };
}

const unknown = (name: string) =>
  new RegExp(String.raw`(?:^|; |, |: )${RegExp.escape(name)}: (?:the built-in model|the provider's interface) does not have this field`);

describe.each([
  ['responses', 'messages', { messages: [] }],
  ['responses', 'max_tokens', { max_tokens: 5 }],
  ['responses', 'reasoning_effort', { reasoning_effort: 'low' }],
  ['responses', 'response_format', { response_format: { type: 'text' } }],
  ['responses', 'logprobs', { logprobs: true }],
  ['responses', 'stop', { stop: ['x'] }],
  ['responses', 'text.verbosity', { text: { verbosity: 'low' } }],
  ['responses', 'verbosity', { verbosity: 'low' }],
  ['messages', 'stop', { stop: ['x'] }],
  ['messages', 'reasoning_effort', { reasoning_effort: 'low' }],
  ['gencompat', 'temperature', { temperature: 0.5 }],
  ['gencompat', 'messages', { messages: [] }],
  ['gencompat', 'max_tokens', { max_tokens: 5 }],
  ['gencompat', 'generationConfig.responseMimeType', { generationConfig: { responseMimeType: 'nope' } }],
  ['gencompat', 'generation_config.response_mime_type', { generation_config: { response_mime_type: 'nope' } }],
] as const)('of the %s interface, %s', (face, name, body) => {
  test.each(
    ['built-in', 'messages', 'gemini'].filter((model) => !(model === 'messages' && face === 'messages') && !(model === 'gemini' && face === 'gencompat')),
  )('is named as it was written by %s, in a warning and to a strict client', async (model) => {
    const lax = await ask(face, model, body);
    expect(lax).toMatchObject({ status: 200, warnings: expect.stringMatching(unknown(name)) as string });
    const strict = await ask(face, model, body, true);
    expect(strict).toMatchObject({ status: 400, message: expect.stringMatching(unknown(name)) as string });
    if (face === 'responses' && model === 'built-in') expect(strict.param).toBe(name);
  });
});

describe('names with dots', () => {
  const dotted = (object: object, name: string) => ({ ...object, [name]: 'FORBIDDEN' });

  test.each([
    [
      'chat',
      dotted(
        { response_format: { type: 'text' }, tools: [{ type: 'function', function: tool }], tool_choice: { type: 'function', function: { name: 'f' } } },
        'tool_choice.function.name',
      ),
    ],
    ['responses', dotted({ text: { format: { type: 'json_schema', name: 'a', schema } } }, 'text.format')],
    ['messages', dotted({ tools: [{ name: 'f', input_schema: tool.parameters }], tool_choice: { type: 'tool', name: 'f' } }, 'tool_choice.name')],
    ['gencompat', dotted({ systemInstruction: { parts: [{ text: 'harmless' }] } }, 'systemInstruction.parts')],
    ['responses', { '.unknown': { text: { format: 'FORBIDDEN' } }, text: { format: { type: 'json_schema', name: 'a', schema } } }],
  ])('replace nothing in a request of the %s interface: %j', async (face, body) => {
    await ask(face, face === 'gencompat' ? 'gemini' : face, body);
    const { text, tool_choice: choice, systemInstruction: system } = upstream.requests.at(-1)!.json as Body;
    expect(JSON.stringify([text, choice, system])).not.toContain('FORBIDDEN');
  });

  test('are sent like others, however many there are', async () => {
    upstream.reset();
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`format.schema.properties.z${at}`, 1]));
    await ask('responses', 'responses', { text: { format: { type: 'json_schema', name: 'a', schema, ...many }, ...many } }); // minutes, were all looked through for each
    expect(upstream.requests[0]!.json).toMatchObject({
      text: { 'format.schema.properties.z4999': 1, format: { 'format.schema.properties.z4999': 1, schema } },
    });
  });
});

test('a content that nobody knows is named by its member', async () => {
  const parts = [{ text: 'hi' }, { nope: 1 }];
  expect((await ask('gencompat', 'built-in', { contents: [{ role: 'user', parts }] })).warnings).toContain('nope: the built-in model does not know');
});

describe.each([
  ['responses', 'text.zzz', { text: { zzz: 1 } }],
  ['responses', 'text.format.zzz', { text: { format: { type: 'json_schema', name: 'a', schema, zzz: 1 } } }],
  ['responses', 'reasoning.zzz', { reasoning: { zzz: 1 } }],
  ['responses', 'tool_choice.zzz', { tools: [{ type: 'function', ...tool }], tool_choice: { type: 'function', name: 'f', zzz: 1 } }],
  ['responses', 'stream_options.zzz', { stream_options: { zzz: 1 } }],
  ['chat', 'response_format.zzz', { response_format: { type: 'text', zzz: 1 } }],
  ['chat', 'response_format.json_schema.zzz', { response_format: { type: 'json_schema', json_schema: { name: 'a', schema, zzz: 1 } } }],
  ['messages', 'output_format.zzz', { output_format: { type: 'json_schema', schema, zzz: 1 } }],
  ['chat', 'tool_choice.zzz', { tools: [{ type: 'function', function: tool }], tool_choice: { type: 'function', function: { name: 'f' }, zzz: 1 } }],
  ['chat', 'tool_choice.function.zzz', { tools: [{ type: 'function', function: tool }], tool_choice: { type: 'function', function: { name: 'f', zzz: 1 } } }],
  ['messages', 'tool_choice.zzz', { tools: [{ name: 'f', input_schema: tool.parameters }], tool_choice: { type: 'auto', zzz: 1 } }],
  ['messages', 'thinking.zzz', { max_tokens: 5000, thinking: { type: 'enabled', budget_tokens: 1024, zzz: 1 } }],
  ['messages', 'output_config.zzz', { output_config: { effort: 'low', zzz: 1 } }],
  ['messages', 'output_config.format.zzz', { output_config: { format: { type: 'json_schema', schema, zzz: 1 } } }],
  ['gencompat', 'generationConfig.thinkingConfig.zzz', { generationConfig: { thinkingConfig: { zzz: 1 } } }],
  ['gencompat', 'generation_config.thinking_config.z_zz', { generation_config: { thinking_config: { z_zz: 1 } } }],
  ['gencompat', 'systemInstruction.zzz', { systemInstruction: { parts: [{ text: 'Be brief.' }], zzz: 1 } }],
  ['gencompat', 'zzz', { systemInstruction: { parts: [{ text: 'Be brief.', zzz: 1 }] } }],
  ['gencompat', 'inlineData.zzz', { contents: [{ role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data: 'AAAA', zzz: 1 } }] }] }],
] as const)('within a field of the %s interface, %s', (face, name, body) => {
  test.each(['built-in', 'messages', 'gemini', 'chat', 'responses'].filter((model) => model !== (face === 'gencompat' ? 'gemini' : face)))(
    'is named by %s',
    async (model) => {
      expect(await ask(face, model, body)).toMatchObject({ status: 200, warnings: expect.stringMatching(unknown(name)) as string });
      expect(await ask(face, model, body, true)).toMatchObject({ status: 400, message: expect.stringMatching(unknown(name)) as string });
    },
  );

  test('arrives at a provider of the same interface', async () => {
    const model = face === 'gencompat' ? 'gemini' : face;
    expect(await ask(face, model, body, true)).toMatchObject({ status: 200, warnings: '' });
    expect(JSON.stringify(upstream.requests.at(-1)!.json)).toMatch(/"z_?zz"|"zZz"/);
  });
});
