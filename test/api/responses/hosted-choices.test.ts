import { expect, test } from 'vitest';
import { always, ok } from '../../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../../support/scripted-server.ts';

/** Choices among tools that are no functions: those of the provider, and those of MCP servers that only the provider asks. */

const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

const look = { type: 'function', name: 'look', parameters: { type: 'object', properties: {} }, strict: false };
const wiki = { type: 'mcp', server_label: 'wiki', server_url: 'https://wiki.example/mcp', require_approval: 'never' };
const tools = [look, { type: 'web_search_preview' }, { type: 'image_generation' }, wiki];
const allowing = (...allowed: readonly object[]) => ({ type: 'allowed_tools', mode: 'auto', tools: allowed });
const named = { type: 'function', name: 'look' };
const ofWiki = { type: 'mcp', server_label: 'wiki' };

async function ask(model: string, tool_choice: object) {
  upstream.script(always(ok()));
  const answer = await server.ask('/server/chatcompat/v1/responses', { model, input: 'hello', tools, tool_choice });
  const { error } = (await answer.json()) as { error: { param: string } | null };
  const sent = answer.ok ? (upstream.requests.at(-1)!.json as { tool_choice?: unknown }).tool_choice : undefined;
  return { status: answer.status, param: error?.param, sent, warnings: answer.headers.get('x-dragoman-warnings') };
}

test.each([
  ['of all kinds', allowing(named, { type: 'image_generation' }, ofWiki)],
  ['of the provider alone', allowing({ type: 'image_generation' })],
  ['of a server', { ...ofWiki, name: 'search' }],
])('a choice %s reaches a provider of the responses interface as it came', async (_, choice) => {
  expect(await ask('responses', choice)).toMatchObject({ status: 200, sent: choice, warnings: null });
});

test('an allowed web search reaches the provider under the name that the tool has', async () => {
  expect((await ask('responses', allowing(named, { type: 'web_search' }))).sent).toEqual(allowing(named, { type: 'web_search_preview' }));
});

test.each(['chat', 'messages', 'gemini'])('a provider of %s is told that nothing is allowed that it has, and so is the client', async (model) => {
  const { status, sent, warnings } = await ask(model, allowing({ type: 'image_generation' }));
  expect([status, JSON.stringify(sent ?? 'none').toLowerCase()]).toEqual([200, expect.stringContaining('none')]);
  expect(warnings).toContain('tool_choice: a tool that it names cannot be given to the provider.');
});

test.each([
  [allowing({ type: 'file_search' }), 'tool_choice.tools[0].type'],
  [allowing(named, { ...ofWiki, server_label: 'other' }), 'tool_choice.tools[1].server_label'],
  [{ ...ofWiki, server_label: 'other' }, 'tool_choice.server_label'],
])('a choice of what is not among the tools is refused (%j)', async (choice, param) => {
  expect(await ask('responses', choice)).toMatchObject({ status: 400, param });
});
