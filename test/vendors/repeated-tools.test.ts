import { expect, test } from 'vitest';
import { chat } from '../support/server.ts';
import { scriptedVendors } from '../support/scripted-vendors.ts';

/** Tools that are declared twice, as frameworks do with several MCP servers: Claude and Gemini refuse them. anthropics/claude-code#10687 */

const { vendors, server } = await scriptedVendors();

const tool = (name: string, description: string) => ({ type: 'function', function: { name, description, parameters: { type: 'object', properties: {} } } });
const tools = [tool('look', 'first'), tool('listen', 'other'), tool('look', 'last')];
const ask = (model: string, headers: Readonly<Record<string, string>> = {}) =>
  server.ask(chat, { model, messages: [{ role: 'user', content: 'use the tool look with {}' }], tools }, { headers });

test.each(['claude-haiku-4-5', 'gemini-2.5-flash', 'gpt-4o-on-responses'])('%s gets the last of each name', async (model) => {
  const answer = await ask(model);
  expect([answer.status, answer.headers.get('x-dragoman-warnings')]).toEqual([200, 'tools: several tools have the same name; only the last of them was sent.']);
  expect(await answer.text()).toContain('"name":"look"');
  const { text } = vendors.requests.at(-1)!;
  expect([...text.matchAll(/"description":"(\w+)"/g)].map(([, described]) => described)).toEqual(['other', 'last']);
  expect((await ask(model, { 'x-dragoman-strict': 'true' })).status).toBe(400);
});

test('a client of the same interface has all of its own sent', async () => {
  expect((await ask('gpt-4o')).headers.get('x-dragoman-warnings')).toBeNull();
  expect(vendors.requests.at(-1)!.body.tools).toEqual(tools);
});
