import { expect, test } from 'vitest';
import type { GenerateCall } from '#core/call';
import type { Context } from '#core/context';
import type { GenerateEvent, ToolCallPiece } from '#core/event';
import { fold } from '#core/fold';
import { gathered, type Generate } from '#core/generate';
import { Permits } from '#core/permits';
import type { WantedTools } from '#core/conversation';
import type { ServerTools } from '#core/server-tools';
import { calling } from './index.ts';

type Asked = { readonly name: string; readonly json?: string };

/** Answers each round with calls, or a text where there is none. */
interface Scripted {
  readonly rounds: readonly (readonly Asked[] | string)[];
  readonly asking?: readonly string[];
  readonly wanted?: Partial<WantedTools>;
  readonly clients?: readonly string[];
  readonly result?: string;
  readonly memory?: Context['memory'];
}

async function run({ rounds, asking = [], wanted = {}, clients = [], result: text, memory }: Scripted) {
  const requests: { readonly call: GenerateCall; readonly step: number }[] = [];
  const called: string[] = [];
  const admitted: number[] = [];
  const inner: Generate = async function* (call, { step }) {
    const said = rounds[requests.length] ?? rounds.at(-1)!;
    requests.push({ call, step });
    const calls = typeof said === 'string' ? [] : said;
    const events: GenerateEvent[] = [
      { type: 'started', model: 'm', ignored: [] },
      { type: 'text', candidate: 0, text: typeof said === 'string' ? said : '…' },
      ...calls.map(({ name, json = '{}' }, at): ToolCallPiece => ({ type: 'tool-call', candidate: 0, call: at, id: `c${requests.length}.${at}`, name, json })),
      { type: 'finished', candidate: 0, reason: calls.length > 0 ? 'tool' : 'stop', raw: '' },
      { type: 'usage', usage: { input: 10, output: 1, cached: 0, thoughts: 0, source: 'provider' } as never },
    ];
    yield events;
  };
  const tools: ServerTools = {
    offered: (_caller, all) =>
      Promise.resolve({
        tools: all.map(({ server, tool }) => ({
          declared: { type: 'function' as const, name: `s__${tool}` },
          server,
          name: tool,
          digest: 'd',
          needsApproval: asking.includes(tool),
          isReadOnly: false,
        })),
        unknown: [],
      }),
    permits: () => {},
    ofServer: () => Promise.resolve(undefined),
    call(_caller, { tool, json, approval }) {
      called.push(`${tool} ${json}${approval === undefined ? '' : ` ${approval}`}`);
      return Promise.resolve({ text: text ?? `result of ${tool}`, isError: false });
    },
  };
  const progress: Context['progress'] = { attempts: [] };
  const { signal } = new AbortController();
  const context = { step: 0, signal, caller: { userId: 1, teamIds: [] }, permits: new Permits(), progress, memory } as unknown as Context;
  const foreign = {
    type: 'foreign',
    dialect: 'native',
    value: {},
    wanted: { tools: ['a', 'b'].map((tool) => ({ server: 1, tool, asks: false })), ...wanted },
  } as const;
  const call: GenerateCall = {
    model: 'm',
    turns: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
    tools: [...clients.map((name) => ({ type: 'function' as const, name })), foreign],
    toolChoice: { type: 'required' },
    output: { type: 'text' },
    sampling: {},
    stream: false,
    extra: {},
  };
  const result = fold(await gathered(calling({ tools, inner, admits: async () => void admitted.push(called.length) })(call, context)));
  return { requests, called, admitted, progress, result, parts: result.candidates[0]!.parts };
}

test('tools are called in rounds, each a step of its own, until the model answers', async () => {
  const { requests, called, parts, progress, result } = await run({
    rounds: [[{ name: 's__a', json: '{"x":1}' }, { name: 's__b' }], [{ name: 's__a' }], 'done'],
  });
  expect(called).toEqual(['a {"x":1}', 'b {}', 'a {}']);
  expect(new Set(requests.map(({ step }) => step)).size).toBe(3);
  expect(requests.map(({ call }) => call.toolChoice)).toEqual([{ type: 'required' }, undefined, undefined]);
  expect(requests[0]!.call.tools.map((tool) => (tool.type === 'foreign' ? '' : tool.name))).toEqual(['s__a', 's__b']);
  expect(requests[1]!.call.turns.slice(1)).toMatchObject([
    { role: 'model', parts: [{ type: 'text' }, { type: 'tool-call', id: 'c1.0' }, { type: 'tool-call', id: 'c1.1' }] },
    {
      role: 'user',
      parts: [
        { type: 'tool-result', id: 'c1.0', parts: [{ text: 'result of a' }] },
        { type: 'tool-result', id: 'c1.1' },
      ],
    },
  ]);
  expect(parts.map((part) => (part.type === 'text' ? part.text : part.type)).join('')).toBe('……done');
  expect(progress.called).toHaveLength(3);
  expect(result.usage).toMatchObject({ input: 30, output: 3 });
});

test('of a round with a call that needs an approval the others are made, and their results are there when it goes on', async () => {
  const two = [{ name: 's__a' }, { name: 's__b' }, { name: 'rm_rf' }];
  const asked = await run({ rounds: [two], asking: ['b'] });
  expect([asked.called, asked.requests.length, asked.parts.filter(({ type }) => type === 'tool-call')]).toEqual([
    ['a {}'],
    1,
    [expect.objectContaining({ id: 'c1.1' })],
  ]);
  expect(asked.progress.called).toMatchObject([{ id: 'c1.0', text: 'result of a' }]);
  expect(asked.progress.waiting).toMatchObject({ turns: [{ role: 'model' }], calls: [{ id: 'c1.1', tool: 'b', digest: 'd' }] });
  for (const approved of [['c1.1'], []]) {
    const resumed = { ...asked.progress.waiting!, id: 7, approved };
    const { called, requests } = await run({ rounds: ['done'], asking: ['b'], wanted: { resumed } });
    expect(called).toEqual(approved.map((id) => `b {} 7.${id}`));
    expect(requests[0]!.call.turns.at(-1)).toMatchObject({
      role: 'user',
      parts: [
        { id: 'c1.0', parts: [{ text: 'result of a' }] },
        { id: 'c1.2', failed: true, parts: [{ text: 'There is no such tool.' }] },
        { id: 'c1.1', parts: [{ text: approved.length > 0 ? 'result of b' : 'The user did not approve this call.' }] },
      ],
    });
  }
});

test('a round with a call that is for the client is handed out whole, and none of its calls is made', async () => {
  const mixed = await run({ rounds: [[{ name: 's__a' }, { name: 'own' }]], clients: ['own'] });
  expect([mixed.called, mixed.progress.waiting?.calls.map(({ id }) => id)]).toEqual([[], ['c1.0']]);
  expect(mixed.parts.filter(({ type }) => type === 'tool-call')).toHaveLength(2);
  const own = await run({ rounds: [[{ name: 'own' }]], clients: ['own'] });
  expect([own.called, own.progress.waiting]).toEqual([[], undefined]);
});

test('what was approved is called before the model goes on, and what was not is answered for', async () => {
  const { progress } = await run({ rounds: [[{ name: 's__a' }, { name: 's__b' }]], asking: ['a', 'b'] });
  const resumed = { ...progress.waiting!, id: 7, approved: ['c1.1'] };
  const { called, admitted, requests, parts } = await run({ rounds: ['done'], asking: ['a', 'b'], wanted: { resumed } });
  expect([called, admitted]).toEqual([['b {} 7.c1.1'], [0]]); // admitted before any call
  expect(requests[0]!.call.turns.at(-1)).toMatchObject({
    role: 'user',
    parts: [
      { id: 'c1.1', parts: [{ text: 'result of b' }] },
      { id: 'c1.0', failed: true, parts: [{ text: 'The user did not approve this call.' }] },
    ],
  });
  expect(parts).toEqual([{ type: 'text', text: 'done' }]);
});

test('a tool of nobody is refused to the model, a name that the client has is the client’s, and a model that never stops calling is ended', async () => {
  const unknown = await run({ rounds: [[{ name: 'rm_rf' }], 'done'] });
  expect(unknown.called).toEqual([]);
  expect(unknown.requests[1]!.call.turns.at(-1)).toMatchObject({ parts: [{ failed: true, parts: [{ text: 'There is no such tool.' }] }] });
  const shadowed = await run({ rounds: [[{ name: 's__a' }]], clients: ['s__a'] });
  expect([shadowed.called, shadowed.progress.waiting]).toEqual([[], undefined]);
  const endless = await run({ rounds: [Array.from({ length: 10 }, () => ({ name: 's__a' }))] });
  expect([endless.requests.length, endless.called.length]).toEqual([25, 100]);
  expect(endless.parts.filter(({ type }) => type === 'tool-call')).toEqual([]);
  expect([endless.result.candidates[0]!.reason, endless.progress.warnings]).toEqual(['stop', [expect.stringContaining('ended before all calls')]]);
});

test('of each result what the model is shown is kept, of all of them 8 MB, and what has no room is said to the model', async () => {
  const round = Array.from({ length: 10 }, () => ({ name: 's__a' }));
  const { called, progress, requests } = await run({ rounds: [...Array.from({ length: 10 }, () => round), 'done'], result: 'x'.repeat(1_000_000) });
  const texts = progress.called!.map(({ text }) => text);
  expect(texts[0]).toBe(`${'x'.repeat(200_000)}\n[The rest is left out.]`);
  expect(requests[1]!.call.turns.at(-1)!.parts[0]).toMatchObject({ parts: [{ text: texts[0] }] });
  expect([texts.length, texts.join('').length < 8_500_000]).toEqual([100, true]);
  expect([called.length > 40, called.length < 60]).toEqual([true, true]);
  expect(progress.called!.filter(({ text, isError }) => isError && text.includes('at most 8 MB'))).toHaveLength(100 - 41);
  expect(requests.at(-1)!.call.turns.at(-1)!.parts.at(-1)).toMatchObject({
    failed: true,
    parts: [{ text: expect.stringContaining('was not called') as string }],
  });
});

test('results count against the memory of the process', async () => {
  const result = 'x'.repeat(12_345);
  let taken = 0;
  const memory = { take: (bytes: number) => bytes !== result.length || ++taken <= 2 };
  const { progress } = await run({ rounds: [[{ name: 's__a' }], [{ name: 's__a' }, { name: 's__b' }], 'done'], result, memory });
  expect(progress.called!.map(({ isError }) => isError)).toEqual([false, false, true]);
});
