import { expect, test } from 'vitest';
import { askFace } from '../support/all-faces.ts';
import { scriptedVendors } from '../support/scripted-vendors.ts';

/** Chat clients that set more cache breakpoints than Claude accepts: router-for-me/CLIProxyAPI#4795. */

const { vendors, server } = await scriptedVendors();

const cache_control = { type: 'ephemeral' };
const cached = (text: string) => [{ type: 'text', text, cache_control }];
const tools = ['a', 'b'].map((name) => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: { cache_control: { type: 'string' } } } },
  cache_control,
}));
const conversation = (turns: number) =>
  Array.from({ length: turns }, (_, at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content: cached(`turn ${at}`) }));

const ask = (turns: number, more: object = {}, headers: Readonly<Record<string, string>> = {}) =>
  askFace(server, 'chat', {
    model: 'claude-haiku-4-5',
    content: 'x',
    stream: false,
    more: { messages: [{ role: 'system', content: [...cached('one'), ...cached('two')] }, ...conversation(turns)], ...more },
    headers,
  });

/** The texts and names of the blocks with a breakpoint. */
const breakpoints = () => {
  const { tools: declared = [], system, messages } = vendors.requests.at(-1)!.body;
  const blocks = [...declared, ...system, ...messages.flatMap(({ content }: { readonly content: unknown }) => content)];
  return blocks.filter((one) => one.cache_control !== undefined).map(({ name, text }) => name ?? text);
};

test('the last breakpoints of the tools, of the system text and of the messages are kept', async () => {
  const { status, headers } = await ask(5, { tools });
  expect([status, breakpoints()]).toEqual([200, ['b', 'two', 'turn 3', 'turn 4']]);
  expect(headers.get('x-dragoman-warnings')).toBe('cache_control: the provider accepts 4 cache breakpoints; the others were left out.');
  expect(vendors.requests).toHaveLength(1);
  expect(vendors.requests[0]!.body.tools[0].input_schema.properties).toHaveProperty('cache_control');
  expect((await ask(5, { tools }, { 'x-dragoman-strict': 'true' })).status).toBe(400);
});

test('the breakpoint of the whole request is one of them', async () => {
  await ask(3, { cache_control });
  expect([vendors.requests.at(-1)!.body.cache_control, breakpoints()]).toEqual([cache_control, ['two', 'turn 1', 'turn 2']]);
});

test('four are left as they are', async () => {
  const { headers } = await ask(1, { tools: tools.slice(1) });
  expect([headers.get('x-dragoman-warnings'), breakpoints()]).toEqual([null, ['b', 'one', 'two', 'turn 0']]);
});
