import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { ownPort } from '../ports.ts';
import { listening } from './listening.ts';

/** The reference server of the protocol, as a program. */
export const everything = new URL('../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url).pathname;

/** The reference server for files, as a program: it reads and writes in the folders that are its arguments. */
export const filesystem = new URL('../../../node_modules/@modelcontextprotocol/server-filesystem/dist/index.js', import.meta.url).pathname;

/** The reference server over HTTP, until the test ends. @returns its address */
export async function startEverything(form: 'streamableHttp' | 'sse' = 'streamableHttp'): Promise<string> {
  const port = await ownPort();
  const child: ChildProcess = spawn(process.execPath, [everything, form], { env: { PORT: String(port) }, stdio: 'ignore' });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; tries < 1200; tries++) {
    if (await fetch(url).then(() => true, () => false)) return `${url}/${form === 'sse' ? 'sse' : 'mcp'}`; // prettier-ignore
    await sleep(50);
  }
  throw new Error('The reference server did not start.');
}

export interface McpAsked {
  /** Empty: an answer to what the server asked. */
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly headers: IncomingHttpHeaders;
  /** The message as it came. */
  readonly text: string;
  /** Of an answer: its code where it is an error. */
  readonly refused?: number;
}

/** A scripted server: `script` gives the result of a method, or answers by itself and gives `undefined`. */
export interface ScriptedMcp {
  readonly origin: string;
  readonly url: string;
  readonly asked: McpAsked[];
  script(how: (asked: McpAsked, response: ServerResponse, id: unknown) => object | undefined): void;
}

/** Speaks the revision of 2025 over streamable HTTP, until the test ends. */
export async function startScriptedMcp(tools: readonly object[]): Promise<ScriptedMcp> {
  const asked: McpAsked[] = [];
  let script: Parameters<ScriptedMcp['script']>[0] = ({ method }) => (method === 'tools/list' ? { tools } : { content: [{ type: 'text', text: 'done' }] });
  const server = createServer((request, response) => {
    let text = '';
    response.on('error', () => {});
    request.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    request.on('end', () => {
      if (request.method !== 'POST') return response.writeHead(405).end();
      const message = JSON.parse(text) as { id?: unknown; method?: string; params?: Record<string, unknown>; error?: { code: number } };
      const { method = '', params = {}, error } = message;
      const one = { method, params, headers: request.headers, text, ...(error ? { refused: error.code } : {}) };
      asked.push(one);
      if (message.id === undefined || method === '') return response.writeHead(202).end();
      const reply = (body: object) =>
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...body }));
      if (message.method === 'server/discover') return reply({ error: { code: -32_601, message: 'Method not found' } });
      if (message.method === 'initialize')
        return reply({
          result: { protocolVersion: '2025-06-18', capabilities: { tools: { listChanged: true } }, serverInfo: { name: 'scripted', version: '1' } },
        });
      const result = script(one, response, message.id);
      return result === undefined ? undefined : reply({ result });
    });
  });
  const origin = await listening(server);
  return { origin, url: `${origin}/mcp`, asked, script: (how) => void (script = how) };
}

/** A tool without arguments. */
export const toolNamed = (name: string, more: object = {}) => ({ name, description: `Does ${name}.`, inputSchema: { type: 'object' }, ...more });
