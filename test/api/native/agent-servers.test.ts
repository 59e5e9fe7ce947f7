/* Agents whose MCP servers fail, answer late, or change their tools. */
import { expect, test } from 'vitest';
import { anyPlace } from '../../support/databases.ts';
import { startScriptedMcp, toolNamed } from '../../support/fakes/mcp.ts';
import { runs } from './run-events.ts';
import { person, visited } from './visitors.ts';

test('a server that fails is told of in a warning, and the servers of an agent are asked at once', { timeout: 120_000 }, async () => {
  const [bad, first, second] = [await startScriptedMcp([]), await startScriptedMcp([]), await startScriptedMcp([])];
  const allow = JSON.stringify([bad, first, second].map(({ origin }) => origin));
  const all = await visited(await anyPlace(), { yaml: `mcp: { approval: never }\noutbound: { allow: ${allow} }\n` });
  const ada = await person(all);
  const isSecondAsked = Promise.withResolvers<void>();
  bad.script((_, response) => void response.writeHead(503).end());
  first.script(({ method }, response, id) => {
    if (method !== 'tools/list') return { content: [{ type: 'text', text: 'done' }] };
    void isSecondAsked.promise.then(() => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { tools: [toolNamed('one')] } }));
    });
    return undefined;
  });
  second.script(() => {
    isSecondAsked.resolve();
    return { tools: [toolNamed('one')] };
  });
  const tools: object[] = [];
  for (const [name, { url }] of Object.entries({ bad, first, second })) {
    const { id } = (await ada.ask('POST', '/server/mine/mcp-servers', { name, url })).body;
    tools.push({ type: 'mcp', server: id, approval: 'never' });
  }
  const agent = { name: 'Worker', mode: 'autonomous', instructions: 'Work.', model: 'built-in', tools };
  const { id } = (await ada.ask('POST', '/server/mine/agents', agent)).body;
  const { body } = await ada.ask('POST', '/server/execute-agent', { agent_id: id, message: 'Call first__one now.', streaming: false });
  expect(body).toMatchObject({ execution_status: 'completed', response: { response: 'done' } });
  const told = await runs(ada, all.server.url).events(body['execution_id'] as string);
  const warnings = told.flatMap(({ event, data }) => (event === 'warning' ? [(data['data'] as { message: string }).message] : []));
  expect(warnings).toEqual(['A tool of the type mcp is left out: The MCP server bad cannot be used: The MCP server answered with status 503.']);
});

test('a tool that changes without a word from its server is called as it is now by the next run', { timeout: 120_000 }, async () => {
  const mcp = await startScriptedMcp([]);
  const all = await visited(await anyPlace(), { yaml: `mcp: { approval: never }\noutbound: { allow: ["${mcp.origin}"] }\n` });
  const ada = await person(all);
  let described = 'first';
  const held: (() => void)[] = [];
  let holds = false;
  mcp.script(({ method }, response, id) => {
    if (method === 'tools/list') return { tools: [toolNamed('one', { description: described })] };
    if (!holds) return { content: [{ type: 'text', text: 'done' }] };
    held.push(() => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'late' }] } }));
    });
    return undefined;
  });
  const server = (await ada.ask('POST', '/server/mine/mcp-servers', { name: 's', url: mcp.url })).body['id'];
  const agent = { name: 'Worker', mode: 'single', instructions: 'Work.', model: 'built-in', tools: [{ type: 'mcp', server, approval: 'never' }] };
  const { id } = (await ada.ask('POST', '/server/mine/agents', agent)).body;
  const said = async () => {
    const { body } = await ada.ask('POST', '/server/execute-agent', { agent_id: id, message: 'Call s__one now.', streaming: false });
    return (body['response'] as { response: string }).response;
  };
  expect(await said()).toBe('done');
  described = 'second';
  await ada.ask('GET', '/server/list-mcp-tools?refresh=true');
  expect(await said()).toBe('done'); // the session of runs had the first list

  holds = true;
  const late = said();
  await expect.poll(() => held.length).toBe(1);
  holds = false;
  described = 'third';
  expect(await said()).toContain('has changed since it was approved'); // in another session, which has the third list
  expect(await said()).toBe('done');
  held[0]!();
  expect(await late).toBe('late');
});

test('a tool that was approved and has changed since is not called, once any list has shown it', { timeout: 120_000 }, async () => {
  const mcp = await startScriptedMcp([]);
  const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
  const ada = await person(all);
  let described = 'first';
  mcp.script(({ method }) =>
    method === 'tools/list' ? { tools: [toolNamed('one', { description: described })] } : { content: [{ type: 'text', text: 'done' }] },
  );
  const server = (await ada.ask('POST', '/server/mine/mcp-servers', { name: 's', url: mcp.url, approval: 'first' })).body['id'] as number;
  const agent = { name: 'Worker', mode: 'single', instructions: 'Work.', model: 'built-in', tools: [{ type: 'mcp', server }] };
  const { id } = (await ada.ask('POST', '/server/mine/agents', agent)).body;
  const run = async () => (await ada.ask('POST', '/server/execute-agent', { agent_id: id, message: 'Call s__one now.', streaming: false })).body;
  const calls = () => mcp.asked.filter(({ method }) => method === 'tools/call').length;
  await ada.ask('POST', `/server/mine/mcp-servers/${server}/tools/one/approve`);
  expect([await run(), calls()]).toMatchObject([{ execution_status: 'completed', response: { response: 'done' } }, 1]);

  described = 'second';
  const { body } = await ada.ask('GET', `/server/mine/mcp-servers/${server}/tools`);
  expect(body['items']).toMatchObject([{ name: 'one', approved: false }]);
  const waiting = await run();
  expect([waiting['execution_status'], calls()]).toEqual([expect.not.stringMatching('completed'), 1]);
});
