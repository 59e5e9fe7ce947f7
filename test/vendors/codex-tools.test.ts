import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startVendors, type Vendors } from '../support/fakes/vendors/index.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

/** Current versions of codex declare all of their tools in an item of the input. https://github.com/SaladDay/cc-switch-cli/issues/466 */

// oxlint-disable-next-line typescript/no-explicit-any -- answers are read as codex does
type Any = any;

const parameters = { type: 'object', properties: { cell: { type: 'string' } }, required: ['cell'], additionalProperties: false };
const wait = { type: 'function', name: 'wait', description: 'Waits.', strict: false, parameters };
const exec = { type: 'custom', name: 'exec', description: 'Runs JavaScript.' };
const itemOf = (...tools: readonly unknown[]) => ({
  type: 'additional_tools',
  id: 'at_1',
  role: 'developer',
  tools: [{ type: 'namespace', name: 'functions', description: 'Code.', tools }],
});
const developer = { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'You are codex.' }] };
const user = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'use the tool' }] };

describe.each([
  ['at its own address', true],
  ['at an address that nobody knows', false],
])('a vendor %s', (_, known) => {
  let vendors: Vendors;
  let server: TestServer;

  beforeAll(async () => {
    vendors = await startVendors();
    server = await startTestServer({ yaml: known ? vendors.yaml : vendors.unknownYaml });
  });
  afterAll(async () => {
    await server.close();
    await vendors.close();
  });
  afterEach(() => vendors.reset());

  async function ask(model: string, input: readonly object[], headers: Readonly<Record<string, string>> = {}, tools?: readonly object[]) {
    const body = { model, input, tools, tool_choice: 'auto', parallel_tool_calls: false, store: false, stream: false };
    const answer = await fetch(`${server.url}/server/chatcompat/v1/responses`, {
      method: 'POST',
      headers: { 'x-access-tokens': server.key, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    if (answer.status !== 200) expect.fail(`${answer.status} ${text}`);
    return { output: (JSON.parse(text) as { readonly output: Any[] }).output, warnings: answer.headers.get('x-dragoman-warnings') };
  }

  const models = [
    'gpt-6-sol',
    'gpt-6-sol-on-responses',
    'gpt-4o',
    'claude-opus-5-5',
    'gemini-3-flash-preview',
    'gemini-2.5-flash',
    'deepseek-v4',
    'mistral-large-latest',
  ];

  test.each(models)('%s: a function of such an item is called and gets its result', async (model) => {
    const before = [itemOf(wait), developer, user];
    const { output } = await ask(model, before);
    const call = output.find(({ type }) => type === 'function_call');
    expect(call).toMatchObject({ name: 'wait', namespace: 'functions' });
    const second = await ask(model, [...before, ...output, { type: 'function_call_output', call_id: call.call_id, output: 'waited' }]);
    expect(JSON.stringify(second.output)).toContain('waited');
    const refused = vendors.requests.filter(({ status }) => status !== 200).map(({ message }) => message);
    if (known) expect(refused).toEqual([]);
  });

  test.each(models)('%s: a tool of free text of such an item is called and gets its result', async (model) => {
    const before = [itemOf(exec), developer, user];
    const { output } = await ask(model, before);
    const call = output.find(({ type }) => type === 'custom_tool_call');
    expect(call).toMatchObject({ name: 'exec', namespace: 'functions' });
    const second = await ask(model, [...before, ...output, { type: 'custom_tool_call_output', call_id: call.call_id, output: 'ran' }]);
    expect(JSON.stringify(second.output)).toContain('ran');
  });

  test.each(models)('%s: what a namespace is for is told with each of its tools where there are no namespaces', async (model) => {
    const { warnings } = await ask(model, [user], {}, itemOf(wait, exec).tools);
    const { body } = vendors.requests.findLast(({ status }) => status === 200)!;
    const text = JSON.stringify(body.tools);
    if (body.tools[0].type === 'namespace') expect(body.tools).toEqual(itemOf(wait, exec).tools);
    else expect([text.includes('"Code.\\n\\nWaits."'), text.includes('"Code.\\n\\nRuns JavaScript.')]).toEqual([true, true]);
    expect(warnings ?? '').not.toContain('namespace');
  });

  test('the item reaches providers of the API as it came, and nothing is declared twice', async () => {
    await ask('gpt-6-sol-on-responses', [itemOf(wait, exec), developer, user], { 'x-dragoman-strict': 'true' });
    const { body } = vendors.requests.at(-1)!;
    expect(body.input[0]).toEqual(itemOf(wait, exec));
    expect(body).not.toHaveProperty('tools');
  });

  test('an item of a type that nobody knows reaches providers of the API, and is named in a warning elsewhere', async () => {
    const items = [
      { type: 'context_of_tomorrow', role: 'user', strength: 3 },
      { type: 'tool_search_output', call_id: 'c', execution: 'client', tools: [] },
      user,
    ];
    for (const model of ['claude-opus-4-6', 'gpt-4o', 'gemini-3-flash-preview']) {
      const { warnings } = await ask(model, items);
      expect(warnings).toContain('context_of_tomorrow: only openai-responses supports it.');
    }
  });

  test.each(models)('%s: a tool that is declared again is sent once, as it was declared last', async (model) => {
    const older = itemOf({ ...wait, description: 'An older one.' });
    const top = { type: 'additional_tools', role: 'developer', tools: [{ ...wait, name: 'look', description: 'An older one.' }] };
    const newer = { ...top, tools: [{ ...wait, name: 'look' }] };
    const { output } = await ask(model, [older, top, developer, user, itemOf(wait), newer, user]);
    expect(output.some(({ type }) => type === 'function_call')).toBe(true);
    const { body } = vendors.requests.at(-1)!;
    if (body.input) return; // the items reach it as they came
    expect(JSON.stringify(body)).not.toContain('An older one.');
    expect(JSON.stringify(body.tools).match(/Waits\."/g)).toHaveLength(2);
  });

  test('a tool of the request itself holds, and providers of the API get both', async () => {
    const tools = [{ ...wait, name: 'look', description: 'The newest.' }];
    const input = [{ type: 'additional_tools', role: 'developer', tools: [{ ...wait, name: 'look' }] }, user];
    await ask('claude-opus-4-6', input, {}, tools);
    expect(vendors.requests.at(-1)!.body.tools).toEqual([expect.objectContaining({ name: 'look', description: 'The newest.' })]);
    await ask('gpt-6-sol-on-responses', input, {}, tools);
    expect(vendors.requests.at(-1)!.body).toMatchObject({ tools, input: [input[0], {}] });
  });

  test('declarations that cannot be read are named in warnings, and reach providers of the API as they came', async () => {
    const tools = [wait, 'none', { type: 'function' }, { name: 'typeless' }];
    const item = { type: 'additional_tools', role: 'developer', tools };
    for (const model of ['claude-opus-4-6', 'gpt-4o', 'gemini-3-flash-preview']) {
      const { warnings } = await ask(model, [item, user]);
      expect(warnings).not.toContain('tools[0]');
      for (const at of [1, 2, 3]) expect(warnings).toContain(`additional_tools.tools[${at}]: `);
    }
    await ask('gpt-6-sol-on-responses', [item, user], { 'x-dragoman-strict': 'true' }).catch(() => undefined);
    expect(vendors.requests.at(-1)!.body.input[0]).toEqual(item);
  });

  const broken = [
    'none',
    { type: 'function' },
    { ...wait, name: 'bare', parameters: 'none' },
    { ...wait, name: 'odd', description: 5 },
    { type: 'look', name: 'x' },
  ];

  test.each(['of such an item', 'of the request'])(
    'members of a namespace %s that cannot be read are named in warnings, and reach providers as they came',
    async (where) => {
      const item = itemOf(wait, ...broken);
      const isTop = where === 'of the request';
      const said = (model: string) => (isTop ? ask(model, [user], {}, item.tools) : ask(model, [item, user]));
      const field = isTop ? 'tools[0].tools' : 'additional_tools.tools[0].tools';
      for (const model of ['claude-opus-4-6', 'gpt-4o', 'gemini-3-flash-preview']) {
        const { output, warnings } = await said(model);
        expect(output.some(({ type, name }) => type === 'function_call' && name === 'wait')).toBe(true);
        expect(warnings).not.toContain(`${field}[0]`);
        for (const at of [1, 2, 3, 4, 5]) expect(warnings).toContain(`${field}[${at}]: `);
      }
      const { warnings } = await said('gpt-6-sol-on-responses').catch(() => ({ warnings: 'refused' }));
      expect(['refused', null]).toContain(warnings);
      const { body } = vendors.requests.at(-1)!;
      expect(isTop ? body.tools : body.input[0].tools).toEqual(item.tools);
    },
  );

  test('those of a long list are named together', async () => {
    const many = Array.from({ length: 30 }, (_one, at) => at);
    const { warnings } = await ask('gpt-4o', [itemOf(...many, wait), user]);
    expect(warnings).toContain('additional_tools.tools[0].tools[19]: ');
    expect(warnings).toContain('additional_tools.tools[0].tools[20] and 9 others: ');
  });

  test('those that are too many are named in one warning', async () => {
    const tools = Array.from({ length: 1030 }, (_one, at) => ({ ...wait, name: `wait_${at}` }));
    const { warnings } = await ask('gpt-4o', [{ type: 'additional_tools', role: 'developer', tools }, user]).catch(() => ({ warnings: 'refused' }));
    expect(warnings).toContain('additional_tools.tools[1024-1029]: ');
  });
});
