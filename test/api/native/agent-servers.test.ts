/* Agents whose MCP servers fail, or answer late. */
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
