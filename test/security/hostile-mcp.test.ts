/* MCP servers that send far too much, or what takes long to read: refused soon, and with little memory. */
import type { ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { embedded } from '../support/databases.ts';
import { startScriptedMcp, toolNamed, type ScriptedMcp } from '../support/fakes/mcp.ts';
import { startUpstream } from '../support/fakes/upstream/index.ts';
import { proves } from '../support/proves.ts';
import { startProcess } from '../support/server-process.ts';
import { loopWatch, watched } from './watched.ts';

const megabyte = 2 ** 20;
const asServer = { name: 's', approval: 'never' };

/** A body of a gigabyte, as fast as it is read. */
function gigabyte(response: ServerResponse, type: string, beginning: string): void {
  response.writeHead(200, { 'content-type': type });
  response.write(beginning);
  const piece = Buffer.alloc(megabyte, 'x');
  let left = 1024;
  const write = () => {
    while (left-- > 0 && !response.destroyed && response.write(piece));
    if (left > 0 && !response.destroyed) response.once('drain', write);
  };
  write();
}

type Script = Parameters<ScriptedMcp['script']>[0];
const listing =
  (call: Script): Script =>
  (asked, response, id) =>
    asked.method === 'tools/list' ? { tools: [toolNamed('one')] } : call(asked, response, id);
const body = `{"jsonrpc":"2.0","id":9,"result":{"content":[{"type":"text","text":"`;

/** The whole server as a process, with one MCP server. */
async function withServer(mcp: ScriptedMcp) {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const yaml = `mcp: { approval: never }\noutbound: { allow: ["${mcp.origin}"] }\n`;
  const server = await startProcess(await embedded.place(), upstream.url, yaml, { preload: loopWatch });
  const ask = async (path: string, sent: object) => {
    const headers = { 'x-access-tokens': server.key, 'content-type': 'application/json' };
    const answer = await fetch(`${server.url}/server/mine/mcp-servers${path}`, { method: 'POST', headers, body: JSON.stringify(sent) });
    return (await answer.json()) as Record<string, unknown>;
  };
  const { id } = await ask('', { ...asServer, url: mcp.url });
  const tested = (sent: object = { tool: 'one' }) => ask(`/${id as number}/test`, sent);
  mcp.script(listing(() => ({ content: [] })));
  for (let warm = 0; warm < 20; warm++) expect(await tested()).toMatchObject({ state: 'ok' });
  await watched(server);
  return { tested, watched: () => watched(server) };
}

test(
  proves('P-04', 'ten thousand tools and results of a gigabyte are a named failure within a second, and take less than 64 MB'),
  { timeout: 120_000 },
  async () => {
    const mcp = await startScriptedMcp([]);
    const { tested, watched } = await withServer(mcp);
    const { resident: before } = await watched();

    const many = { tools: Array.from({ length: 10_000 }, (_, at) => toolNamed(`t${at}`)) };
    const scripts: readonly (readonly [what: string, script: Script, found: object])[] = [
      ['a result as JSON', listing((_, response) => void gigabyte(response, 'application/json', body)), { state: 'unreachable' }],
      ['a result as an event', listing((_, response) => void gigabyte(response, 'text/event-stream', `data: ${body}`)), { state: 'unreachable' }],
      ['ten thousand tools', ({ method }) => (method === 'tools/list' ? many : { content: [] }), { error: expect.stringContaining('no such tool') as string }],
    ];
    for (const [what, script, found] of scripts) {
      mcp.script(script);
      const took: number[] = [];
      for (let tries = 0; tries < 8 && !took.some((one) => one < 1000); tries++) {
        const began = performance.now();
        expect([what, await tested()]).toMatchObject([what, found]);
        took.push(performance.now() - began);
      }
      expect([what, Math.min(...took)]).toEqual([what, expect.toSatisfy((one: number) => one < 1000)]);
    }
    const { resident } = await watched();
    expect(resident - before).toBeLessThan(64 * megabyte);
  },
);

/** Characters of a message. */
const most = 1_100_000;
const times = (text: string, bytes = most) => text.repeat(Math.floor(bytes / text.length));
const keys = Array.from({ length: most / 12 }, (_, at) => `"k${at}":1`).join(',');
const wrongSchema = (schema: object) => (name: string) => toolNamed(name, { inputSchema: { type: 'object', ...schema } });

test(proves('P-04', 'no message of an MCP server holds the event loop for 50 ms, whatever is in it'), { timeout: 240_000 }, async () => {
  const mcp = await startScriptedMcp([]);
  const { tested, watched } = await withServer(mcp);
  const longest = async (what: string, script: Script, sent?: object) => {
    mcp.script(script);
    const stretches: number[] = [];
    while (stretches.length < 4 && !stretches.some((one) => one < 50)) {
      await watched();
      await tested(sent);
      stretches.push((await watched()).stretch);
    }
    expect([what, Math.min(...stretches)]).toEqual([what, expect.toSatisfy((one: number) => one < 50)]);
    mcp.script(listing(() => ({ content: [] })));
    await tested({});
  };

  const messages: Readonly<Record<string, string>> = {
    'lists in lists': times('['),
    'lists in lists of a result': `"result":{"content":[],"structuredContent":{"a":${times('[', most / 2)}${times(']', most / 2)}}}`,
    'keys of a result': `"result":{"content":[],${keys}}`,
    'keys of small objects': `"result":{"content":[],"structuredContent":{"a":[${Array.from({ length: 6900 }, (_, at) => `{${Array.from({ length: 16 }, (_one, key) => `"${(at * 16 + key).toString(36)}":1`).join(',')}}`).join(',')}]}}`,
    'keys of a message': `"result":{"content":[]},${keys}`,
    'blocks that are none': `"result":{"content":[${times('{},')}{}]}`,
    'blocks of wrong texts': `"result":{"content":[${times('{"type":"text","text":0},')}{}]}`,
    'messages in a list': `[${times('{"jsonrpc":"2.0","method":"x"},')}{}]`,
    'small tools beside a deep one': `"result":{"tools":[${times('{"name":"a"},', 900_000)}${times('[', 100)}${times(']', 100)}]}`,
    'deep tools': `"result":{"tools":[${times(`{"inputSchema":${times('[', 100)}${times(']', 100)}},`)}{}]}`,
    'members of tools beside a deep one': `"result":{"tools":[{${keys.slice(0, 1_000_000).replace(/,[^,]*$/, '')},"a":${times('[', 100)}${times(']', 100)}}]}`,
    'a question of many addresses': `"error":{"code":-32042,"message":"visit","data":{"elicitations":[${times('{},', 400_000)}{}]}}`,
  };
  for (const type of ['application/json', 'text/event-stream'])
    for (const [what, members] of Object.entries(messages)) {
      const script: Script = (_, response, id) => {
        const text = members.startsWith('"') ? `{"jsonrpc":"2.0","id":${String(id)},${members}}` : members;
        response.writeHead(200, { 'content-type': type }).end(type === 'application/json' ? text : `data: ${text}\n\n`);
        return undefined;
      };
      await longest(`${what} as ${type}`, listing(script));
    }

  const tools = {
    'names that are none': wrongSchema({ required: Array(2000).fill(0) }),
    'lists in schemas': wrongSchema({ properties: { a: Array.from({ length: 2000 }, () => [0]) } }),
  };
  for (const [what, tool] of Object.entries(tools)) {
    const list = { tools: Array.from({ length: 128 }, (_, at) => tool(`t${at}`)) };
    // the session forgets its list when it is told to
    const changed: Script = ({ method }, response, id) => {
      if (method === 'tools/list') return list;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n');
      response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } })}\n\n`);
      return undefined;
    };
    mcp.script((asked, response, id) => (asked.method === 'tools/list' ? { tools: [toolNamed('one')] } : changed(asked, response, id)));
    await tested();
    await longest(what, changed, {});
  }

  const asking = (asked: object): Script =>
    listing((_, response, id) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...asked })}\n\n`);
      response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } })}\n\n`);
      return undefined;
    });
  await longest(
    'a question for a model',
    asking({ id: 77, method: 'sampling/createMessage', params: { messages: Array.from({ length: 90_000 }, () => ({})) } }),
  );
  await longest('a progress of nothing', asking({ method: 'notifications/progress', params: { progressToken: Array.from({ length: 90_000 }, () => ({})) } }));
});

test.each([
  ['notifications', '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'],
  ['questions', '{"jsonrpc":"2.0","id":99,"method":"ping"}'],
])(proves('P-04', 'a flood of %s does not hold the event loop for 50 ms'), { timeout: 240_000 }, async (_what, message) => {
  const mcp = await startScriptedMcp([]);
  const { tested, watched } = await withServer(mcp);
  const piece = `data: ${message}\n\n`.repeat(1000);
  mcp.script((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const write = () => {
      while (!response.destroyed && response.write(piece));
      response.once('drain', write);
    };
    write();
    return undefined;
  });
  const stretches: number[] = [];
  while (stretches.length < 4 && !stretches.some((one) => one < 50)) {
    await watched();
    expect(await tested({})).toMatchObject({ state: 'unreachable' });
    stretches.push((await watched()).stretch);
  }
  expect(Math.min(...stretches)).toBeLessThan(50);
});
