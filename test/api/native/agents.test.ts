/* Agents: made, versioned, shared and run in three modes, with tools under the rights of who runs them. */
import { expect, test } from 'vitest';
import { anyPlace, onBothDatabases } from '../../support/databases.ts';
import { startScriptedMcp, toolNamed } from '../../support/fakes/mcp.ts';
import { proves } from '../../support/proves.ts';
import { runs } from './run-events.ts';
import { idOf, newDataset } from '../datasets/people.ts';
import { person, visited, type Person } from './visitors.ts';

const long = 120_000;
const root = '/server/mine/agents';
const simple = { name: 'Greeter', mode: 'single', instructions: 'Be kind.', model: 'built-in' };
const execute = (who: Person, agent: unknown, more: object = {}) =>
  who.ask('POST', '/server/execute-agent', { agent_id: agent, message: 'Say exactly: hello', streaming: false, ...more });
const made = async (who: Person, agent: object) => {
  const { status, body } = await who.ask('POST', root, { ...simple, ...agent });
  expect([status, body]).toEqual([201, expect.anything()]);
  return body['id'] as number;
};

onBothDatabases('agents', ({ place }) => {
  test('an agent whose model the key may not use is 400, as it is wherever a model is named', { timeout: long }, async () => {
    const all = await visited(await place());
    const ada = await person(all);
    const id = await made(ada, {});
    const narrow = await ada.ask('POST', '/server/mine/keys', { name: 'narrow', models: ['other'] });
    const refused = await execute({ ...ada, ask: all.as(String(narrow.body['key'])) }, id);
    expect(refused).toMatchObject({ status: 400, body: { response: expect.stringContaining('The model `built-in` does not exist') as string } });
    expect((await ada.ask('GET', '/server/mine/runs')).body['items']).toEqual([]);
  });

  test(
    proves('server.execute-agent', 'an agent answers whole, as a stream of either form, and with a file; its run is there afterwards with all of its events'),
    { timeout: long },
    async () => {
      const all = await visited(await place());
      const ada = await person(all);
      const id = await made(ada, {});
      const whole = await execute(ada, id);
      expect(whole).toMatchObject({
        status: 200,
        body: {
          status: 200,
          execution_status: 'completed',
          execution_id: expect.any(String) as string,
          response: { response: 'hello', type: 'text', source: 'llm_1', metadata: {} },
          workflow: { id, name: 'Greeter', version: 1 },
          node_executions: [{ node_id: 'llm_1', node_type: 'llm', status: 'completed', output: { text: 'hello' }, error: null }],
          error: null,
          waitsFor: null,
        },
      });
      const run = whole.body['execution_id'] as string;
      expect((await ada.ask('GET', `/server/mine/runs/${run}`)).body).toMatchObject({
        id: Number(run),
        kind: 'agent',
        agentId: id,
        version: 1,
        state: 'completed',
        message: 'hello',
        steps: 1,
        calls: 0,
        planTokens: expect.toSatisfy((tokens: number) => tokens > 0) as number,
        requestId: whole.headers.get('x-request-id'),
      });
      const told = await runs(ada, all.server.url).events(run);
      expect(told.map(({ event }) => event)).toEqual(['run.started', 'step.started', 'message.delta', 'usage', 'run.completed']);
      expect(told.map(({ id: number }) => number)).toEqual(['1', '2', '3', '4', '5']);
      expect(told[0]!.data).toMatchObject({
        run: Number(run),
        seq: 1,
        place: 'main',
        data: { kind: 'agent', agentId: id, version: 1, message: 'Say exactly: hello' },
      });
      expect(await runs(ada, all.server.url).events(run, 3)).toEqual(told.slice(3));

      const { events, contentType } = await runs(ada, all.server.url).executed({ agent_id: id, message: 'Say exactly: hello', streaming: true });
      expect(contentType).toMatch(/^text\/event-stream/);
      expect(events.map(({ event }) => event)).toEqual(['workflow_started', 'token', 'node_completed', 'agent_response', 'workflow_completed']);
      const plain = await runs(ada, all.server.url).plain({ agent_id: id, message: 'Say exactly: hello' });
      expect(plain.map((one) => one['event'])).toEqual(events.map(({ event }) => event));

      const form = new FormData();
      for (const [name, value] of Object.entries({ agent_id: String(id), message: 'What is in the file?', streaming: 'false', variables: '{"tone":"kind"}' }))
        form.set(name, value);
      form.set('file', new Blob(['The heron eats forty-two fish.']), 'heron.txt');
      const withFile = await fetch(`${all.server.url}/server/execute-agent`, { method: 'POST', headers: { 'x-access-tokens': ada.key }, body: form });
      expect([withFile.status, await withFile.json()]).toMatchObject([200, { execution_status: 'completed' }]);
      form.append('file', new Blob(['']), 'blank.txt');
      const withBlank = await fetch(`${all.server.url}/server/execute-agent`, { method: 'POST', headers: { 'x-access-tokens': ada.key }, body: form });
      expect([withBlank.status, await withBlank.json()]).toMatchObject([422, { response: expect.stringMatching(/^file blank\.txt: /) as string }]);
      const list = (await ada.ask('GET', '/server/mine/runs?limit=2&kind=agent&state=completed')).body as { items: { id: number }[]; nextCursor: string };
      expect(list.items).toHaveLength(2);
      const rest = (await ada.ask('GET', `/server/mine/runs?cursor=${list.nextCursor}&agentId=${id}`)).body as { items: { id: number }[] };
      expect(rest.items.map((one) => one.id)).toContain(Number(run));
    },
  );

  test('a run whose beginning costs more than what is left of the quota is refused with 429 in each form, and is none', { timeout: long }, async () => {
    const all = await visited(await place());
    await all.admin('PUT', '/server/admin/plans/tiny', { monthlyTokens: 3000 });
    const poor = await person(all, { plan: 'tiny' });
    const long = 'Be kind. '.repeat(4000);
    const [wordy, short] = [await made(poor, { instructions: long }), await made(poor, {})];
    const history = { conversation_history: [{ user: 'me', message: long }] };
    for (const streaming of [false, true])
      for (const [id, more] of [
        [wordy, {}],
        [short, history],
        [short, { variables: { text: long } }],
      ] as const)
        // prettier-ignore
        expect(await execute(poor, id, { ...more, streaming })).toMatchObject({ status: 429, body: { status: 429, details: null } });
    const form = new FormData();
    for (const [name, value] of Object.entries({ agent_id: String(short), message: 'hi' })) form.set(name, value);
    form.set('file', new Blob([long]), 'long.txt');
    const withFile = await fetch(`${all.server.url}/server/execute-agent`, { method: 'POST', headers: { 'x-access-tokens': poor.key }, body: form });
    expect(withFile.status).toBe(429);
    expect((await poor.ask('GET', '/server/mine/runs')).body).toMatchObject({ items: [] });
    expect(await execute(poor, short)).toMatchObject({ status: 200, body: { execution_status: 'completed' } });
  });

  test('instructions that say what to answer are all that the built-in model answers, in each mode, whole and streamed', { timeout: long }, async () => {
    const all = await visited(await place());
    const ada = await person(all);
    const exact = { instructions: 'Say exactly: PONG' };
    const single = await made(ada, exact);
    const autonomous = await made(ada, { ...exact, mode: 'autonomous' });
    const router = await made(ada, { mode: 'router', instructions: 'Pick one.', tools: [{ type: 'agent', agent: single }] });
    for (const id of [single, autonomous, router]) {
      expect((await execute(ada, id, { message: 'Hello there.' })).body).toMatchObject({ response: { response: 'PONG' } });
      const { events } = await runs(ada, all.server.url).executed({ agent_id: id, message: 'Hello there.', streaming: true });
      expect(events.find(({ event }) => event === 'agent_response')?.data).toMatchObject({ data: { response: 'PONG' } });
    }
  });

  test('a run with several rounds is booked as steps of one request, each once', { timeout: long }, async () => {
    const mcp = await startScriptedMcp([toolNamed('one', { annotations: { readOnlyHint: true } })]);
    const all = await visited(await place(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
    const ada = await person(all);
    const server = (await ada.ask('POST', '/server/mine/mcp-servers', { name: 's', url: mcp.url })).body['id'] as number;
    const id = await made(ada, { mode: 'autonomous', tools: [{ type: 'mcp', server }] });
    const answer = await execute(ada, id, { message: 'Call s__one now.' });
    expect(answer.body).toMatchObject({
      execution_status: 'completed',
      response: { response: expect.stringContaining('done') as string, source: 'llm_2' },
      node_executions: [
        { node_id: 'llm_1' },
        { node_type: 'tool', status: 'completed', output: { text: 'done' }, metadata: { tool: 'one', server: 's' } },
        { node_id: 'llm_2' },
      ],
    });
    const steps = async () => {
      const { body } = await all.admin('GET', `/server/admin/logs/${answer.headers.get('x-request-id')}`);
      return (body['steps'] as unknown[] | undefined)?.length;
    };
    await expect.poll(steps, { timeout: 30_000 }).toBe(1);
  });
});

test('versions: the owner runs the last one, everybody else the published one, and nothing of a request but what it may say', { timeout: long }, async () => {
  const all = await visited(await anyPlace());
  const [ada, bob] = [await person(all), await person(all)];
  const id = await made(ada, {});
  await ada.ask('PUT', `${root}/${id}/grants`, { items: [{ user: bob.id, right: 'read' }] });
  expect(await execute(bob, id)).toMatchObject({ status: 409 });
  const seenBy = async (who: Person) => (await who.ask('POST', '/server/list-agents', { search: 'greeter' })).body;
  expect([await seenBy(bob), await seenBy(ada)]).toMatchObject([
    { total: 0, response: [] },
    { total: 1, response: [{ id, is_published: false }] },
  ]);
  expect((await ada.ask('POST', `${root}/${id}/publish`)).body).toMatchObject({ version: 1, publishedAt: expect.any(String) as string });
  expect((await ada.ask('PUT', `${root}/${id}`, { ...simple, name: 'Second' })).body).toMatchObject({ version: 2, published: 1 });
  expect((await execute(ada, id)).body['workflow']).toMatchObject({ name: 'Second', version: 2 });
  expect((await execute(bob, id)).body['workflow']).toMatchObject({ name: 'Greeter', version: 1 });
  expect(await seenBy(bob)).toMatchObject({ total: 1, response: [{ id, current_version: 1 }] });
  expect((await bob.ask('GET', `${root}/${id}`)).body).not.toHaveProperty('instructions');
  expect((await bob.ask('PUT', `${root}/${id}`, simple)).status).toBe(403);
  expect((await bob.ask('GET', `${root}/${id}/versions`)).status).toBe(403);
  expect((await ada.ask('GET', `${root}/${id}/versions?limit=1`)).body).toMatchObject({
    items: [{ version: 2, publishedAt: null }],
    nextCursor: expect.any(String) as string,
  });
  expect((await ada.ask('GET', `${root}/${id}/versions/1`)).body).toMatchObject({ version: 1, name: 'Greeter' });
  expect((await ada.ask('GET', `${root}/${id}/versions/9`)).status).toBe(404);
  expect((await ada.ask('DELETE', `${root}/${id}`)).status).toBe(200);
  expect((await execute(bob, id)).status).toBe(404);
});

test('whoever may change an agent is shown its last version, which they go on from, and still runs the published one', { timeout: long }, async () => {
  const all = await visited(await anyPlace());
  const [ada, bob] = [await person(all), await person(all)];
  const id = await made(ada, {});
  await ada.ask('PUT', `${root}/${id}/grants`, { items: [{ user: bob.id, right: 'edit' }] });
  await ada.ask('POST', `${root}/${id}/publish`);
  await ada.ask('PUT', `${root}/${id}`, { ...simple, instructions: 'Be brief.' });
  const last = { version: 2, published: 1, instructions: 'Be brief.', right: 'edit' };
  expect((await bob.ask('GET', `${root}/${id}`)).body).toMatchObject(last);
  expect((await bob.ask('GET', root)).body).toMatchObject({ items: [last] });
  expect((await bob.ask('PUT', `${root}/${id}`, { ...simple, name: 'Third' })).body).toMatchObject({ version: 3, published: 1, name: 'Third' });
  expect((await bob.ask('POST', '/server/list-agents', { search: 'greeter' })).body).toMatchObject({ response: [{ id, current_version: 1 }] });
  expect((await execute(bob, id)).body['workflow']).toMatchObject({ name: 'Greeter', version: 1 });
  expect((await execute(ada, id)).body['workflow']).toMatchObject({ name: 'Third', version: 3 });
});

test('what a run spends is booked under the application and the tags of the request that began it', { timeout: long }, async () => {
  const all = await visited(await anyPlace());
  const ada = await person(all);
  const dataset = await newDataset(ada, 'ponds');
  expect((await ada.ask('POST', '/server/train', { content: 'The heron lives at the north pond.', force_dataset: dataset })).status).toBe(200);
  const number = await idOf(ada, dataset);
  const id = await made(ada, {});
  const reader = await made(ada, { mode: 'autonomous', model: 'built-in', tools: [{ type: 'dataset', dataset: number }] });
  const labelled = (path: string, body: object, tags: string) =>
    fetch(`${all.server.url}${path}`, {
      method: 'POST',
      headers: { 'x-access-tokens': ada.key, 'content-type': 'application/json', 'x-app-name': 'desk', 'x-dragoman-tags': tags },
      body: JSON.stringify(body),
    });
  const asked = { agent_id: id, message: 'Say exactly: hello' };
  expect((await labelled('/server/execute-agent', asked, 'no tag')).status).toBe(400);
  expect((await labelled('/server/execute-agent', asked, 'case=agent')).status).toBe(200);
  expect((await labelled('/server/query', { message: 'Herons', model: 'built-in', mode: 'deep_agent' }, 'case=deep')).status).toBe(200);
  const booked = async (tag: string) => {
    const { items } = (await ada.ask('GET', `/server/mine/logs?tag=case:${tag}`)).body as { items: { app: string }[] };
    return items.length > 0 && [...new Set(items.map(({ app }) => app))];
  };
  for (const tag of ['agent', 'deep']) await expect.poll(() => booked(tag)).toEqual(['desk']);
  const searching = async (tag: string, path: string, body: object) => {
    await (await labelled(path, body, `case=${tag}`)).text();
    const { items } = (await ada.ask('GET', `/server/mine/logs?tag=case:${tag}`)).body as { items: { model: string }[] };
    return items.map(({ model }) => model);
  };
  const search = { agent_id: reader, message: `Call search_ponds_${number} with the question: Where is the heron?`, streaming: false };
  await expect.poll(() => searching('agents', '/server/execute-agent', search), { timeout: 30_000 }).toContain('built-in-embedding');
  const query = { message: 'Which pond has a heron?', model: 'built-in', dataset };
  await expect.poll(() => searching('query', '/server/query', query), { timeout: 30_000 }).toContain('built-in-embedding');
});

test('the headers of choices hold for the answers of a run', { timeout: long }, async () => {
  const all = await visited(await anyPlace(), {
    yaml: 'providers: { away: { dialect: openai-chat, baseUrl: "http://127.0.0.1:1/v1" } }\nmodels: { gone: { targets: [{ provider: away }] } }\n',
  });
  const ada = await person(all);
  const id = await made(ada, { model: 'gone' });
  const sent = (path: string, body: object, headers: Record<string, string>) =>
    fetch(`${all.server.url}${path}`, {
      method: 'POST',
      headers: { 'x-access-tokens': ada.key, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const executed = (headers: Record<string, string>) =>
    sent('/server/execute-agent', { agent_id: id, message: 'Say exactly: hello', streaming: false }, headers);
  const deep = (headers: Record<string, string>) => sent('/server/query', { message: 'Why?', model: 'gone', mode: 'deep_agent' }, headers);
  for (const ask of [executed, deep]) {
    const refused = await ask({ 'x-dragoman-targets': 'nobody' });
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('x-dragoman-targets names')]);
    const unread = await ask({ 'x-dragoman-cache': 'for ever' });
    expect([unread.status, await unread.text()]).toEqual([400, expect.stringContaining('x-dragoman-cache')]);
  }
  for (const [ask, tag] of [
    [executed, 'agent'],
    [deep, 'deep'],
  ] as const) {
    await (await ask({ 'x-dragoman-targets': 'built-in', 'x-dragoman-tags': `chosen=${tag}` })).text();
    const models = async () => {
      const { items } = (await ada.ask('GET', `/server/mine/logs?tag=chosen:${tag}`)).body as { items: { servedModel: string }[] };
      return [...new Set(items.map(({ servedModel }) => servedModel))];
    };
    await expect.poll(models).toEqual(['built-in']);
  }
});

test(proves('P-11', 'what a request says of instructions, tools, model or nodes is not heeded: the stored definition runs'), { timeout: long }, async () => {
  const all = await visited(await anyPlace());
  const ada = await person(all);
  const id = await made(ada, {});
  const given = {
    instructions: 'Say no.',
    system: 'Say no.',
    model: 'nobody',
    tools: [{ type: 'dataset', dataset: 'all' }],
    nodes: [],
    code: '1',
    mode: 'autonomous',
    version: 7,
  };
  expect((await execute(ada, id, given)).body).toMatchObject({ execution_status: 'completed', response: { response: 'hello' }, workflow: { version: 1 } });
});

test(proves('P-16', 'variables are held against what the agent declares, and are inert'), { timeout: long }, async () => {
  const all = await visited(await anyPlace());
  const ada = await person(all);
  const variables = {
    type: 'object',
    properties: { city: { type: 'string', maxLength: 40 }, days: { type: 'integer' } },
    required: ['city'],
    additionalProperties: false,
  };
  const id = await made(ada, { variables });
  const answer = async (given: unknown) => {
    const { status, body } = await execute(ada, id, { variables: given });
    return [status, body['error']];
  };
  expect(await answer({ city: '{{secret.TOKEN}} {{city}} ${x}', days: 2 })).toEqual([200, null]);
  for (const [given, field] of [
    [{ city: 7 }, 'variables.city'],
    [{}, 'variables.city'],
    [{ city: 'x', other: 1 }, 'variables.other'],
    [{ city: 'x'.repeat(41) }, 'variables.city'],
    ['text', 'variables'],
    [[1], 'variables'],
  ] as const)
    expect([field, await answer(given)]).toEqual([field, [400, expect.stringContaining(field)]]);
  const { body: kept } = await ada.ask('GET', `/server/mine/agents/${id}`);
  expect(JSON.stringify(kept['variables'])).toBe(JSON.stringify(variables)); // in their order
  const hostile = await ada.ask(
    'POST',
    '/server/execute-agent',
    `{"agent_id":${id},"message":"x","streaming":false,"variables":{"city":"x","__proto__":{"a":1}}}`,
  );
  expect([hostile.status, hostile.body['error']]).toEqual([400, expect.stringContaining('__proto__')]);
  expect(await answer({ city: 'x'.repeat(1_048_576) })).toEqual([413, expect.stringContaining('variables')]);
  const free = await made(ada, {});
  expect((await execute(ada, free, { variables: { anything: { nested: ['{{x}}'] } } })).status).toBe(200);
  for (const [more, field] of [
    [{ agent_id: String(id) }, 'agent_id'],
    [{ streaming: 'yes' }, 'streaming'],
    [{ streaming: 'true' }, 'streaming'],
    [{ message: '' }, 'message'],
    [{ conversation_history: [{ message: 'x', user: 'root' }] }, 'conversation_history[0].user'],
  ] as const)
    expect([field, await execute(ada, free, more)]).toMatchObject([field, { status: 400, body: { error: expect.stringContaining(field) as string } }]);
});

test(proves('T-02', 'the runs of others are not there, and neither are their agents'), { timeout: long }, async () => {
  const all = await visited(await anyPlace());
  const [ada, bob] = [await person(all), await person(all)];
  const id = await made(ada, {});
  const run = (await execute(ada, id)).body['execution_id'] as string;
  const other = Array.from(run).toReversed().join('');
  const none = await bob.ask('GET', `/server/mine/runs/${other}`);
  expect(none.status).toBe(404);
  const said = ({ body: { request_id: _, ...rest } }: { body: Record<string, unknown> }) => JSON.stringify(rest).replaceAll(/req_\w+/g, '');
  for (const [method, path, body] of [
    ['GET', '', undefined],
    ['GET', '/events', undefined],
    ['POST', '/cancel', undefined],
    ['POST', '/resume', undefined],
    ['POST', '/approve', { call: 'x', approved: true }],
    ['POST', '/answer', { question: 'x', action: 'accept' }],
  ] as const) {
    const theirs = await bob.ask(method, `/server/mine/runs/${run}${path}`, body);
    const nobodys = await bob.ask(method, `/server/mine/runs/${other}${path}`, body);
    expect([path, theirs.status, said(theirs)]).toEqual([path, 404, said(nobodys)]);
  }
  expect((await bob.ask('GET', '/server/mine/runs')).body).toEqual({ items: [], nextCursor: null });
  expect((await bob.ask('GET', `/server/mine/runs?owner=${ada.id}`)).status).toBe(404);
  expect((await execute(bob, id)).status).toBe(404);
  expect(said(await execute(bob, id))).toBe(said(await execute(bob, 999_999)));
  expect(await ada.ask('POST', `/server/mine/runs/${run}/cancel`, { why: 'late' })).toMatchObject({
    status: 400,
    body: { error: expect.stringMatching(/^why is not known/) as string },
  });
  expect(await ada.ask('POST', `/server/mine/runs/${run}/cancel`, [])).toMatchObject({ status: 400, body: { error: 'The body must be an object.' } });
  expect((await ada.ask('POST', `/server/mine/runs/${run}/cancel`, {})).status).toBe(409);
  expect((await ada.ask('POST', `/server/mine/runs/${run}/cancel`)).status).toBe(409);
  expect((await ada.ask('POST', `/server/mine/runs/${run}/resume`)).status).toBe(409);
});

test(proves('server.list-agents', 'agents are listed with their pages and found by a word; two come with the product'), { timeout: long }, async () => {
  const all = await visited(await anyPlace());
  const ada = await person(all);
  const id = await made(ada, { description: 'Answers with herons.' });
  const list = await ada.ask('GET', '/server/list-agents');
  expect(list.body).toMatchObject({ count: 3, status: 200 });
  expect(list.body).not.toHaveProperty('total');
  expect((await ada.ask('POST', '/server/list-agents', { search: 'HERONS' })).body).toMatchObject({
    count: 1,
    total: 1,
    limit: 20,
    offset: 0,
    response: [{ id, agent_mode: 'single', is_published: false }],
  });
  expect((await ada.ask('GET', '/server/list-agents?limit=2&offset=1')).body).toMatchObject({ count: 2, total: 3, response: [{ id: 2 }, { id }] });
  expect((await ada.ask('GET', '/server/list-agents?limit=101')).status).toBe(400);
  const answer = await execute(ada, 2, { message: 'Say exactly: hello' });
  expect(answer.body).toMatchObject({ execution_status: 'completed' });
});

test(
  'what an editor wrote into an agent asks its owner, though it says never, and so do the agents below it; what the owner wrote does not',
  { timeout: long },
  async () => {
    const mcp = await startScriptedMcp([toolNamed('one')]);
    const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\nmcp: { approval: never }\n` });
    const [ada, bob] = [await person(all), await person(all)];
    const server = (await bob.ask('POST', '/server/mine/mcp-servers', { name: 's', url: mcp.url })).body['id'] as number;
    await bob.ask('PUT', `/server/mine/mcp-servers/${server}/grants`, { items: [{ user: ada.id, right: 'read' }] });
    const acting = { ...simple, mode: 'autonomous', tools: [{ type: 'mcp', server, approval: 'never' }] };
    const id = await made(ada, acting);
    const calls = () => mcp.asked.filter(({ method }) => method === 'tools/call').length;
    const run = async (agent: number, message = 'Call s__one now.') => [(await execute(ada, agent, { message })).body['execution_status'], calls()];
    expect(await run(id)).toEqual(['completed', 1]);
    await ada.ask('PUT', `${root}/${id}/grants`, { items: [{ user: bob.id, right: 'edit' }] });
    expect((await bob.ask('PUT', `${root}/${id}`, { ...acting, instructions: 'Be quick.' })).status).toBe(200);
    expect(await run(id)).toEqual(['waiting', 1]);
    const above = await made(ada, { mode: 'router', tools: [{ type: 'agent', agent: id }] });
    expect(await run(above, `Call agent__${id} now. Call s__one now.`)).toEqual(['waiting', 1]);
    expect((await ada.ask('PUT', `${root}/${id}`, acting)).status).toBe(200);
    expect(await run(id)).toEqual(['completed', 2]);
  },
);
