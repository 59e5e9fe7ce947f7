import { expect, test } from 'vitest';
import { askFace } from '../support/all-faces.ts';
import { always, badRequest, ok, toolCalls, type Behaviour } from '../support/fakes/upstream/index.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** Items of the input beside messages and calls, at servers of the Responses API that do not know them: what one refusal teaches costs no more than it says. */

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  responses: { dialect: openai-responses, baseUrl: "${url}/v1", apiKeys: [k] }
models:
${Array.from({ length: 10 }, (_, at) => `  responses-${at}: { targets: [{ provider: responses }] }`).join('\n')}
routing: { cooldownSeconds: 0 }
`,
}));

interface Sent {
  readonly input: readonly { readonly type?: string }[];
  readonly tools?: readonly { readonly type: string; readonly name: string }[];
}
const bodies = () => upstream.requests.map(({ json }) => json as Sent);
let models = 0;
const fresh = () => `responses-${models++}`;

const custom = { type: 'custom', name: 'exec', description: 'Runs it.' };
const namespace = { type: 'namespace', name: 'functions', description: '', tools: [custom] };
const wait = { type: 'function', name: 'wait', strict: false, parameters: { type: 'object', properties: {} } };
const declaration = { type: 'additional_tools', role: 'developer', tools: [namespace, wait] };
const other = { type: 'context_of_tomorrow', role: 'user', strength: 3 };
const user = { type: 'message', role: 'user', content: 'hi' };

const ask = (model: string, input: readonly object[], tools?: readonly object[]) =>
  askFace(server, 'responses', { model, content: '', stream: false, more: { input, ...(tools ? { tools } : {}) } });

/** Refuses items of these types, and tools of these. */
const knowing = (items: readonly string[], tools: readonly string[], answer: Behaviour = ok()): Behaviour =>
  always({
    name: 'a server that does not know all types',
    answer(exchange) {
      const { input, tools: declared = [] } = exchange.request.json as Sent;
      const item = input.findIndex(({ type }) => items.includes(type ?? ''));
      if (item >= 0) return badRequest({ message: `Invalid value: '${input[item]!.type}'. See 'input[${item}].type'.` }).answer(exchange);
      const tool = declared.findIndex(({ type }) => tools.includes(type));
      if (tool >= 0) return badRequest({ message: `Invalid value: '${declared[tool]!.type}'. See 'tools[${tool}].type'.` }).answer(exchange);
      return answer.answer(exchange);
    },
  });
const types = ({ input, tools = [] }: Sent) => [input.map(({ type }) => type), tools.map(({ type }) => type)];

test('a server that refuses the item gets its tools as they are: tools of free text and namespaces stay', async () => {
  upstream.script(knowing(['additional_tools'], []));
  const model = fresh();
  for (let round = 0; round < 2; round++) expect((await ask(model, [declaration, user])).status).toBe(200);
  expect(bodies().map(types)).toEqual([
    [['additional_tools', 'message'], []],
    [['message'], ['namespace', 'function']],
    [['message'], ['namespace', 'function']],
  ]);
  expect((await ask(model, [user], [custom])).status).toBe(200);
  expect(types(bodies().at(-1)!)).toEqual([['message'], ['custom']]);
});

test('one that refuses namespaces, too, gets functions, whose calls come back as the client declared them', async () => {
  upstream.script(knowing(['additional_tools'], ['namespace', 'custom'], toolCalls([{ name: 'functions__exec', json: '{"input":"ls"}' }])));
  const model = fresh();
  const { status, raw } = await ask(model, [declaration, user]);
  expect([status, bodies().map(types)[2]]).toEqual([200, [['message'], ['function', 'function']]]);
  const name = bodies()[2]!.tools![0]!.name;
  upstream.script(knowing(['additional_tools'], ['namespace', 'custom'], toolCalls([{ name, json: '{"input":"ls"}' }])));
  const again = await ask(model, [declaration, user]);
  expect(raw).toContain('"status"');
  expect(JSON.parse(again.raw)).toMatchObject({ output: [{ type: 'custom_tool_call', name: 'exec', namespace: 'functions', input: 'ls' }] });
});

test('one that refuses tools of free text keeps the items that it knows', async () => {
  upstream.script(knowing([], ['custom']));
  const model = fresh();
  expect((await ask(model, [user], [custom])).status).toBe(200);
  expect((await ask(model, [{ ...declaration, tools: [wait] }, other, user])).status).toBe(200);
  expect((await ask(model, [declaration, other, user])).status).toBe(200);
  expect(bodies().map(types)).toEqual([
    [['message'], ['custom']],
    [['message'], ['function']],
    [['additional_tools', other.type, 'message'], []],
    [
      [other.type, 'message'],
      ['function', 'function'],
    ],
  ]);
});

test('an item without tools that is refused is left out with a warning, and those with tools before it', async () => {
  upstream.script(knowing(['additional_tools', other.type], []));
  const model = fresh();
  const { status, headers } = await ask(model, [declaration, other, user]);
  expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringContaining('context_of_tomorrow: ')]);
  expect(bodies().map(types)).toEqual([
    [['additional_tools', other.type, 'message'], []],
    [
      [other.type, 'message'],
      ['namespace', 'function'],
    ],
    [['message'], ['namespace', 'function']],
  ]);
});

test('an item that one server refuses reaches a server that knows it, beside items that it does not know', async () => {
  upstream.script(knowing(['additional_tools'], []));
  const model = fresh();
  expect((await ask(model, [declaration, other, user])).status).toBe(200);
  expect(types(bodies().at(-1)!)).toEqual([
    [other.type, 'message'],
    ['namespace', 'function'],
  ]);
});

test("the refusal of a part of a message is the client's", async () => {
  upstream.script(badRequest({ message: "Invalid value: 'input_smell'. See 'input[1].content[0].type'." }), knowing([], []));
  const model = fresh();
  expect((await ask(model, [declaration, user])).status).toBe(400);
  expect((await ask(model, [declaration, user])).status).toBe(200);
  expect(types(bodies().at(-1)!)).toEqual([['additional_tools', 'message'], []]);
});

test('what cannot be read of an item is warned of where its tools are declared anew', async () => {
  upstream.script(knowing(['additional_tools'], []));
  const { status, headers } = await ask(fresh(), [{ ...declaration, tools: [wait, 'none'] }, user]);
  expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringContaining('additional_tools.tools[1]: ')]);
});
