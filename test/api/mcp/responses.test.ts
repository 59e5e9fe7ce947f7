/* Tools of the type `mcp` of the responses interface, which the gateway calls. */
import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { anyPlace, onBothDatabases } from '../../support/databases.ts';
import { startScriptedMcp, toolNamed } from '../../support/fakes/mcp.ts';
import { ok, says, startUpstream, toolCalls } from '../../support/fakes/upstream/index.ts';
import { person, visited, type Person, type Visited } from '../native/visitors.ts';

const long = 120_000;
const servers = '/server/mine/mcp-servers';
const path = '/server/chatcompat/v1/responses';
const clientOf = ({ server }: Visited, { key }: Pick<Person, 'key'>) => new OpenAI({ apiKey: key, baseURL: `${server.url}/v1`, maxRetries: 0 });
const said = (method: string, { asked }: Awaited<ReturnType<typeof startScriptedMcp>>) => asked.filter((one) => one.method === method);

async function begun(tools: readonly object[], yaml = '', key: object = {}) {
  const mcp = await startScriptedMcp(tools);
  const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n${yaml.replace('MCP', mcp.url)}` });
  return { mcp, all, ada: await person(all, {}, key) };
}

const call = 'Call s__one with x "heron".';
const never = { type: 'mcp', server_label: 's', require_approval: 'never' } as const;

onBothDatabases('mcp tools of responses', ({ place }) => {
  test('a server of the caller is listed, called and gone on with, whole and streamed', { timeout: long }, async () => {
    const mcp = await startScriptedMcp([toolNamed('one'), toolNamed('two')]);
    const all = await visited(await place(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
    const ada = await person(all);
    await ada.ask('POST', servers, { name: 's', url: mcp.url });
    const client = clientOf(all, ada);
    const tools = [{ ...never, allowed_tools: ['one'] }];
    const first = await client.responses.create({ model: 'built-in', input: call, tools });
    expect(first.output).toMatchObject([
      { type: 'mcp_list_tools', server_label: 's', tools: [{ name: 'one' }] },
      { type: 'mcp_call', status: 'completed', server_label: 's', name: 'one', output: 'done', error: null, approval_request_id: null },
      { type: 'message' },
    ]);
    expect([first.output_text, said('tools/call', mcp).length]).toEqual([expect.stringContaining('done'), 1]);
    const second = await client.responses.create({ model: 'built-in', input: call, tools, previous_response_id: first.id });
    expect(second.output.map(({ type }) => type)).toEqual(['mcp_call', 'message']); // the list is in the conversation
    const shown = await client.responses.inputItems.list(second.id);
    expect(shown.data.some((item) => item.type === 'mcp_call')).toBe(true);

    const events: string[] = [];
    const stream = client.responses.stream({ model: 'built-in', input: call, tools, store: false });
    for await (const { type } of stream) events.push(type);
    const whole = await stream.finalResponse();
    expect(events).toEqual(
      expect.arrayContaining([
        ...['in_progress', 'completed'].map((state) => `response.mcp_list_tools.${state}`),
        ...['in_progress', 'completed'].map((state) => `response.mcp_call.${state}`),
        ...['delta', 'done'].map((state) => `response.mcp_call_arguments.${state}`),
      ]),
    );
    expect(whole.output.map(({ type }) => type)).toEqual(['mcp_list_tools', 'mcp_call', 'message']);
    const again = await client.responses.create({ model: 'built-in', store: false, tools, input: [{ role: 'user', content: call }, ...(whole.output as never[]), { role: 'user', content: 'Say exactly: bye' }] }); // prettier-ignore
    expect([again.output_text, again.output.map(({ type }) => type)]).toEqual(['bye', ['message']]);
  });

  test('a call waits for its approval, which goes on with the stored response or with its items, and is made once', { timeout: long }, async () => {
    const mcp = await startScriptedMcp([toolNamed('one')]);
    const all = await visited(await place(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
    const ada = await person(all);
    await ada.ask('POST', servers, { name: 's', url: mcp.url });
    const client = clientOf(all, ada);
    const tools = [{ type: 'mcp', server_label: 's' } as const];
    const calls = () => said('tools/call', mcp).length;
    const asked = await client.responses.create({ model: 'built-in', input: call, tools });
    const request = asked.output.find((item) => item.type === 'mcp_approval_request')!;
    expect(request).toMatchObject({ server_label: 's', name: 'one', arguments: expect.any(String) as string });
    expect([calls(), asked.output.map(({ type }) => type)]).toEqual([0, ['mcp_list_tools', 'mcp_approval_request']]);
    const answer = (approve: boolean) => ({ type: 'mcp_approval_response', approval_request_id: request.id, approve }) as const;

    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { monthlyTokens: 1 });
    const approving = { model: 'built-in', input: [answer(true)], tools, previous_response_id: asked.id };
    await expect.poll(async () => (await ada.ask('POST', path, approving)).status, { timeout: 30_000 }).toBe(429);
    expect(calls()).toBe(0);
    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { monthlyTokens: null });
    const done = async () => (await ada.ask('POST', path, approving)).body;
    await expect.poll(async () => (await done())['status'], { timeout: 30_000 }).toBe('completed');
    expect(calls()).toBe(1);

    const denied = await client.responses.create({ model: 'built-in', input: [answer(false)], tools, previous_response_id: asked.id });
    expect([calls(), denied.output.map(({ type }) => type)]).toEqual([1, ['message']]);
    const unanswered = await client.responses.create({ model: 'built-in', input: 'Say exactly: hello', tools, previous_response_id: asked.id });
    expect([calls(), unanswered.output_text]).toEqual([1, 'hello']);
    const approved = await client.responses.create({ model: 'built-in', store: false, tools, input: [{ role: 'user', content: call }, ...(asked.output as never[]), answer(true)] }); // prettier-ignore
    expect(approved.output).toMatchObject([{ type: 'mcp_call', approval_request_id: request.id, output: 'done' }, { type: 'message' }]);
    expect(calls()).toBe(1); // what was approved once is made once
    const stale = { model: 'built-in', input: [answer(true)], tools };
    expect((await ada.ask('POST', path, stale)).status).toBe(400); // no such request in the conversation
    mcp.script(({ method }) => (method === 'tools/list' ? { tools: [{ ...toolNamed('one'), description: 'Now it deletes everything.' }] } : { content: [] }));
    await ada.ask('GET', `${servers}/${((await ada.ask('GET', servers)).body['items'] as { id: number }[])[0]!.id}/tools`);
    const changed = await client.responses.create({ model: 'built-in', input: [answer(true)], tools, previous_response_id: asked.id });
    expect(changed.output[0]).toMatchObject({ type: 'mcp_call', status: 'failed', error: expect.stringContaining('has changed') as string });
    expect(calls()).toBe(1);
  });
});

test('a choice of a server means its tools, by the names that the model sees, and what is not allowed stays so', { timeout: long }, async () => {
  const mcp = await startScriptedMcp([toolNamed('one'), toolNamed('two')]);
  const upstream = await startUpstream();
  const provider = `providers: { up: { dialect: openai-responses, baseUrl: "${upstream.url}/v1" } }\nmodels: { m: { targets: [{ provider: up }] } }\n`;
  const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n${provider}` });
  const ada = await person(all);
  await ada.ask('POST', servers, { name: 's', url: mcp.url });
  const look = { type: 'function', name: 'look', parameters: { type: 'object', properties: {} }, strict: false };
  const functions = (...names: readonly string[]) => names.map((name) => ({ type: 'function', name }));
  const allowed = (mode: string, ...names: readonly string[]) => ({ type: 'allowed_tools', mode, tools: functions(...names) });
  const ofServer = { type: 'mcp', server_label: 's' };
  const asked = async (tool_choice: object) => {
    upstream.reset();
    upstream.script(toolCalls([{ name: 's__one', json: '{}' }]), ok());
    const { status, body } = await ada.ask('POST', path, { model: 'm', input: 'Look.', tools: [never, look], tool_choice });
    const sent = upstream.requests.map(({ json }) => (json as { tool_choice?: unknown }).tool_choice);
    return status === 200 ? sent : (body['error'] as { message: string }).message;
  };
  expect(await asked(ofServer)).toEqual([allowed('required', 's__one', 's__two'), undefined]);
  expect(await asked({ ...ofServer, name: 'one' })).toEqual([functions('s__one')[0], undefined]);
  const both = { type: 'allowed_tools', mode: 'auto', tools: [...functions('look'), { ...ofServer, name: 'one' }] };
  expect(await asked(both)).toEqual([allowed('auto', 'look', 's__one'), allowed('auto', 'look', 's__one')]);
  const oneAlone = { type: 'allowed_tools', mode: 'required', tools: Array.from({ length: 1024 }, () => ({ ...ofServer, name: 'one' })) };
  expect(await asked(oneAlone)).toEqual([functions('s__one')[0], allowed('auto', 's__one')]);
  expect(await asked({ ...oneAlone, tools: [...oneAlone.tools, ofServer] })).toBe('tool_choice.tools must be an array of 1 to 1024 tools.');
  expect(await asked({ ...ofServer, name: 'three' })).toBe('tool_choice names a tool that its MCP server does not have here.');
  expect(await asked({ ...ofServer, server_label: 'other' })).toBe('tool_choice.server_label names an MCP server that is not among the tools.');
  mcp.script(({ method }) => (method === 'tools/list' ? { tools: 'none' } : undefined));
  await ada.ask('GET', `${servers}/${((await ada.ask('GET', servers)).body['items'] as { id: number }[])[0]!.id}/tools`);
  expect(await asked(ofServer)).toMatch(/^tool_choice (?:wants the MCP server s, which gave no tools|names an MCP server that has no tools here)/);
  await upstream.close();
});

test('max_tool_calls limits the calls that the gateway makes', { timeout: long }, async () => {
  const mcp = await startScriptedMcp([toolNamed('one')]);
  const upstream = await startUpstream();
  const wires = `up: { dialect: openai-responses, baseUrl: "${upstream.url}/v1" }, claude: { dialect: anthropic-messages, baseUrl: "${upstream.url}", apiKeys: [k] }`;
  const provider = `providers: { ${wires} }\nmodels: { m: { targets: [{ provider: up }] }, claude: { targets: [{ provider: claude }] } }\n`;
  const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n${provider}` });
  const ada = await person(all);
  await ada.ask('POST', servers, { name: 's', url: mcp.url });
  const one = { name: 's__one', json: '{}' };
  upstream.script(toolCalls([one, one]), toolCalls([one]), ok());
  const { body } = await ada.ask('POST', path, { model: 'm', input: 'Look.', tools: [never], max_tool_calls: 1 });
  expect((body['output'] as readonly { type: string }[]).map(({ type }) => type)).toEqual(['mcp_list_tools', 'mcp_call', 'message']);
  expect([said('tools/call', mcp).length, upstream.requests.length]).toEqual([1, 3]);
  const interpreter = { type: 'code_interpreter', container: { type: 'auto' } };
  upstream.reset();
  upstream.script(toolCalls([one]), toolCalls([one]), ok());
  const own = { model: 'm', input: 'Look.', tools: [never, interpreter], max_tool_calls: 2, tool_choice: { type: 'code_interpreter' } };
  expect((await ada.ask('POST', path, own)).status).toBe(200);
  const sent = upstream.requests.map(({ json }) => json as { max_tool_calls?: number; tools: readonly { type: string }[]; tool_choice?: object });
  expect(sent.map(({ max_tool_calls: most, tools }) => [most, tools.some(({ type }) => type === interpreter.type)])).toEqual([
    [2, true],
    [1, true],
    [undefined, false],
  ]);
  expect(sent.map(({ tool_choice: choice }) => choice)).toEqual([{ type: 'code_interpreter' }, undefined, undefined]);
  upstream.reset();
  const before = said('tools/call', mcp).length;
  const called = { type: 'tool_use', id: 'toolu_1', name: 's__one', input: {} };
  const searched = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'herons' } };
  const answer = (content: readonly object[]) =>
    says(
      /messages/,
      'application/json',
      JSON.stringify({
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content,
        stop_reason: 'tool_use',
        usage: { input_tokens: 1, output_tokens: 1 },
      }),
    );
  upstream.script(answer([searched, { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] }, called]), answer([called]), ok());
  expect((await ada.ask('POST', path, { ...own, model: 'claude', tools: [never, { type: 'web_search' }], tool_choice: 'auto' })).status).toBe(200);
  expect(said('tools/call', mcp).length - before).toBe(1);
  await upstream.close();
});

test('a tool that is meant by both lists of require_approval waits for its approval', { timeout: long }, async () => {
  const { mcp, all, ada } = await begun([toolNamed('one'), toolNamed('look', { annotations: { readOnlyHint: true } })]);
  await ada.ask('POST', servers, { name: 's', url: mcp.url });
  const client = clientOf(all, ada);
  const typesOf = async (require_approval: object, input = call) => {
    const tools = [{ type: 'mcp', server_label: 's', require_approval } as const];
    return (await client.responses.create({ model: 'built-in', input, tools, store: false })).output.map(({ type }) => type).slice(1);
  };
  expect(await typesOf({ always: { tool_names: ['one'] }, never: { tool_names: ['one', 'look'] } })).toEqual(['mcp_approval_request']);
  expect(await typesOf({ always: { read_only: true }, never: { tool_names: ['one', 'look'] } }, 'Call s__look now.')).toEqual(['mcp_approval_request']);
  expect(await typesOf({ always: { read_only: true }, never: { tool_names: ['one'] } })).toEqual(['mcp_call', 'message']);
});

test('a run in the background calls tools as any other', { timeout: long }, async () => {
  const { mcp, all, ada } = await begun([toolNamed('one')]);
  await ada.ask('POST', servers, { name: 's', url: mcp.url });
  const client = clientOf(all, ada);
  const { id } = await client.responses.create({ model: 'built-in', input: call, tools: [never], background: true });
  await expect.poll(async () => (await client.responses.retrieve(id)).status, { timeout: 30_000 }).toBe('completed');
  expect((await client.responses.retrieve(id)).output.map(({ type }) => type)).toEqual(['mcp_list_tools', 'mcp_call', 'message']);
});

test(
  'an address is called only if the operator lists it, any other label only if it is the caller’s, and no credential of the client goes along',
  { timeout: long },
  async () => {
    const { mcp, ada, all } = await begun([toolNamed('one')], 'mcp: { whitelist: [{ name: listed, url: "MCP" }] }\n');
    const bob = await person(all);
    await bob.ask('POST', servers, { name: 'bobs', url: mcp.url });
    const ask = (tool: object, message = 'Call listed__one with x "heron".', who = ada) =>
      who.ask('POST', path, { model: 'built-in', input: message, tools: [{ type: 'mcp', require_approval: 'never', ...tool }] });
    const listed = await ask({ server_label: 'any', server_url: mcp.url });
    expect(listed.body['output']).toMatchObject([
      { type: 'mcp_list_tools', server_label: 'any' },
      { type: 'mcp_call', server_label: 'any', output: 'done' },
      {},
    ]);
    expect((await ada.ask('GET', servers)).body['items']).toEqual([]); // nobody finds it in a list
    const asked = mcp.asked.length;
    const elsewhere = await ask({ server_label: 'any', server_url: `${mcp.origin}/other` });
    expect([elsewhere.status, elsewhere.headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringContaining('tools: ')]);
    for (const label of ['bobs', 'nobody', '1']) {
      const { status, body } = await ask({ server_label: label });
      expect([label, status, body['error']]).toMatchObject([label, 404, { param: 'tools[0].server_label' }]);
    }
    const secret = await ask({ server_label: 'any', server_url: mcp.url, authorization: 'sk-canary' });
    expect([secret.status, secret.body['error']]).toMatchObject([400, { param: 'tools[0].authorization' }]);
    expect((await ask({ server_label: 'any', server_url: mcp.url, allowed_tools: 5 })).status).toBe(400);
    expect((await ask({ server_label: 'any', server_url: mcp.url, require_approval: 'sometimes' })).status).toBe(400);
    expect(mcp.asked).toHaveLength(asked);
    const narrow = await person(all, {}, { scopes: ['passthrough'] });
    expect((await ask({ server_label: 'any', server_url: mcp.url }, 'hi', narrow)).status).toBe(403);
  },
);

test('a server that fails is an item with its error, calls that fail are items too, and calls for the client are the client’s', { timeout: long }, async () => {
  const { mcp, all, ada } = await begun([toolNamed('one')]);
  const id = (await ada.ask('POST', servers, { name: 's', url: mcp.url })).body['id'] as number;
  mcp.script(({ method }) => (method === 'tools/list' ? { tools: [toolNamed('one')] } : { content: [{ type: 'text', text: 'No heron.' }], isError: true }));
  const client = clientOf(all, ada);
  const failed = await client.responses.create({ model: 'built-in', input: call, tools: [{ ...never, server_label: String(id) }] });
  expect(failed.output[1]).toMatchObject({ type: 'mcp_call', status: 'failed', error: 'No heron.', output: null });
  const own = await client.responses.create({ model: 'built-in', input: 'Call mine with x "y".', tools: [never, { type: 'function', name: 'mine', strict: false, parameters: { type: 'object', properties: { x: { type: 'string' } } } }] }); // prettier-ignore
  expect(own.output.map(({ type }) => type)).toEqual(['mcp_list_tools', 'function_call']);
  mcp.script((_asked, response) => void response.writeHead(500).end());
  await ada.ask('GET', `${servers}/${id}/tools`);
  const none = await client.responses.create({ model: 'built-in', input: 'Say exactly: hello', tools: [never] });
  expect(none.output).toMatchObject([{ type: 'mcp_list_tools', tools: [], error: expect.stringContaining('500') as string }, { type: 'message' }]);
});

test('a provider of the same interface is not told of what the gateway calls, and is told of every other server', { timeout: long }, async () => {
  const upstream = await startUpstream();
  const mcp = await startScriptedMcp([toolNamed('one')]);
  const all = await visited(await anyPlace(), { upstream: upstream.url, yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
  const ada = await person(all);
  await ada.ask('POST', servers, { name: 's', url: mcp.url });
  await ada.ask('POST', path, { model: 'gpt-4o-mini', input: 'hello', tools: [never] });
  const sent = JSON.stringify(upstream.requests);
  expect(sent).toContain('s__one');
  expect(sent).not.toContain('server_label');
  await upstream.close();
});
