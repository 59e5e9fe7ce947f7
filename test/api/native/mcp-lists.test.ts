/* Lists of tools of MCP servers that are broken in part, dead or slow. */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { anyPlace } from '../../support/databases.ts';
import { startScriptedMcp, toolNamed } from '../../support/fakes/mcp.ts';
import { mcpClient } from '../mcp/client.ts';
import { person, visited } from './visitors.ts';
import { listening } from '../../support/fakes/listening.ts';

const long = 120_000;
const root = '/server/mine/mcp-servers';

interface Listed {
  readonly tool: { readonly name: string };
  readonly server: { readonly id: number; readonly name: string };
}
const namesIn = (body: Readonly<Record<string, unknown>>) => (body['response'] as Listed[]).map(({ tool, server }) => `${server.name}.${tool.name}`);

const deep = (levels: number) => `${'{"type":"object","properties":{"a":'.repeat(levels / 2)}{}${'}}'.repeat(levels / 2)}`;
const raw = (name: string, schema: string, more = '') => `{"name":"${name}","description":"Does.",${more}"inputSchema":${schema}}`;
const object = '{"type":"object"}';

test.each(['application/json', 'text/event-stream'])(
  'a tool whose schema cannot be read is left out of a list that came as %s, which its owner is told, and the others are there',
  { timeout: long },
  async (type) => {
    const mcp = await startScriptedMcp([]);
    const all = await visited(await anyPlace(), { yaml: `mcp: { approval: never }\noutbound: { allow: ["${mcp.origin}"] }\n` });
    const ada = await person(all);
    const id = (await ada.ask('POST', root, { name: 's', url: mcp.url })).body['id'] as number;
    const list = async (tools: readonly string[]) => {
      mcp.script(({ method }, response, key) => {
        if (method !== 'tools/list') return { content: [{ type: 'text', text: 'done' }] };
        const text = `{"jsonrpc":"2.0","id":${String(key)},"result":{\n"tools":[${tools.join(' , ')}],"ttlMs":0}}`;
        response.writeHead(200, { 'content-type': type }).end(type === 'application/json' ? text : `data: ${text.replace('\n', '')}\n\n`);
        return undefined;
      });
      const found = namesIn((await ada.ask('GET', '/server/list-mcp-tools?refresh=true')).body);
      return [found, (await ada.ask('GET', `${root}/${id}`)).body['lastError']];
    };
    const left = (names: string) => expect.stringContaining(`left out: ${names}. `) as string;
    const one = raw('one', object);
    expect(await list([one])).toEqual([['s.one'], null]);
    expect(await list([raw('deep', deep(80)), one, raw('deeper', deep(5000))])).toEqual([['s.one'], left('deep, deeper')]);
    expect((await ada.ask('POST', `${root}/${id}/test`, { tool: 'one' })).body).toMatchObject({ state: 'ok', result: { text: 'done' } });
    expect(await list([raw('twice', '{"type":"object","type":"object"}'), one])).toEqual([['s.one'], left('twice')]);
    expect(await list([raw('wide', `{"type":"object","enum":[${'0,'.repeat(260_000)}0]}`), one])).toEqual([['s.one'], left('wide')]);
    expect(await list([raw('range', '{"type":"object","maximum":1e999}'), one])).toEqual([['s.one'], left('range')]);
    expect(await list([raw('no schema', '5'), '{}', '[]', '"]}"', one, one])).toEqual([['s.one'], left('one, 4 more')]);
    const strange = raw('strange', object, `"outputSchema":${deep(80)},"_meta":{"a":"\\"]}","a":[{}]},`); // what is not read does no harm
    expect(await list([strange, one])).toEqual([['s.strange', 's.one'], null]);
    expect(await list([one, ...Array.from({ length: 200 }, (_, at) => JSON.stringify(toolNamed(`t${at}`)))])).toMatchObject([
      { length: 128 },
      expect.stringContaining('more than 128 tools') as string,
    ]);
    expect(await list([one])).toEqual([['s.one'], null]);
  },
);

/** A server that answers nothing, until the test ends. @returns its origin */
const startDead = (): Promise<string> => listening(createServer(() => {}));

test('a dead server keeps the tools of the others waiting for five seconds at most, and then comes last', { timeout: long }, async () => {
  const [mcp, dead] = [await startScriptedMcp([toolNamed('one')]), await startDead()];
  const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ["${mcp.origin}", "${dead}"] }\n` });
  const ada = await person(all);
  const gone: unknown[] = [];
  for (let at = 0; at < 9; at++) gone.push((await ada.ask('POST', root, { name: `dead${at}`, url: `${dead}/mcp` })).body['id']);
  const id = (await ada.ask('POST', root, { name: 's', url: mcp.url })).body['id'] as number;
  const states = gone.map((one) => ({ id: one, state: 'unreachable', error: expect.stringContaining('5 seconds') as string }));
  const list = () => ada.ask('GET', '/server/list-mcp-tools');
  const began = performance.now();
  expect((await list()).body).toMatchObject({ failed_servers: [...states, { id, state: 'unreachable' }] }); // nobody knew which are dead
  expect((await list()).body).toMatchObject({ response: [{ unique_id: `${id}_one` }], count: 1, failed_servers: states });
  expect(performance.now() - began).toBeGreaterThan(9000);
  expect((await ada.ask('GET', `${root}/${gone[0] as number}`)).body).toMatchObject({ state: 'unreachable', lastError: states[0]!.error });
  const client = await mcpClient(all.server, ada.key);
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('s__one');
});

test('more servers than a user may have in use at once are asked one after the other', { timeout: long }, async () => {
  const mcp = await startScriptedMcp([]);
  const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
  const ada = await person(all);
  let [listing, most] = [0, 0];
  mcp.script((_, response, key) => {
    most = Math.max(most, ++listing);
    void sleep(100).then(() => {
      listing--;
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: key, result: { tools: [toolNamed('one')] } }));
    });
    return undefined;
  });
  const ids: number[] = [];
  for (let at = 0; at < 20; at++) ids.push((await ada.ask('POST', root, { name: `s${at}`, url: mcp.url })).body['id'] as number);
  const answers = await Promise.all(ids.map((id) => ada.ask('GET', `${root}/${id}/tools`)));
  expect(answers.map(({ status }) => status)).toEqual(ids.map(() => 200));
  expect(most).toBeLessThanOrEqual(8);
  const lists = await Promise.all([1, 2, 3].map(() => ada.ask('GET', '/server/list-mcp-tools?refresh=true')));
  for (const { status, body } of lists) expect([status, body['count'], body['failed_servers']]).toEqual([200, 20, []]);
});

test('headers of an MCP server that is moved while a list is made do not go to its former address', { timeout: long }, async () => {
  const [slow, former] = [await startScriptedMcp([toolNamed('one')]), await startScriptedMcp([toolNamed('one')])];
  const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ["${slow.origin}", "${former.origin}"] }\n` });
  const ada = await person(all);
  const { promise: moved, resolve: goOn } = Promise.withResolvers<void>();
  slow.script((_, response, id) => {
    void moved.then(() => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result: { tools: [] } })));
    return undefined;
  });
  for (let at = 0; at < 8; at++) await ada.ask('POST', root, { name: `slow ${at}`, url: slow.url }); // as many as are asked at once
  const last = { name: 'moved', headers: { 'x-token': 'for the former address' } };
  const { id } = (await ada.ask('POST', root, { ...last, url: former.url })).body;
  let isMade = false;
  const list = ada.ask('GET', '/server/list-mcp-tools').finally(() => (isMade = true)); // on a slow machine without any tools
  await expect.poll(() => isMade || slow.asked.filter(({ method }) => method === 'tools/list').length === 8).toBe(true);
  const change = { ...last, url: slow.url, headers: { 'x-token': 'for the new address' } };
  expect((await ada.ask('PUT', `${root}/${String(id)}`, change)).status).toBe(200);
  expect(isMade).toBe(false);
  goOn();
  expect((await list).status).toBe(200);
  expect(JSON.stringify(former.asked)).not.toContain('for the new address');
});
