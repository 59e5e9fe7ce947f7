/* The gateway as a server of the Model Context Protocol, asked by the official client. */
import { request } from 'node:http';
import { expect, test } from 'vitest';
import { anyPlace, onBothDatabases } from '../../support/databases.ts';
import { startEverything, startScriptedMcp, toolNamed } from '../../support/fakes/mcp.ts';
import { proves } from '../../support/proves.ts';
import { person, tokenOf, visited, type Person, type Visited } from '../native/visitors.ts';
import { mcpClient, saidBy } from './client.ts';

const long = 120_000;
const servers = '/server/mine/mcp-servers';

/** Approves a tool as it is now. */
const approve = async ({ ask }: Person, server: number, tool: string) =>
  expect((await ask('POST', `${servers}/${server}/tools/${tool}/approve`)).status).toBe(200);

/** A dataset with one file. @returns ids and the full name */
async function fileOf({ ask, key }: Person, { server }: Visited, text: string) {
  const { body } = await ask('POST', '/server/mine/datasets', { name: 'Reports of ours' });
  const { id: dataset, dataset: name } = body as { id: number; dataset: string };
  const path = `/server/mine/datasets/${dataset}/files`;
  const put = await fetch(`${server.url}${path}?filename=heron.txt`, { method: 'POST', headers: { 'x-access-tokens': key, 'content-type': 'text/plain' }, body: text }); // prettier-ignore
  const { items } = (await put.json()) as { items: { id: number }[] };
  const file = items[0]!.id;
  await expect.poll(async () => (await ask('GET', `${path}/${file}`)).body['state'], { timeout: 30_000 }).toBe('done');
  return { dataset, file, name, uri: `dragoman://datasets/${dataset}/files/${file}` };
}

onBothDatabases('/server/mcp', ({ place }) => {
  test.each(['auto', 'legacy'] as const)(
    'a client of the revision %s searches datasets, runs plugins, calls tools of MCP servers, and reads personas and files',
    { timeout: long },
    async (mode) => {
      const everything = await startEverything();
      const all = await visited(await place(), { yaml: `outbound: { allow: ["${new URL(everything).origin}"] }\n` });
      const ada = await person(all);
      const { uri, name } = await fileOf(ada, all, 'The heron of the north lake weighs forty-two stones.');
      await ada.ask('POST', servers, { name: 'all', url: everything });
      await ada.ask('POST', '/server/mine/personas', { name: 'Pirate', description: 'Arr.', prompt: 'Speak like a pirate.' });
      await ada.ask('POST', '/server/mine/plugins', { plugin_name: 'shout', title: 'Shout', description: 'Shouts.', kind: 'prompt', template: 'Say exactly: {{what}}!', fields: { type: 'object', properties: { what: { type: 'string' } }, required: ['what'] } }); // prettier-ignore
      const client = await mcpClient(all.server, ada.key, mode);

      const { tools } = await client.listTools();
      const named = new Map(tools.map((tool) => [tool.name, tool]));
      expect([...named.keys()]).toEqual(expect.arrayContaining(['search', 'plugin__summarise', 'plugin__shout', 'all__echo']));
      expect(named.get('plugin__shout')).toMatchObject({ title: 'Shout', inputSchema: { type: 'object', required: ['what'] } });
      expect(named.get('search')).toMatchObject({ annotations: { readOnlyHint: true } });

      const found = await client.callTool({ name: 'search', arguments: { question: 'heron north lake' } });
      expect(saidBy(found)).toContain('forty-two stones');
      expect(found.structuredContent).toMatchObject({ passages: [{ dataset: name, filename: 'heron.txt' }] });
      expect(saidBy(await client.callTool({ name: 'plugin__shout', arguments: { what: 'ahoy' } }))).toContain('ahoy');
      expect(saidBy(await client.callTool({ name: 'all__echo', arguments: { message: 'hello there' } }))).toMatch(/^Echo: hello there/);

      const { prompts } = await client.listPrompts();
      expect(prompts).toEqual(expect.arrayContaining([expect.objectContaining({ name: 'Pirate', description: 'Arr.' })]));
      expect((await client.getPrompt({ name: 'Pirate' })).messages).toEqual([{ role: 'user', content: { type: 'text', text: 'Speak like a pirate.' } }]);
      expect((await client.listResources()).resources).toMatchObject([{ uri, name: 'heron.txt', mimeType: 'text/plain' }]);
      expect((await client.readResource({ uri })).contents).toMatchObject([
        { uri, mimeType: 'text/plain', text: 'The heron of the north lake weighs forty-two stones.' },
      ]);
    },
  );

  test(
    'an agent is a tool, each call of which is a run; another’s is none, and neither is one for a key without the scope of agents',
    { timeout: long },
    async () => {
      const all = await visited(await place());
      const [ada, bob] = [await person(all), await person(all)];
      const variables = { type: 'object', properties: { tone: { enum: ['kind', 'dry'] } } };
      const agent = { name: 'Greeter', description: 'Greets.', mode: 'single', instructions: 'Be kind.', model: 'built-in', variables };
      const id = (await ada.ask('POST', '/server/mine/agents', agent)).body['id'] as number;
      const name = `agent__${id}`;
      const client = await mcpClient(all.server, ada.key);
      const { tools } = await client.listTools();
      expect(tools.find((tool) => tool.name === name)).toMatchObject({ title: 'Greeter', description: 'Greets.', inputSchema: { required: ['message'] } });
      const answer = await client.callTool({ name, arguments: { message: 'Say exactly: ahoy', variables: { tone: 'dry' } } });
      expect([answer.isError ?? false, saidBy(answer)]).toEqual([false, 'ahoy']);
      expect((await ada.ask('GET', '/server/mine/runs')).body['items']).toMatchObject([{ agentId: id, state: 'completed', message: 'ahoy' }]);
      for (const [args, said] of [
        [{ message: 'hi', variables: { tone: 'loud' } }, 'variables.tone'],
        [{ message: '' }, 'message'],
        [{ message: 'hi', model: 'gpt-4o' }, 'model'],
      ] as const)
        expect([await client.callTool({ name, arguments: args }).then((one) => [one.isError, saidBy(one)])]).toEqual([[true, expect.stringContaining(said)]]);
      const others = await mcpClient(all.server, bob.key);
      await expect(others.callTool({ name, arguments: { message: 'hi' } })).rejects.toThrow('no such tool');
      const scoped = (await ada.ask('POST', '/server/mine/keys', { name: 'mcp', scopes: ['mcp'] })).body['key'] as string;
      const narrow = await mcpClient(all.server, scoped);
      expect((await narrow.listTools()).tools.filter((tool) => tool.name.startsWith('agent__'))).toEqual([]);
      await expect(narrow.callTool({ name, arguments: { message: 'hi' } })).rejects.toThrow('no such tool');
      expect((await ada.ask('GET', '/server/mine/runs')).body['items']).toHaveLength(1);
    },
  );

  test('an agent is offered to those who can run it, with the variables that it requires', { timeout: long }, async () => {
    const all = await visited(await place());
    const [ada, bob] = [await person(all), await person(all)];
    const variables = { type: 'object', properties: { tone: { enum: ['kind', 'dry'] } }, required: ['tone'] };
    const agent = { name: 'Greeter', mode: 'single', instructions: 'Be kind.', model: 'built-in', variables };
    const id = (await ada.ask('POST', '/server/mine/agents', agent)).body['id'] as number;
    await ada.ask('PUT', `/server/mine/agents/${id}/grants`, { items: [{ user: bob.id, right: 'read' }] });
    const schemas = async (key: string) => {
      const { tools } = await (await mcpClient(all.server, key)).listTools();
      return tools.filter(({ name }) => name === `agent__${id}`).map(({ inputSchema }) => inputSchema.required);
    };
    expect(await schemas(ada.key)).toEqual([['message', 'variables']]);
    expect(await schemas(bob.key)).toEqual([]);
    await ada.ask('POST', `/server/mine/agents/${id}/publish`);
    expect(await schemas(bob.key)).toEqual([['message', 'variables']]);
  });

  test('what the variables of an agent refer to within their schema is found from the root of the schema that is offered', { timeout: long }, async () => {
    const all = await visited(await place());
    const ada = await person(all);
    const spot = { type: 'object', properties: { name: { type: 'string' }, within: { $ref: '#/$defs/place' } } };
    const variables = { type: 'object', properties: { from: { $ref: '#/$defs/place' }, to: { $ref: '#/properties/from' } }, $defs: { place: spot } };
    const agent = { name: 'Guide', mode: 'single', instructions: 'Guide.', model: 'built-in', variables };
    const id = (await ada.ask('POST', '/server/mine/agents', agent)).body['id'] as number;
    const { tools } = await (await mcpClient(all.server, ada.key)).listTools();
    const { properties } = tools.find(({ name }) => name === `agent__${id}`)!.inputSchema;
    expect(properties?.['variables']).toMatchObject({
      properties: { from: { $ref: '#/properties/variables/$defs/place' }, to: { $ref: '#/properties/variables/properties/from' } },
      $defs: { place: { properties: { within: { $ref: '#/properties/variables/$defs/place' } } } },
    });
    expect((await ada.ask('GET', `/server/mine/agents/${id}`)).body['variables']).toEqual(variables);
  });

  test('what is another’s is as if it were not there, and what was shared is', { timeout: long }, async () => {
    const mcp = await startScriptedMcp([toolNamed('one')]);
    const all = await visited(await place(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
    const [ada, bob] = [await person(all), await person(all)];
    const { uri, dataset, name } = await fileOf(ada, all, 'The secret word is quagga.');
    const server = (await ada.ask('POST', servers, { name: 's', url: mcp.url })).body['id'] as number;
    const persona = (await ada.ask('POST', '/server/mine/personas', { name: 'Mine', prompt: 'Quagga.' })).body['id'] as number;
    const plugin = (await ada.ask('POST', '/server/mine/plugins', { plugin_name: 'mine', title: 'T', kind: 'prompt', template: 'Say exactly: quagga' })).body['id'] as number; // prettier-ignore
    const client = await mcpClient(all.server, bob.key);
    const seen = async () => {
      const tried = await Promise.allSettled([
        client.callTool({ name: 's__one' }),
        client.callTool({ name: 'plugin__mine' }),
        client.getPrompt({ name: 'Mine' }),
        client.readResource({ uri }),
      ]);
      const lists = await Promise.all([client.listTools(), client.listPrompts(), client.listResources()]);
      const search = saidBy(await client.callTool({ name: 'search', arguments: { question: 'secret word quagga', datasets: [name] } }));
      return { tried: tried.map(({ status }) => status), text: JSON.stringify([lists, tried]), search };
    };
    const before = await seen();
    expect(before.tried).toEqual(['rejected', 'rejected', 'rejected', 'rejected']);
    expect(before.text).not.toMatch(/quagga|s__one|plugin__mine|heron/i);
    expect(before.search).not.toContain('quagga');
    const unknown = client.callTool({ name: 'plugin__never' }).catch((error: unknown) => String(error));
    expect(await client.callTool({ name: 'plugin__mine' }).catch((error: unknown) => String(error))).toBe(await unknown);
    expect(mcp.asked).toEqual([]);
    const items = [{ user: bob.id, right: 'read' }];
    for (const path of [`${servers}/${server}`, `/server/mine/personas/${persona}`, `/server/mine/plugins/${plugin}`, `/server/mine/datasets/${dataset}`])
      expect((await ada.ask('PUT', `${path}/grants`, { items })).status).toBe(200);
    await approve(bob, server, 'one');
    const after = await seen();
    expect(after.tried).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'fulfilled']);
    expect(after.search).toContain('quagga');
    await ada.ask('DELETE', `${servers}/${server}`);
    const asked = mcp.asked.length;
    await expect(client.callTool({ name: 's__one' })).rejects.toThrow('no such tool');
    expect(mcp.asked).toHaveLength(asked);
  });
});

test(
  proves('P-07', 'another Host or Origin than ours is refused at /server/mcp, and pages whose origin the settings name are not'),
  { timeout: long },
  async () => {
    const { server } = await visited(await anyPlace(), {
      yaml: 'publicUrl: https://gateway.example.org\ncors: { origins: ["https://console.example.org"] }\n',
    });
    const { host, hostname, port } = new URL(server.url);
    const status = (headers: Record<string, string>) =>
      new Promise<number | undefined>((resolve, reject) => {
        const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
        const asked = request({ hostname, port, path: '/server/mcp', method: 'POST', headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers } }, (answer) => { answer.resume(); resolve(answer.statusCode); }); // prettier-ignore
        asked.on('error', reject).end(body);
      });
    const own = [
      { host },
      { host: `localhost:${port}` },
      { host: 'gateway.example.org' },
      { host, origin: `http://${host}` },
      { host, origin: 'https://gateway.example.org' },
      { host, origin: 'https://console.example.org' },
    ];
    for (const headers of own) expect([headers, await status(headers)]).toEqual([headers, 200]);
    const others = [
      { host: 'evil.example' },
      { host: `evil.example:${port}` },
      { host: `localhost.evil.example:${port}` },
      { host: `gateway.example.org.evil.example` },
      { host, origin: 'http://evil.example' },
      { host, origin: `http://localhost:${Number(port) + 1}` },
      { host, origin: 'null' },
      { host, origin: 'https://gateway.example.org.evil.example' },
      { host: 'evil.example', origin: 'http://evil.example' },
    ];
    for (const headers of others) expect([headers, await status(headers)]).toEqual([headers, 403]);
  },
);

test('a key has its tools alone, and needs the scope mcp; a token is as good as its key', { timeout: long }, async () => {
  const mcp = await startScriptedMcp([toolNamed('one'), toolNamed('two')]);
  const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
  const ada = await person(all);
  const { uri } = await fileOf(ada, all, 'A text.');
  const server = (await ada.ask('POST', servers, { name: 's', url: mcp.url })).body['id'] as number;
  await approve(ada, server, 'one');
  const keyWith = async (rights: object) => (await ada.ask('POST', '/server/mine/keys', { name: 'k', ...rights })).body['key'] as string;
  const narrow = await keyWith({ mcpTools: ['s__one', 'plugin__rewrite'] });
  const client = await mcpClient(all.server, narrow);
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['plugin__rewrite', 's__one']);
  expect(saidBy(await client.callTool({ name: 's__one' }))).toBe('done');
  const refused = ['s__two', 'search', 'plugin__summarise'].map((name) => client.callTool({ name }));
  expect((await Promise.allSettled(refused)).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  expect([(await client.listPrompts()).prompts, (await client.listResources()).resources]).toEqual([[], []]);
  await expect(client.readResource({ uri })).rejects.toThrow('no such resource');
  expect(mcp.asked.filter(({ method }) => method === 'tools/call').map(({ params }) => params['name'])).toEqual(['one']);
  const asNarrow = all.as(narrow);
  expect((await asNarrow('POST', '/server/mine/keys', { name: 'wider' })).status).toBe(403);
  expect((await asNarrow('POST', `${servers}/${server}/test`, { tool: 'two' })).status).toBe(403);

  await expect(mcpClient(all.server, await keyWith({ scopes: ['query', 'plugins'] }))).rejects.toThrow();
  const token = await tokenOf(all, ada);
  expect((await (await mcpClient(all.server, token)).listTools()).tools.map(({ name }) => name)).toContain('s__two');
  await expect(mcpClient(all.server, 'wrong')).rejects.toThrow();
});

test('a key with scopes has what they cover elsewhere: mcp alone is that of the tools of MCP servers', { timeout: long }, async () => {
  const mcp = await startScriptedMcp([toolNamed('one')]);
  const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
  const ada = await person(all);
  const { uri } = await fileOf(ada, all, 'A text.');
  const server = (await ada.ask('POST', servers, { name: 's', url: mcp.url })).body['id'] as number;
  await approve(ada, server, 'one');
  await ada.ask('POST', '/server/mine/personas', { name: 'Pirate', prompt: 'Speak like a pirate.' });
  const seen = async (scopes: readonly string[]) => {
    const key = (await ada.ask('POST', '/server/mine/keys', { name: 'k', scopes })).body['key'] as string;
    const client = await mcpClient(all.server, key);
    const tried = await Promise.allSettled([
      client.callTool({ name: 's__one' }),
      client.callTool({ name: 'search', arguments: { question: 'text' } }),
      client.callTool({ name: 'plugin__rewrite', arguments: { text: 'Hello.' } }),
      client.getPrompt({ name: 'Pirate' }),
      client.readResource({ uri }),
    ]);
    const { tools } = await client.listTools();
    const { prompts } = await client.listPrompts();
    const { resources } = await client.listResources();
    const lists = [tools.some(({ name }) => name === 's__one'), tools.some(({ name }) => name === 'search'), tools.some(({ name }) => name.startsWith('plugin__')), prompts.length > 0, resources.length > 0]; // prettier-ignore
    expect(tried.map(({ status }) => status === 'fulfilled')).toEqual(lists);
    return lists;
  };
  expect(await seen(['mcp'])).toEqual([true, false, false, false, false]);
  expect(await seen(['mcp', 'datasets'])).toEqual([true, true, false, false, true]);
  expect(await seen(['mcp', 'plugins'])).toEqual([true, false, true, false, false]);
  expect(await seen(['mcp', 'query'])).toEqual([true, true, false, true, true]);
});

test(
  'a tool that is to be approved is called when it is, as it was then, and one whose every call is asked for is not offered',
  { timeout: long },
  async () => {
    const mcp = await startScriptedMcp([toolNamed('one'), toolNamed('reads', { annotations: { readOnlyHint: true } })]);
    const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
    const ada = await person(all);
    const server = (await ada.ask('POST', servers, { name: 's', url: mcp.url })).body['id'] as number;
    const client = await mcpClient(all.server, ada.key);
    const calls = () => mcp.asked.filter(({ method }) => method === 'tools/call').length;
    const call = async (name: string) => {
      const answer = await client.callTool({ name });
      return [answer.isError ?? false, saidBy(answer), calls()];
    };
    const unapproved = expect.stringContaining(`POST ${servers}/${server}/tools/one/approve`) as string;
    expect([await call('s__one'), await call('s__reads')]).toEqual([[true, unapproved, 0], [false, 'done', 1]]); // prettier-ignore
    await approve(ada, server, 'one');
    expect(await call('s__one')).toEqual([false, 'done', 2]);
    mcp.script(({ method }) =>
      method === 'tools/list' ? { tools: [toolNamed('one', { description: 'Now it deletes.' })] } : { content: [{ type: 'text', text: 'done' }] },
    );
    await ada.ask('GET', '/server/list-mcp-tools?refresh=true');
    expect(await call('s__one')).toEqual([true, unapproved, 2]);
    await approve(ada, server, 'one');
    expect((await ada.ask('PUT', `${servers}/${server}`, { name: 's', url: mcp.url, approval: 'always' })).status).toBe(200);
    expect(await call('s__one')).toEqual([true, expect.stringContaining('Each call of this tool'), 2]);
    expect((await client.listTools()).tools.filter(({ name }) => name.startsWith('s__'))).toEqual([]);
  },
);

test(
  'of servers of one name the first has the plain names of its tools, whichever of them answer: the own, then those that were given by name',
  { timeout: long },
  async () => {
    const reads = [toolNamed('one', { annotations: { readOnlyHint: true } })];
    const all3 = [await startScriptedMcp(reads), await startScriptedMcp(reads), await startScriptedMcp(reads)];
    const [own, given, everybodys] = all3 as [(typeof all3)[0], (typeof all3)[0], (typeof all3)[0]];
    const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ${JSON.stringify(all3.map(({ origin }) => origin))} }\n` });
    const [ada, bob, eve] = [await person(all), await person(all), await person(all)];
    const serverOf = async (who: Person, url: string) => (await who.ask('POST', servers, { name: 's', url })).body['id'] as number;
    const everybody = { items: [{ everybody: true, right: 'read' }] };
    const grants = `${servers}/${await serverOf(eve, everybodys.url)}/grants`;
    expect(await eve.ask('PUT', grants, everybody)).toMatchObject({
      status: 403,
      body: { error: 'items[0].everybody: only administrators share this with everybody.' },
    });
    expect(await all.admin('PUT', `${grants}?owner=${eve.id}`, everybody)).toMatchObject({ status: 200, body: everybody });
    expect(await eve.ask('PUT', grants, everybody)).toMatchObject({ status: 200, body: everybody });
    await bob.ask('PUT', `${servers}/${await serverOf(bob, given.url)}/grants`, { items: [{ user: ada.id, right: 'read' }] });
    const client = await mcpClient(all.server, ada.key);
    const called = () => all3.map(({ asked }) => asked.filter(({ method }) => method === 'tools/call').length);
    const names = async () => (await client.listTools()).tools.flatMap(({ name }) => (name.startsWith('s__') ? [name] : []));
    await client.callTool({ name: 's__one' });
    expect([called(), new Set(await names()).size]).toEqual([[0, 1, 0], 2]);
    const id = await serverOf(ada, own.url);
    await client.callTool({ name: 's__one' });
    const three = await names();
    expect([called(), new Set(three).size]).toEqual([[1, 1, 0], 3]);
    own.script((_asked, response) => void response.writeHead(500).end());
    await ada.ask('GET', `${servers}/${id}/tools`);
    await expect(client.callTool({ name: 's__one' })).rejects.toThrow('no such tool');
    expect(await names()).toEqual(three.filter((name) => name !== 's__one'));
    for (const name of await names()) await client.callTool({ name });
    expect(called()).toEqual([1, 2, 1]);
    const narrow = (await ada.ask('POST', '/server/mine/keys', { name: 'k', mcpTools: ['s__one'] })).body['key'] as string;
    expect((await (await mcpClient(all.server, narrow)).listTools()).tools).toEqual([]);
  },
);

test('a spent quota is 429 at the tool that would spend, and what was spent is booked', { timeout: long }, async () => {
  const all = await visited(await anyPlace());
  const ada = await person(all);
  const client = await mcpClient(all.server, ada.key);
  await client.callTool({ name: 'plugin__rewrite', arguments: { text: 'Hello.' } });
  const rows = async () => ((await ada.ask('GET', '/server/mine/logs')).body['items'] as { face: string }[]).map(({ face }) => face);
  await expect.poll(rows, { timeout: 30_000 }).toEqual(['mcp']);
  await all.admin('PATCH', `/server/admin/users/${ada.id}`, { monthlyTokens: 0 });
  const call = () => ada.ask('POST', '/server/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'plugin__rewrite', arguments: { text: 'Hello.' } } }, { headers: { accept: 'application/json, text/event-stream' } }).then(({ status }) => status, () => 200); // prettier-ignore
  await expect.poll(call, { timeout: 30_000 }).toBe(429);
  expect(await rows()).toHaveLength(1);
});

test('what is wrong is told: unknown tools and arguments, batches, large bodies, other methods', { timeout: long }, async () => {
  const all = await visited(await anyPlace());
  const client = await mcpClient(all.server, all.server.key);
  await expect(client.callTool({ name: 'nothing' })).rejects.toThrow('no such tool');
  const missing = await client.callTool({ name: 'plugin__rewrite', arguments: {} });
  expect([missing.isError, saidBy(missing)]).toEqual([true, 'text is required.']);
  const wrong = await client.callTool({ name: 'search', arguments: { question: 5 } });
  expect([wrong.isError, saidBy(wrong)]).toEqual([true, expect.stringContaining('question')]);
  await expect(client.readResource({ uri: 'dragoman://datasets/1/files/1' })).rejects.toThrow('no such resource');
  await expect(client.getPrompt({ name: 'Nobody' })).rejects.toThrow('no such prompt');
  const ask = (method: string, body?: unknown) => all.admin(method, '/server/mcp', body, { headers: { accept: 'application/json, text/event-stream' } });
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
  expect((await ask('POST', [ping, ping])).status).toBe(400);
  expect((await ask('POST', { ...ping, params: { x: 'x'.repeat(4_200_000) } })).status).toBe(413);
  expect((await ask('POST', '{')).status).toBe(400);
  for (const method of ['GET', 'DELETE']) {
    const { status, headers } = await ask(method);
    expect([method, status, headers.get('allow')]).toEqual([method, 405, 'POST']);
  }
  expect((await all.nobody('POST', '/server/mcp', ping)).status).toBe(401);
});

test.each([
  ['a tool of a server', 's__one'],
  ['a plugin that asks no model', 'plugin__posts'],
  ['a search', 'search'],
])('%s takes the permit of a request of a minute, once', { timeout: long }, async (_, name) => {
  const mcp = await startScriptedMcp([toolNamed('one')]);
  const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
  const ada = await person(all, {}, { requestsPerMinute: 3 });
  const server = (await ada.ask('POST', servers, { name: 's', url: mcp.url })).body['id'] as number;
  await approve(ada, server, 'one'); // the first
  const body = { jsonrpc: '2.0', id: 1, method: 'x' };
  await ada.ask('POST', '/server/mine/plugins', { plugin_name: 'posts', title: 'T', kind: 'http', request: { method: 'POST', url: mcp.url, headers: { 'content-type': 'application/json' }, body } }); // prettier-ignore
  const params = { name, arguments: name === 'search' ? { question: 'heron' } : {} };
  const call = () => fetch(`${all.server.url}/server/mcp`, { method: 'POST', headers: { authorization: `Bearer ${ada.key}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }) }); // prettier-ignore
  const answers = [await call(), await call(), await call()];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
  expect((await Promise.all(answers.slice(0, 2).map((answer) => answer.text()))).join('')).not.toContain('"isError":true');
});

test('a stream that takes too long ends with an error for its request', { timeout: long }, async () => {
  const mcp = await startScriptedMcp([toolNamed('one')]);
  mcp.script(({ method }) => (method === 'tools/list' ? { tools: [toolNamed('one')] } : undefined));
  const yaml = `outbound: { allow: ["${mcp.origin}"] }\nlimits: { requestSeconds: 16 }\n`; // the stream begins with a comment after 15
  const all = await visited(await anyPlace(), { yaml });
  const ada = await person(all);
  await ada.ask('POST', servers, { name: 's', url: mcp.url, approval: 'never' });
  await approve(ada, ((await ada.ask('GET', servers)).body as unknown as { items: { id: number }[] }).items[0]!.id, 'one');
  const answer = await fetch(`${all.server.url}/server/mcp`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ada.key}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 's__one', arguments: {} } }),
  });
  const text = await answer.text();
  const [, message = ''] = /\n\nevent: message\ndata: (.*)\n\n$/.exec(text) ?? [];
  expect(JSON.parse(message)).toMatchObject({ jsonrpc: '2.0', id: 7, error: { code: -32_000, message: 'The answer took too long.' } });
});

test('halves of surrogate pairs from a server reach no client, whose parser would refuse the whole message', { timeout: long }, async () => {
  const half = {
    name: 'half',
    description: 'cut \ud800',
    inputSchema: { type: 'object', properties: { a: { type: 'string', description: '\\ud800 \udc00' } } },
  };
  const mcp = await startScriptedMcp([half]);
  mcp.script(({ method }) => (method === 'tools/list' ? { tools: [half] } : { content: [{ type: 'text', text: 'one \ud83d two \u{1f600}' }] }));
  const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
  const ada = await person(all);
  const id = (await ada.ask('POST', servers, { name: 's', url: mcp.url, approval: 'never' })).body['id'] as number;
  await approve(ada, id, 'half');
  const sent = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${ada.key}`, 'content-type': 'application/json', accept: 'application/json' };
    const text = await (await fetch(all.server.url + path, { method: 'POST', headers, body: JSON.stringify(body) })).text();
    expect(text).not.toMatch(/[^\\]\\ud/);
    return text;
  };
  const message = (method: string, params: object) => sent('/server/mcp', { jsonrpc: '2.0', id: 1, method, params });
  const listed = JSON.parse(await message('tools/list', {})) as { result: { tools: (typeof half)[] } };
  const properties = { a: { type: 'string', description: '\\ud800 \ufffd' } };
  expect(listed.result.tools.find(({ name }) => name === 's__half')).toMatchObject({ description: 'cut \ufffd', inputSchema: { properties } });
  expect(await message('tools/call', { name: 's__half', arguments: {} })).toContain('one \ufffd two \u{1f600}');
  expect(await sent('/server/query', { message: 'Call s__half now.', enabled_mcp_tools: [`${id}_half`] })).toContain('one \ufffd two \u{1f600}');
});
