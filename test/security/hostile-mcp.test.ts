/* MCP servers that send far too much: refused soon, and with little memory. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { embedded } from '../support/databases.ts';
import { startScriptedMcp, toolNamed, type ScriptedMcp } from '../support/fakes/mcp.ts';
import { startUpstream } from '../support/fakes/upstream/index.ts';
import { proves } from '../support/proves.ts';
import { startProcess } from '../support/server-process.ts';
import type { Watched } from './loop-watch.ts';

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

test(
  proves('P-04', 'ten thousand tools and results of a gigabyte are a named failure within a second, and take less than 64 MB'),
  { timeout: 120_000 },
  async () => {
    const [upstream, mcp] = [await startUpstream(), await startScriptedMcp([])];
    onTestFinished(() => upstream.close());
    const yaml = `mcp: { approval: never }\noutbound: { allow: ["${mcp.origin}"] }\n`;
    const server = await startProcess(await embedded.place(), upstream.url, yaml, { preload: new URL('./loop-watch.ts', import.meta.url) });
    const ask = async (path: string, sent: object) => {
      const headers = { 'x-access-tokens': server.key, 'content-type': 'application/json' };
      const answer = await fetch(`${server.url}/server/mine/mcp-servers${path}`, { method: 'POST', headers, body: JSON.stringify(sent) });
      return (await answer.json()) as Record<string, unknown>;
    };
    const watched = async () => {
      const seen = once(server.child, 'message');
      server.child.send('');
      return ((await seen) as [Watched])[0];
    };
    const { id } = await ask('', { ...asServer, url: mcp.url });
    const tested = () => ask(`/${id as number}/test`, { tool: 'one' });
    mcp.script(listing(() => ({ content: [] })));
    for (let warm = 0; warm < 20; warm++) expect(await tested()).toMatchObject({ state: 'ok' });
    await watched();
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
