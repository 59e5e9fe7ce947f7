/* Programs that speak MCP and take longer to start than they have to say which revision they speak. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { anyPlace } from '../../support/databases.ts';
import { person, visited } from './visitors.ts';

const long = 120_000;
const library = (file: string) => JSON.stringify(new URL(`../../../node_modules/@modelcontextprotocol/server/dist/${file}`, import.meta.url).href);

/** Writes down that it was started, and reads nothing for four seconds. */
const program = (notes: string, legacy: 'serve' | 'reject') => `
require('node:fs').appendFileSync(${JSON.stringify(notes)}, '.');
setTimeout(async () => {
  const { McpServer } = await import(${library('index.mjs')});
  const { serveStdio } = await import(${library('stdio.mjs')});
  const made = () => {
    const server = new McpServer({ name: 'slow', version: '1' });
    server.registerTool('one', { description: 'One.' }, () => ({ content: [{ type: 'text', text: 'done' }] }));
    return server;
  };
  serveStdio(made, { legacy: '${legacy}' });
}, 4000);`;

test.for([
  { revisions: 'both revisions', legacy: 'serve', starts: 1 },
  { revisions: 'the revision of 2026 alone', legacy: 'reject', starts: 2 },
] as const)('a program of $revisions that takes four seconds to start can be used', { timeout: long }, async ({ legacy, starts }) => {
  const folder = mkdtempSync(join(tmpdir(), 'dragoman-slow-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const notes = join(folder, 'starts');
  const slow = { name: 'slow', command: process.execPath, args: ['-e', program(notes, legacy)] };
  const all = await visited(await anyPlace(), { yaml: `mcp: { stdio: [${JSON.stringify(slow)}] }\n` });
  const ada = await person(all);
  const [{ id }] = (await ada.ask('GET', '/server/list-mcp-servers')).body['response'] as [{ id: number }];
  const { body } = await ada.ask('POST', `/server/mine/mcp-servers/${id}/test`, { tool: 'one' });
  expect(body).toMatchObject({ state: 'ok', result: { text: 'done' } });
  expect(readFileSync(notes, 'utf8')).toHaveLength(starts);
});
