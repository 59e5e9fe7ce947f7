/* What a request to run an agent says, as JSON and as a form. */
import { afterAll, expect, test } from 'vitest';
import { proves } from '../../support/proves.ts';
import { startTestServer } from '../../support/server.ts';
import { runs } from './run-events.ts';
import { person, visitorsOf } from './visitors.ts';

const server = await startTestServer();
afterAll(() => server.close());
const all = visitorsOf(server);
const ada = await person(all);
const { body: agent } = await ada.ask('POST', '/server/mine/agents', {
  name: 'Greeter',
  mode: 'single',
  instructions: 'Be kind.',
  model: 'built-in',
  variables: { type: 'object', properties: { tone: { type: 'string' } }, additionalProperties: false },
});
const message = 'Say exactly: hello';
const execute = (body: object) => ada.ask('POST', '/server/execute-agent', { agent_id: agent['id'], message, streaming: false, ...body });

async function asForm(fields: Readonly<Record<string, string>>, file?: string) {
  const form = new FormData();
  for (const [name, value] of Object.entries({ agent_id: String(agent['id']), message, streaming: 'false', ...fields })) form.set(name, value);
  if (file !== undefined) form.set('file', new Blob([file]), 'notes.txt');
  const answer = await fetch(`${server.url}/server/execute-agent`, { method: 'POST', headers: { 'x-access-tokens': ada.key }, body: form });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

test(proves(['server.agent-integer-id', 'server.agent-id-required'], 'an agent is named by an integer, which must be there'), async () => {
  expect(agent['id']).toSatisfy(Number.isInteger);
  expect((await execute({})).body).toMatchObject({ status: 200, execution_status: 'completed' });
  for (const wrong of [undefined, null, 'Greeter', 1.5, -1, [agent['id']]]) {
    const { status, body } = await execute({ agent_id: wrong });
    expect([wrong, status, body['response']]).toEqual([wrong, 400, expect.stringMatching(/^agent_id /) as string]);
    expect(body).toMatchObject({ error: body['response'], message: body['response'], details: 'agent_id' });
  }
  expect(await execute({ agent_id: 999_999 })).toMatchObject({ status: 404, body: { details: null } });
});

test(proves('server.agent-message', 'the message is a text, and it is what is answered'), async () => {
  expect((await execute({ message: 'Say exactly: forty-two' })).body).toMatchObject({ response: { response: 'forty-two' } });
  for (const wrong of [7, ['x'], { text: 'x' }, '', ' \n'])
    expect(await execute({ message: wrong })).toMatchObject({ status: 400, body: { response: expect.stringMatching(/^message /) as string } });
});

test(proves('server.agent-variables', 'variables are an object, and may be left out'), async () => {
  for (const variables of [undefined, {}, { tone: 'kind' }]) expect(await execute(variables ? { variables } : {})).toMatchObject({ status: 200 });
  for (const variables of ['kind', 7, ['kind'], { tone: 7 }, { other: 'x' }])
    expect(await execute({ variables })).toMatchObject({ status: 400, body: { response: expect.stringMatching(/^variables/) as string } });
});

test(proves(['server.agent-multipart', 'server.agent-variables-multipart'], 'a form has a file, the other fields, and the variables as JSON'), async () => {
  expect(await asForm({ variables: '{"tone": "kind"}' }, 'The heron eats fish.')).toMatchObject({ status: 200, body: { response: { response: 'hello' } } });
  expect(await asForm({})).toMatchObject({ status: 200 });
  expect(await asForm({ variables: 'null', conversation_history: 'null' })).toMatchObject({ status: 200 });
  for (const variables of ['kind', '["kind"]', '{"tone": 7}'])
    expect(await asForm({ variables }, 'x')).toMatchObject({ status: 400, body: { response: expect.stringMatching(/^variables/) as string } });
  expect(await asForm({ agent_id: 'Greeter' }, 'x')).toMatchObject({ status: 400, body: { response: expect.stringMatching(/^agent_id /) as string } });
});

test(proves(['server.agent-whole', 'server.agent-streaming'], 'the answer is one JSON object, or a stream where streaming is true'), async () => {
  const by = async (accept: string | undefined, more: object = {}) => {
    const headers = { 'x-access-tokens': ada.key, 'content-type': 'application/json', ...(accept === undefined ? {} : { accept }) };
    const answer = await fetch(`${server.url}/server/execute-agent`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ agent_id: agent['id'], message, ...more }),
    });
    await answer.text();
    return answer.headers.get('content-type')?.split(';')[0];
  };
  expect([await by(undefined), await by('*/*'), await by('application/json')]).toEqual(Array(3).fill('application/json'));
  expect([await by('text/event-stream'), await by('text/plain'), await by('text/plain', { streaming: false })]).toEqual([
    'text/event-stream',
    'text/plain',
    'application/json',
  ]);
  expect([await by(undefined, { streaming: true }), await by('text/plain', { streaming: true })]).toEqual(['text/event-stream', 'text/plain']);
  const whole = await execute({});
  expect([whole.headers.get('content-type'), whole.body['response']]).toEqual([
    expect.stringMatching(/^application\/json/),
    { response: 'hello', type: 'text', source: 'llm_1', metadata: {} },
  ]);
  const { contentType, events } = await runs(ada, server.url).executed({ agent_id: agent['id'], message, streaming: true });
  expect([contentType, events.at(-1)?.event]).toEqual([expect.stringMatching(/^text\/event-stream/), 'workflow_completed']);
  const { data: said } = events.find(({ event }) => event === 'node_completed')!.data as { data: object };
  expect(said).toEqual({ node_id: 'llm_1', node_type: 'llm', output: { text: 'hello' } });
  for (const streaming of ['yes', 1])
    expect(await execute({ streaming })).toMatchObject({ status: 400, body: { response: expect.stringMatching(/^streaming /) as string } });
});

test('an agent that names a model which its author may not ask, or which is of another kind, is refused with 400', async () => {
  const fields = { name: 'Greeter', mode: 'single', instructions: 'Be kind.' };
  for (const model of ['no-such-model', 'built-in-embedding'])
    for (const [method, path] of [['POST', '/server/mine/agents'] as const, ['PUT', `/server/mine/agents/${agent['id'] as number}`] as const]) {
      const { status, body } = await ada.ask(method, path, { ...fields, model });
      expect([path, status, body['error']]).toEqual([path, 400, expect.stringMatching(new RegExp(`^The model \`${model}\` .*Available: built-in`)) as string]);
    }
  for (const more of [{}, { model: 'built-in' }, { model: 'flash' }])
    expect((await ada.ask('POST', '/server/mine/agents', { ...fields, ...more })).status).toBe(201);
});

test('a schema that nothing can keep to is refused when an agent is written, naming what is wrong in it', async () => {
  const made = (change: object) => ada.ask('POST', '/server/mine/agents', { name: 'A', mode: 'single', instructions: 'Be kind.', ...change });
  const request = { method: 'GET', url: 'https://example.org/{{a}}' };
  const asking = (parameters: object) => ({ tools: [{ type: 'http', name: 'asks', description: 'Asks.', parameters, request }] });
  for (const [one, field] of [
    [{ type: 'foo' }, 'type'],
    [{ type: 'integer', minimum: 5, maximum: 1 }, 'minimum'],
    [{ type: 'string', pattern: '[' }, 'pattern'],
    [{ type: 'string', pattern: '(a)\\1' }, 'pattern'],
    [{ $ref: '#/$defs/none' }, '$ref'],
    [{ enum: [] }, 'enum'],
  ] as const)
    for (const [change, at] of [
      [{ variables: { type: 'object', properties: { a: one } } }, 'variables'],
      [asking({ type: 'object', properties: { a: one } }), 'tools[0].parameters'],
    ] as const) {
      const { status, body } = await made(change);
      expect([status, body['message']]).toEqual([400, expect.stringContaining(`${at}.properties.a.${field} must`)]);
    }
  const good = { type: 'object', properties: { a: { type: 'string', pattern: '^(?!c)(a|b)+$' }, c: { $ref: '#/$defs/c' } }, $defs: { c: { type: 'integer' } } };
  expect((await made({ variables: good, ...asking(good) })).status).toBe(201);
  expect((await made({ variables: { ...good, required: ['b'] } })).body['message']).toMatch(/^variables.required /);
});
