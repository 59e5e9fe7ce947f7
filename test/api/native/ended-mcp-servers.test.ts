/* MCP servers that end between two calls, or in the middle of one. */
import { createServer, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { anyPlace } from '../../support/databases.ts';
import { listening } from '../../support/fakes/listening.ts';
import { startScriptedMcp, toolNamed } from '../../support/fakes/mcp.ts';
import { person, visited } from './visitors.ts';

const long = 120_000;
const root = '/server/mine/mcp-servers';

/** A program of 2025 that leaves unanswered what it does not know, begins its output with a byte order mark, and ends after a call. */
const program = `
process.stdout.write('\\ufeff');
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  const answer = (result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
  if (method === 'initialize') answer({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'p', version: '1' } });
  if (method === 'tools/list') answer({ tools: [{ name: 'one', inputSchema: { type: 'object' } }] });
  if (method === 'tools/call') answer({ content: [{ type: 'text', text: String(process.pid) }] }), setTimeout(() => process.exit(), 20);
});`;

test('a program that has ended since the call before is started again', { timeout: long }, async () => {
  const local = { name: 'local', command: process.execPath, args: ['-e', program] };
  const all = await visited(await anyPlace(), { yaml: `mcp: { stdio: [${JSON.stringify(local)}] }\n` });
  const ada = await person(all);
  const [{ id }] = (await ada.ask('GET', '/server/list-mcp-servers')).body['response'] as [{ id: number }];
  const pids: number[] = [];
  for (let call = 0; call < 2; call++) {
    const { body } = await ada.ask('POST', `${root}/${id}/test`, { tool: 'one' });
    expect(body).toMatchObject({ state: 'ok' });
    expect(body['milliseconds']).toBeLessThan(14_000); // it would be waited for for 15 seconds before it is asked in the way of 2025
    pids.push(Number((body['result'] as { text: string }).text));
    await expect.poll(() => isThere(pids.at(-1)!), { timeout: 30_000 }).toBe(false);
  }
  expect(new Set(pids).size).toBe(2);
});

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

interface Asked {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly name?: string };
}

/** @param number the streams that there have been */
function answered({ id, method, params }: Asked, stream: ServerResponse, number: number): void {
  const answer = (result: object) => void stream.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`);
  const tools = ['one', 'end', 'large', 'leave'].map((name) => ({ name, inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }));
  if (method === 'initialize') answer({ protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo: { name: 'e', version: '1' } });
  if (method === 'tools/list') answer({ tools });
  if (method !== 'tools/call') return;
  if (params?.name !== 'end') answer({ content: [{ type: 'text', text: params?.name === 'large' ? 'x'.repeat(2_000_000) : `stream ${number}` }] });
  if (params?.name === 'end' || params?.name === 'leave') stream.end();
}

/** Speaks server-sent events alone: `end` ends their stream in place of an answer, `large` has a result that is too large, `leave` ends the stream behind its answer. */
async function startEventServer() {
  const streams: ServerResponse[] = [];
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`event: endpoint\ndata: /messages?session=${streams.length}\n\n`);
      streams.push(response);
    } else if (pathname === '/messages')
      void text(request).then((body) => {
        response.writeHead(202).end();
        answered(JSON.parse(body) as Asked, streams[Number(searchParams.get('session'))]!, streams.length);
      });
    else response.writeHead(405).end();
  });
  const origin = await listening(server);
  return { origin, url: `${origin}/sse`, streams };
}

test('a call whose stream of events ends has failed at once, and the next one has a new stream', { timeout: long }, async () => {
  const events = await startEventServer();
  const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ["${events.origin}"] }\n` });
  const ada = await person(all);
  const id = (await ada.ask('POST', root, { name: 'events', url: events.url })).body['id'] as number;
  const call = async (tool: string) => (await ada.ask('POST', `${root}/${id}/test`, { tool })).body;
  expect(await call('one')).toMatchObject({ state: 'ok', result: { text: 'stream 1' } });
  expect(await call('leave')).toMatchObject({ state: 'ok', result: { text: 'stream 1' } });
  await expect.poll(() => events.streams[0]!.closed, { timeout: 30_000 }).toBe(true);
  await expect.poll(async () => (await call('one'))['result'], { timeout: 30_000 }).toMatchObject({ text: 'stream 2' });
  const from = performance.now();
  expect(await call('end')).toMatchObject({ state: 'unreachable' });
  expect(await call('one')).toMatchObject({ state: 'ok', result: { text: 'stream 3' } });
  expect(await call('large')).toMatchObject({ state: 'unreachable', error: expect.stringContaining('larger than 1 MB') as string });
  expect(await call('one')).toMatchObject({ state: 'ok', result: { text: 'stream 4' } });
  expect(performance.now() - from).toBeLessThan(30_000); // a call has a minute
});

test.each(['before its head', 'in a stream'])('a call whose client leaves is closed towards a server of 2025, answered %s', { timeout: long }, async (how) => {
  const mcp = await startScriptedMcp([]);
  const all = await visited(await anyPlace(), { yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
  const ada = await person(all);
  const [called, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  mcp.script(({ method }, response) => {
    if (method === 'tools/list') return { tools: [toolNamed('one')] };
    response.on('close', () => closed.resolve());
    if (how === 'in a stream') response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': begun\n\n');
    called.resolve();
    return undefined;
  });
  const { id } = (await ada.ask('POST', root, { name: 's', url: mcp.url })).body;
  const leaving = new AbortController();
  const asked = fetch(`${all.server.url}${root}/${String(id)}/test`, {
    method: 'POST',
    headers: { 'x-access-tokens': ada.key, 'content-type': 'application/json' },
    body: '{"tool":"one"}',
    signal: leaving.signal,
  });
  await called.promise;
  leaving.abort();
  await expect(asked).rejects.toThrow();
  const late = AbortSignal.timeout(30_000); // a session that nobody uses is closed after a minute
  await Promise.race([closed.promise, new Promise((_, reject) => late.addEventListener('abort', () => reject(new Error('It is still open.'))))]);
  await expect.poll(() => mcp.asked.map(({ method }) => method)).toContain('notifications/cancelled');
});
