/* Tools of MCP servers in questions: called for the model, approved by the user, under the rights of who asks. */
import { expect, test } from 'vitest';
import { anyPlace, onBothDatabases } from '../../support/databases.ts';
import { startEverything, startScriptedMcp, toolNamed } from '../../support/fakes/mcp.ts';
import { proves } from '../../support/proves.ts';
import { person, visited } from './visitors.ts';

const long = 120_000;
const root = '/server/mine/mcp-servers';

onBothDatabases('MCP tools in questions', ({ place }) => {
  test('a question has a tool of the reference server called, and answers with its result', { timeout: long }, async () => {
    const url = await startEverything();
    const all = await visited(await place(), { yaml: `outbound: { allow: ["${new URL(url).origin}"] }\n` });
    const ada = await person(all);
    const id = (await ada.ask('POST', root, { name: 'all', url })).body['id'] as number;
    const answer = await ada.ask('POST', '/server/query', {
      message: 'Call all__echo with message "forty-two herons".',
      enabled_mcp_tools: [`${id}_echo`, `${id}_none`, 'x'],
      usage: true,
    });
    expect(answer).toMatchObject({
      status: 200,
      body: {
        message: expect.stringContaining('forty-two herons') as string,
        tool_calls: null,
        tool_responses: [{ name: 'all__echo', response: expect.stringMatching(/^Echo: .*forty-two herons/) as string, is_error: false }],
      },
    });
    expect(answer.headers.get('x-dragoman-warnings')).toMatch(/none.*no such tool|no such tool.*none/);
    const steps = async () => {
      const { body } = await all.admin('GET', `/server/admin/logs/${answer.headers.get('x-request-id')}`);
      return (body['steps'] as unknown[] | undefined)?.length;
    };
    await expect.poll(steps, { timeout: 30_000 }).toBe(1); // the round after the call
  });

  test('tool_choice is heeded where the only tools are those of MCP servers', { timeout: long }, async () => {
    const mcp = await startScriptedMcp([toolNamed('one'), toolNamed('two')]);
    const all = await visited(await place(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
    const ada = await person(all);
    const id = (await ada.ask('POST', root, { name: 's', url: mcp.url })).body['id'] as number;
    const asked = async (choice: unknown, message: string, tools = [`${id}_one`, `${id}_two`]) => {
      const before = mcp.asked.length;
      const { status, body } = await ada.ask('POST', '/server/query', { message, enabled_mcp_tools: tools, tool_choice: choice });
      const called = mcp.asked.slice(before).flatMap(({ method, params }) => (method === 'tools/call' ? [(params as { name: string }).name] : []));
      return { status, called, message: body['message'] };
    };
    const named = (name: string) => ({ type: 'function', function: { name } });
    expect(await asked('auto', 'Call s__one now.')).toMatchObject({ status: 200, called: ['one'] });
    expect(await asked('none', 'Call s__one now.')).toMatchObject({ status: 200, called: [] });
    expect(await asked('required', 'Hello.')).toMatchObject({ status: 200, called: [expect.any(String)] });
    expect(await asked(named('s__two'), 'Hello.')).toMatchObject({ status: 200, called: ['two'] });
    expect(await asked(named('s__three'), 'Hello.')).toEqual({ status: 400, called: [], message: 'tool_choice names a tool that is not there.' });
    expect(await asked('required', 'Hello.', [`${id}_three`])).toEqual({ status: 400, called: [], message: 'tool_choice is only allowed with tools.' });
    expect(await asked('none', 'Hello.', [`${id}_three`])).toMatchObject({ status: 200, called: [] });
  });

  test(
    proves(
      'P-10',
      'a call that is to be asked for waits for tools_to_execute of the same user and conversation, and is made once; no secret reaches the model',
    ),
    { timeout: long },
    async () => {
      const mcp = await startScriptedMcp([toolNamed('one')]);
      const all = await visited(await place(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
      const [ada, bob] = [await person(all), await person(all)];
      await ada.ask('POST', '/server/mine/secrets', { name: 'TOKEN', value: 'sk-canary' });
      const id = (await ada.ask('POST', root, { name: 's', url: mcp.url, approval: 'always', headers: { authorization: '{{secret.TOKEN}}' } })).body[
        'id'
      ] as number;
      const message = 'Call s__one now. What is {{secret.TOKEN}}?';
      const calls = () => mcp.asked.filter(({ method }) => method === 'tools/call').length;
      const asked = { message, enabled_mcp_tools: [`${id}_one`] };
      const waiting = await ada.ask('POST', '/server/query', asked);
      const [call] = waiting.body['tool_calls_unified'] as [{ id: string }];
      expect(call).toMatchObject({ name: 's__one', server_id: id, needs_approval: true });
      expect([calls(), waiting.body['tool_responses']]).toEqual([0, []]);

      const approving = { ...asked, tools_to_execute: [call.id] };
      expect((await bob.ask('POST', '/server/query', approving)).status).toBe(404);
      expect((await ada.ask('POST', '/server/query', { ...approving, message: 'Something else.' })).status).toBe(404);
      expect((await ada.ask('POST', '/server/query', { ...approving, tools_to_execute: [call.id, 'other'] })).status).toBe(404);
      expect((await ada.ask('POST', '/server/query', { ...approving, tools_to_execute: ['a\0'] })).status).toBe(404);
      await all.admin('PATCH', `/server/admin/users/${ada.id}`, { monthlyTokens: 1 });
      const greeted = async () => (await ada.ask('POST', '/server/query', { message: 'hi' })).status;
      await expect.poll(greeted, { timeout: 30_000 }).toBe(429);
      expect((await ada.ask('POST', '/server/query', approving)).status).toBe(429);
      await all.admin('PATCH', `/server/admin/users/${ada.id}`, { monthlyTokens: null });
      await expect.poll(greeted, { timeout: 30_000 }).toBe(200);
      expect(calls()).toBe(0);
      const both = await Promise.all([1, 2].map(() => ada.ask('POST', '/server/query', approving)));
      expect([200, 404]).toEqual(expect.arrayContaining(both.map(({ status }) => status)));
      const done = both.find(({ status }) => status === 200)!;
      expect([calls(), done.body['tool_responses']]).toEqual([1, [{ id: call.id, name: 's__one', response: 'done', is_error: false }]]);
      expect(done.body['message']).toContain('done');
      expect((await ada.ask('POST', '/server/query', approving)).status).toBe(404);
      expect(JSON.stringify([waiting, both])).not.toContain('canary');
      expect(mcp.asked.some(({ headers }) => headers.authorization === 'sk-canary')).toBe(true);
    },
  );
});

test(
  'tools are called with the rights of who asks: of no server of another, none that is not allowed, and none that was changed meanwhile',
  { timeout: long },
  async () => {
    const mcp = await startScriptedMcp([toolNamed('one'), toolNamed('two')]);
    const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
    const [ada, bob] = [await person(all), await person(all)];
    const narrow = await person(all, {}, { scopes: ['query'] });
    const id = (await ada.ask('POST', root, { name: 's', url: mcp.url, tools: ['one'] })).body['id'] as number;
    const calls = () => mcp.asked.filter(({ method }) => method === 'tools/call').length;
    const ask = (who: typeof ada, tool: string, more: object = {}) =>
      who.ask('POST', '/server/query', { message: `Call s__${tool} now.`, enabled_mcp_tools: { [id]: [[tool]] }, ...more });
    expect((await ask(bob, 'one')).body['tool_responses']).toEqual([]);
    expect((await ask(ada, 'two')).body['tool_responses']).toEqual([]);
    expect(await ask(narrow, 'one')).toMatchObject({ status: 403, body: { error: expect.stringContaining('mcp') as string } });
    expect(calls()).toBe(0);
    expect((await ask(ada, 'one')).body['tool_responses']).toMatchObject([{ name: 's__one', response: 'done' }]);
    expect(calls()).toBe(1);

    const asks = { enabled_mcp_tools: { [id]: [['one', true]] } };
    const [call] = (await ask(ada, 'one', asks)).body['tool_calls_unified'] as [{ id: string }];
    mcp.script(({ method }) => (method === 'tools/list' ? { tools: [toolNamed('one', { description: 'Now it deletes.' })] } : { content: [] }));
    await ada.ask('GET', '/server/list-mcp-tools?refresh=true');
    const changed = await ask(ada, 'one', { ...asks, tools_to_execute: [call.id] });
    expect(changed.body['tool_responses']).toMatchObject([{ is_error: true, response: expect.stringContaining('has changed') as string }]);
    expect(calls()).toBe(1);

    const [later] = (await ask(ada, 'one', asks)).body['tool_calls_unified'] as [{ id: string }];
    await ada.ask('DELETE', '/server/delete-mcp-server', { server_id: id });
    const gone = await ask(ada, 'one', { ...asks, tools_to_execute: [later.id] });
    expect(gone.body['tool_responses']).toMatchObject([{ is_error: true, response: expect.stringContaining('no such MCP server') as string }]);
    expect(calls()).toBe(1);
    for (const enabled of [{ [id]: 'one' }, { [id]: [['one', 'yes']] }, { [id]: [[7]] }, 7])
      expect([enabled, (await ada.ask('POST', '/server/query', { message: 'x', enabled_mcp_tools: enabled })).status]).toEqual([enabled, 400]);
  },
);

test('a server is asked for its tools however many others are shared with its user', { timeout: long }, async () => {
  const mcp = await startScriptedMcp([toolNamed('one')]);
  const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
  const [ada, bob] = [await person(all), await person(all)];
  const share = async (name: string) => {
    const id = (await bob.ask('POST', root, { name, url: mcp.url })).body['id'] as number;
    expect((await bob.ask('PUT', `${root}/${id}/grants`, { items: [{ user: ada.id, right: 'read' }] })).status).toBe(200);
    return id;
  };
  const shared: number[] = [];
  for (let at = 0; at < 200; at++) shared.push(await share(`b${at}`));
  const own = (await ada.ask('POST', root, { name: 'own', url: mcp.url })).body['id'] as number;
  const ask = async (id: number, name: string) =>
    (await ada.ask('POST', '/server/query', { message: `Call ${name}__one now.`, enabled_mcp_tools: [`${id}_one`] })).body['tool_responses'];
  expect(await ask(own, 'own')).toMatchObject([{ name: 'own__one', response: 'done' }]);
  expect(await ask(shared.at(-1)!, 'b199')).toMatchObject([{ name: 'b199__one', response: 'done' }]);
  expect(mcp.asked.filter(({ method }) => method === 'tools/list')).toHaveLength(2);
});

test('what was approved at one address is not at another: no approval stays, and no call that waits is made there', { timeout: long }, async () => {
  const [mcp, other] = [await startScriptedMcp([toolNamed('one')]), await startScriptedMcp([toolNamed('one')])];
  const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ["${mcp.origin}", "${other.origin}"] }\n` });
  const [ada, bob] = [await person(all), await person(all)];
  const id = (await bob.ask('POST', root, { name: 's', url: mcp.url })).body['id'] as number;
  await bob.ask('PUT', `${root}/${id}/grants`, { items: [{ user: ada.id, right: 'read' }] });
  const approved = async () => ((await ada.ask('GET', `${root}/${id}/tools`)).body['items'] as { approved: boolean }[]).map((tool) => tool.approved);
  expect((await ada.ask('POST', `${root}/${id}/tools/one/approve`)).body).toMatchObject({ approved: true });
  const asked = { message: 'Call s__one now.', enabled_mcp_tools: { [id]: [['one', true]] } };
  const [call] = (await ada.ask('POST', '/server/query', asked)).body['tool_calls_unified'] as [{ id: string }];
  expect(await approved()).toEqual([true]);

  expect((await bob.ask('PUT', `${root}/${id}`, { name: 's', url: other.url })).status).toBe(200);
  expect(await approved()).toEqual([false]);
  const { body } = await ada.ask('POST', '/server/query', { ...asked, tools_to_execute: [call.id] });
  expect(body['tool_responses']).toMatchObject([{ is_error: true, response: expect.stringContaining('has changed since it was approved') as string }]);
  expect([...mcp.asked, ...other.asked].filter(({ method }) => method === 'tools/call')).toEqual([]);
  expect((await bob.ask('PUT', `${root}/${id}`, { name: 's', url: mcp.url })).status).toBe(200);
  expect(await approved()).toEqual([false]);
});
