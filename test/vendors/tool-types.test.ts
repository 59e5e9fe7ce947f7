import { describe, expect, test } from 'vitest';
import { askFace, type Face } from '../support/all-faces.ts';
import { always, badRequest, ok, toolCalls, type Behaviour } from '../support/fakes/upstream/index.ts';
import { scriptedHosts } from '../support/scripted-hosts.ts';

/** Tools of free text and choices among some of the tools, sent by clients whose provider may have the same API and not know them. */

const { upstream, server } = await scriptedHosts(
  ['api.openai.com'],
  ({ url }) => `
providers:
  openai: { dialect: openai-chat, baseUrl: "https://api.openai.com/v1", apiKeys: [k] }
  openai-responses: { dialect: openai-responses, baseUrl: "https://api.openai.com/v1", apiKeys: [k] }
  chat: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k] }
  responses: { dialect: openai-responses, baseUrl: "${url}/v1", apiKeys: [k] }
models:
  gpt-4.1: { targets: [{ provider: openai }] }
  gpt-4.1-on-responses: { targets: [{ provider: openai-responses, model: gpt-4.1 }] }
${Array.from({ length: 30 }, (_, at) => `  chat-${at}: { targets: [{ provider: chat }] }\n  responses-${at}: { targets: [{ provider: responses }] }`).join('\n')}
routing: { cooldownSeconds: 0 }
`,
);

interface Sent {
  readonly tools: readonly { readonly type: string; readonly function?: { readonly name: string } }[];
  readonly tool_choice?: unknown;
}
const bodies = () => upstream.requests.map(({ json }) => json as Sent);
let models = 0;
const fresh = (wire: 'chat' | 'responses') => `${wire}-${models++}`;

const parameters = { type: 'object', properties: {} };
const look = { type: 'function', function: { name: 'look', parameters } };
const custom = { chat: { tools: [look, { type: 'custom', custom: { name: 'patch' } }] }, responses: { tools: [{ type: 'custom', name: 'patch' }] } };
const some = { mode: 'auto', tools: [{ type: 'function', function: { name: 'look' } }] };
const allowed = { tools: [look, { ...look, function: { ...look.function, name: 'listen' } }], tool_choice: { type: 'allowed_tools', allowed_tools: some } };

const refusing = (isRefused: (sent: Sent) => boolean, message: string, accepted: Behaviour = ok()): Behaviour =>
  always({
    name: 'refusing',
    answer: (exchange) => (isRefused(exchange.request.json as Sent) ? badRequest({ message }) : accepted).answer(exchange),
  });
const hasCustom = ({ tools }: Sent) => tools.some(({ type }) => type === 'custom');
const ask = (face: Face, model: string, more: object, stream = false) => askFace(server, face, { model, content: 'hi', stream, more });

describe('a chat client at a server that nobody knows', () => {
  const refusals = [
    'Failed to deserialize the JSON body into the target type: tools[1].type: unknown variant `custom`, expected `function` at line 1 column 90',
    `[{'type': 'literal_error', 'loc': ('body', 'tools', 1, 'type'), 'msg': "Input should be 'function'", 'input': 'custom'}]`,
    `'tools.1.type' : value is not one of the allowed values ['function']`,
    'Invalid input: expected "function" at tools.1.type',
    'tools[1].type: tool type custom is not supported',
    "'type' of tool must be 'function'",
    'tool type custom not supported',
  ];
  test.each(refusals.flatMap((message) => [false, true].map((stream) => ({ message, stream }))))(
    'has its tools of free text sent as functions once they are refused: $message (streamed: $stream)',
    async ({ message, stream }) => {
      upstream.script(refusing(hasCustom, message, toolCalls([{ name: 'patch', json: '{"input":"a\\nb"}' }])));
      const model = fresh('chat');
      for (let round = 0; round < 2; round++) {
        const { status, complete, raw } = await ask('chat', model, custom.chat, stream);
        expect({ status, complete }).toEqual({ status: 200, complete: true });
        expect(raw).toMatch(/"custom":\{"name":"patch"/);
        expect(raw).toContain('"input":"a\\nb"');
      }
      expect(bodies().map(hasCustom)).toEqual([true, false, false]);
    },
  );

  test('has calls of them in its history sent as calls of functions once they are refused (Ollama)', async () => {
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'custom', custom: { name: 'patch', input: 'x' } }] },
      { role: 'tool', tool_call_id: 'call_1', content: 'done' },
    ];
    upstream.script(refusing(hasCustom, 'invalid tool call arguments'));
    expect((await ask('chat', fresh('chat'), { ...custom.chat, messages })).status).toBe(200);
    expect(JSON.stringify(bodies()[1])).toContain('"function":{"name":"patch","arguments":"{\\"input\\":\\"x\\"}"}');
  });

  test.each([
    'Failed to deserialize the JSON body into the target type: tool_choice: data did not match any variant of untagged enum ChatCompletionToolChoiceOption',
    "[{'type': 'value_error', 'loc': ('body',), 'msg': 'Value error, Incorrectly formatted `tool_choice`. Should be something like `{\"type\": \"function\"}`'}]",
  ])('is given the tools that it allows alone once its choice is refused: %s', async (message) => {
    upstream.script(refusing(({ tool_choice: choice }) => typeof choice === 'object', message));
    const model = fresh('chat');
    for (let round = 0; round < 2; round++) expect((await ask('chat', model, allowed)).status).toBe(200);
    expect(bodies().map(({ tools, tool_choice: choice }) => [tools.length, typeof choice])).toEqual([
      [2, 'object'],
      [1, 'string'],
      [1, 'string'],
    ]);
  });

  test('that refuses something else goes on getting what its clients send', async () => {
    upstream.script(badRequest({ message: 'The custom grammar of the namespace is too long.' }), always(ok()));
    const model = fresh('chat');
    expect((await ask('chat', model, custom.chat)).status).toBe(400);
    expect((await ask('chat', model, custom.chat)).status).toBe(200);
    expect(bodies().map(hasCustom)).toEqual([true, true]);
  });
});

test('a word in a refusal does not cost the users of a Responses API their tools of free text', async () => {
  upstream.script(badRequest({ message: "Invalid 'input': the custom namespace of this request is odd." }), always(ok()));
  const model = fresh('responses');
  expect((await ask('responses', model, custom.responses)).status).toBe(400);
  expect((await ask('responses', model, custom.responses)).status).toBe(200);
  expect(bodies().map(hasCustom)).toEqual([true, true]);
});

test('the image of a result is followed by no message that the provider refuses (Mistral)', async () => {
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } };
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'custom', custom: { name: 'patch', input: 'x' } }] },
    { role: 'tool', tool_call_id: 'call_1', content: [image] },
  ];
  const rolesOf = (sent: object) => (sent as { readonly messages: readonly { readonly role: string }[] }).messages.map(({ role }) => role);
  const isRefused = (sent: Sent) => /tool,user/.test(rolesOf(sent).join());
  upstream.script(
    always({
      name: 'refusing',
      answer(exchange) {
        const sent = exchange.request.json as Sent;
        if (hasCustom(sent)) return badRequest({ message: 'tools[1].type: unknown variant `custom`' }).answer(exchange);
        return (isRefused(sent) ? badRequest({ message: "Unexpected role 'user' after role 'tool'" }) : ok()).answer(exchange);
      },
    }),
  );
  const { status, headers } = await ask('chat', fresh('chat'), { ...custom.chat, messages });
  expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringContaining('messages: the provider wants an answer between a tool result')]);
  expect(rolesOf(bodies().at(-1)!)).toEqual(['user', 'assistant', 'tool', 'assistant', 'user']);
});

test('the result of a tool of free text is one of its kind on the Responses API, whatever the client calls it', async () => {
  upstream.script(ok());
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'custom', custom: { name: 'patch', input: 'x' } }] },
    { role: 'tool', tool_call_id: 'call_1', content: 'done' },
  ];
  expect((await ask('chat', 'gpt-4.1-on-responses', { ...custom.chat, messages })).status).toBe(200);
  const { input } = upstream.requests[0]!.json as { readonly input: readonly { readonly type: string }[] };
  expect(input.map(({ type }) => type)).toEqual(['message', 'custom_tool_call', 'custom_tool_call_output']);
});

describe('OpenAI', () => {
  test.each([
    ['responses', 'gpt-4.1-on-responses'],
    ['chat', 'gpt-4.1'],
  ] as const)('is known to accept tools of free text: no refusal of one teaches otherwise (%s)', async (face, model) => {
    const at = face === 'chat' ? 1 : 0;
    upstream.script(
      badRequest({ message: `Invalid value: 'lark2'. Supported values are: 'lark' and 'regex'. See 'tools[${at}].format.type'.` }),
      badRequest({ message: `Unknown parameter: 'tools[${at}].custom.color'.` }),
      always(ok()),
    );
    for (const status of [400, 400, 200]) expect((await ask(face, model, custom[face])).status).toBe(status);
    expect(bodies().map(hasCustom)).toEqual([true, true, true]);
  });

  test('is known to accept a choice among some of the tools', async () => {
    upstream.script(badRequest({ message: "Invalid value: 'allowed_tools'.", code: 'invalid_value' }), always(ok()));
    for (const status of [400, 200]) expect((await ask('chat', 'gpt-4.1', allowed)).status).toBe(status);
    expect(bodies().map(({ tools }) => tools.length)).toEqual([2, 2]);
  });
});
