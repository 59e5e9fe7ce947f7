import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { GenerateCall, Output, Reasoning } from '#core/call';
import type { Sampling } from '#core/sampling';
import type { MediaPart, Part, Tool, ToolChoice, ToolResultPart, Turn } from '#core/conversation';
import { isObject, type Extra } from '#core/json';
import { chat, gemini, messages, model, responses, wires, type CrossedWire } from './wires.ts';
import { recordingOf } from '../support/recordings.ts';

/** Every field of a call × the wires: it is read back out of what the provider is sent, or named among what is ignored. */

/** Values of every member: a new member of the type needs its own. */
type Samples<Type> = { readonly [Key in keyof Required<Type>]: readonly Required<Type>[Key][] };

const user: Turn = { role: 'user', parts: [{ type: 'text', text: 'hi' }] };
const bare: GenerateCall = { model, turns: [user], tools: [], output: { type: 'text' }, sampling: {}, stream: false, extra: {} };

interface Sample {
  readonly name: string;
  readonly call: GenerateCall;
  /** What is looked at, in the call and in what comes back. */
  view(call: GenerateCall): unknown;
  /** How what is ignored is called. */
  readonly word: RegExp;
  /** What a wire has in its place, and that is no loss. */
  readonly instead?: readonly (readonly [wire: CrossedWire, view: unknown])[];
}

/** Members in one order. */
const said = (value: unknown) =>
  JSON.stringify(value, (_, inner: unknown) => (isObject(inner) ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1))) : inner));

// ——— sampling ———

const sampling: Samples<Sampling> = {
  temperature: [0, 0.7, 1, 1.5],
  topP: [0.5],
  topK: [40],
  maxTokens: [50],
  frequencyPenalty: [0.5],
  presencePenalty: [-0.5],
  candidates: [1, 2],
  seed: [7, 2 ** 40],
  stop: [['END'], ['a', 'b'], ['\n']],
  logprobs: [0, 3],
  logitBias: [{ 42: 5 }],
};

/** One answer is what every wire makes. */
const usual: Partial<Record<keyof Sampling, unknown>> = { candidates: 1 };

const samplingSamples = Object.entries(sampling).flatMap(([key, values]) =>
  (values as readonly unknown[]).map((value): Sample => {
    const view = (call: GenerateCall) => call.sampling[key as keyof Sampling] ?? usual[key as keyof Sampling];
    const word = new RegExp(`^(${key === 'candidates' ? 'n|' : ''}${key}|${key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}):`);
    return { name: `sampling.${key}: ${said(value)}`, call: { ...bare, sampling: { [key]: value } }, view, word };
  }),
);

// ——— tools, choice, output, thinking ———

const look: Tool = { type: 'function', name: 'look', parameters: { type: 'object', properties: { at: { type: 'string' } } } };
const hear: Tool = { type: 'function', name: 'hear', parameters: { type: 'object', properties: {} } };

const members: Samples<Pick<GenerateCall, 'toolChoice' | 'parallelToolCalls' | 'output' | 'reasoning'>> = {
  toolChoice: [
    { type: 'auto' },
    { type: 'none' },
    { type: 'required' },
    { type: 'tool', name: 'look' },
    { type: 'allowed', names: ['look'], mode: 'auto' },
    { type: 'allowed', names: ['look'], mode: 'required' },
  ],
  parallelToolCalls: [true, false],
  output: [
    { type: 'text' },
    { type: 'json' },
    { type: 'schema', schema: { type: 'object' }, name: 'answer' },
    { type: 'schema', schema: { type: 'object' }, name: 'answer', description: 'Says it.' },
    { type: 'schema', schema: { type: 'object' }, name: 'answer', strict: true },
  ],
  reasoning: [{}, ...(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const).map((effort) => ({ effort }))],
};

/** Who may be called: a wire without a choice among tools is told of those alone. */
const callable = ({ toolChoice: choice, tools }: GenerateCall) => {
  const names = tools.flatMap((tool) => (tool.type === 'foreign' ? [] : [tool.name]));
  switch (choice?.type) {
    case 'allowed':
      return { must: choice.mode === 'required', names: choice.names };
    case 'tool':
      return { must: true, names: [choice.name] };
    case 'none':
      return { must: false, names: [] };
    default:
      return { must: choice?.type === 'required', names };
  }
};

const choiceSamples = members.toolChoice.map((toolChoice: ToolChoice): Sample => ({
  name: `toolChoice: ${said(toolChoice)}`,
  call: { ...bare, tools: [look, hear], toolChoice },
  view: callable,
  word: /^(tools|tool_choice):/,
}));

/** The choice of a tool that not every wire can be given. */
const hosted = wires.map((wire): Tool => ({ type: 'foreign', dialect: wire.name, value: { type: 'novel_20300101', name: 'novel' } }));
const sql: Tool = { type: 'custom', name: 'sql' };

test.each(wires)('a provider of $name is not asked to call a tool that it is not given', (wire) => {
  for (const tool of [sql, ...hosted]) {
    const name = tool.type === 'foreign' ? 'novel' : 'sql';
    const choices: readonly ToolChoice[] = [
      { type: 'tool', name },
      { type: 'allowed', names: [name], mode: 'required' },
      { type: 'allowed', names: [name, 'look'], mode: 'auto' },
    ];
    for (const toolChoice of choices) {
      const { body, ignored } = wire.sayRequest({ ...bare, tools: [tool, look], toolChoice });
      const { tools: given = [], tool_choice: one, toolConfig: other } = body;
      const chosen = said([one ?? null, other ?? null]).includes(`"${name}"`);
      if (chosen) expect(said(given)).toContain(`"${name}"`);
      else if (!said(given).includes(`"${name}"`)) expect(ignored).toContainEqual(expect.stringMatching(/^tool_choice:/));
    }
  }
});

const parallelSamples = members.parallelToolCalls.map((parallelToolCalls: boolean): Sample => ({
  name: `parallelToolCalls: ${parallelToolCalls}`,
  call: { ...bare, tools: [look], parallelToolCalls },
  view: (call) => call.parallelToolCalls ?? true, // every wire's own way
  word: /^parallel_tool_calls:/,
}));

/** A label that some wires demand: nothing depends on it. A schema is always kept to where the wire has no choice about it. */
const outputSamples = members.output.map((output: Output): Sample => ({
  name: `output: ${said(output)}`,
  call: { ...bare, output },
  view: ({ output: { type, ...others } }) => {
    if (type !== 'schema') return { type };
    const { schema, description } = others as Extract<Output, { type: 'schema' }>;
    const { additionalProperties: _closed, ...open } = schema; // some wires accept closed objects alone
    return { type, schema: { description, ...open } };
  },
  word: /^response_format/,
}));

/** The nearest that the budgets of a wire say. */
const nearest: Readonly<Record<string, Readonly<Record<string, string>>>> = { gemini: { xhigh: 'high', max: 'high' } };

const reasoningSamples = members.reasoning.map((reasoning: Reasoning): Sample => ({
  name: `reasoning: ${said(reasoning)}`,
  call: { ...bare, reasoning, sampling: { maxTokens: 100_000 } },
  view: (call) => call.reasoning?.effort ?? (call.reasoning ? 'as it likes' : undefined),
  word: /^reasoning_effort:/,
  instead: [
    ...wires.map((wire) => [wire, nearest[wire.name]?.[reasoning.effort ?? '']] as const).filter(([, effort]) => effort !== undefined),
    // Models of these wires think where nobody says anything; the other one has to be told how much.
    ...(reasoning.effort === undefined
      ? ([
          [chat, undefined],
          [responses, undefined],
          [messages, 'medium'],
        ] as const)
      : []),
  ],
}));

const tools: readonly Tool[] = [
  look,
  hear,
  { type: 'function', name: 'bare' },
  { ...look, description: 'Looks there.' },
  { ...look, strict: true },
  { ...look, strict: false },
  { type: 'custom', name: 'sql' },
  { type: 'custom', name: 'sql', description: 'Asks.', format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'start: "x"' } } },
  ...wires.map((wire): Tool => ({
    type: 'foreign',
    dialect: wire.name,
    value: wire === gemini ? { googleMaps: {} } : { type: 'novel_20300101', name: 'novel' },
  })),
];

const toolSamples = tools.map((tool): Sample => ({
  name: `tools: ${said(tool)}`,
  call: { ...bare, tools: [tool, { ...hear, name: 'other' }] },
  view: (call) =>
    call.tools
      .flatMap((one): readonly object[] => {
        if (one.type === 'foreign') return [one.value];
        if (one.type === 'custom') return [one];
        const { extra: _notes, parameters = {}, strict, ...others } = one;
        const { additionalProperties: _closed, ...open } = parameters;
        return [{ ...others, parameters: { type: 'object', properties: {}, ...open }, ...(strict ? { strict } : {}) }];
      })
      .toSorted((a, b) => (said(a) < said(b) ? -1 : 1)), // in no order
  word: /^(tools|strict):/,
}));

// ——— the conversation ———

const pixels = 'iVBORw0KGgo=';
const media: readonly Omit<MediaPart, 'type'>[] = [
  { kind: 'image', mediaType: 'image/png', base64: pixels },
  { kind: 'image', url: 'https://example.com/a.png' },
  { kind: 'image', fileId: 'file-1' },
  { kind: 'image', mediaType: 'image/png', base64: pixels, detail: 'high' },
  { kind: 'file', mediaType: 'application/pdf', base64: 'JVBERi0=' },
  { kind: 'file', mediaType: 'application/pdf', base64: 'JVBERi0=', name: 'a.pdf' },
  { kind: 'file', url: 'https://example.com/a.pdf' },
  { kind: 'file', fileId: 'file-2' },
  { kind: 'audio', mediaType: 'audio/wav', base64: 'UklGRg==' },
  { kind: 'audio', mediaType: 'audio/mpeg', base64: '//uQ' },
  { kind: 'audio', mediaType: 'audio/ogg', base64: 'T2dnUw==' },
  { kind: 'video', mediaType: 'video/mp4', base64: 'AAAA' },
  { kind: 'video', url: 'https://example.com/a.mp4' },
];
const mediaParts = media.map((one): MediaPart => ({ type: 'media', ...one }));

const called: Turn = { role: 'model', parts: [{ type: 'tool-call', id: 'call_1', name: 'look', json: '{"at":"it"}' }] };
const result = (parts: ToolResultPart['parts'], more: object = {}): Turn => ({ role: 'user', parts: [{ type: 'tool-result', id: 'call_1', parts, ...more }] });
const text = (words: string): Part & { type: 'text' } => ({ type: 'text', text: words });
const signed = (wire: CrossedWire): Extra => ({
  [wire.name]: { [wire === gemini ? 'thoughtSignature' : wire === messages ? 'signature' : 'encrypted_content']: 'c2ln' },
});
const foreign = (wire: CrossedWire): Part => ({
  type: 'foreign',
  dialect: wire.name,
  value: wire === gemini ? { executableCode: { code: '1' } } : { type: wire === messages ? 'redacted_thinking' : 'web_search_call', data: 'x' },
});

const conversations: Readonly<Record<string, readonly (readonly Turn[])[]>> = {
  system: [
    [{ role: 'system', parts: [text('Be terse.')] }, user],
    [{ role: 'system', parts: [text('Be terse.'), text('Be kind.')] }, user],
    [user, { role: 'model', parts: [text('ho')] }, { role: 'system', parts: [text('Now be terse.')] }, user],
    ...mediaParts.slice(0, 1).map((part): readonly Turn[] => [{ role: 'system', parts: [text('As this:'), part] }, user]),
  ],
  text: [[user, { role: 'model', parts: [text('ho')] }, user], [{ role: 'user', parts: [text('a'), text('b')] }]],
  refusal: [[user, { role: 'model', parts: [{ type: 'refusal', text: 'No.' }] }, user]],
  media: mediaParts.map((part) => [{ role: 'user', parts: [text('see'), part] }]),
  'media of the model': mediaParts.slice(0, 1).map((part) => [user, { role: 'model', parts: [text('there'), part] }, user]),
  'tool call': [
    [user, called, result([text('a wall')])],
    [user, { role: 'model', parts: [text('I look.'), ...called.parts] }, result([text('a wall')])],
    [user, { role: 'model', parts: [{ type: 'tool-call', id: 'call_1', name: 'look', json: 'cut off {' }] }, result([text('a wall')])],
    [user, { role: 'model', parts: [{ type: 'tool-call', id: 'call_1', name: 'sql', json: 'select 1', custom: true }] }, result([text('1')], customNote())],
    [
      user,
      { role: 'model', parts: [...called.parts, { type: 'tool-call', id: 'call_2', name: 'hear', json: '{}' }] },
      { role: 'user', parts: [...result([text('a wall')]).parts, { type: 'tool-result', id: 'call_2', parts: [text('nothing')] }, text('well?')] },
    ],
  ],
  'tool result': [
    [user, called, result([])],
    [user, called, result([text('{"wall":true}')])],
    [user, called, result([text('a wall')], { failed: true })],
    [user, called, result([text('{"error":{"code":4}}')], { failed: true })],
    [user, called, result([text('{"code":4}')], { failed: true })],
    [user, called, result([text('one'), text('two')])],
    ...mediaParts.map((part): readonly Turn[] => [user, called, result([text('this'), part])]),
  ],
  thought: [
    [user, { role: 'model', parts: [{ type: 'thought', text: 'Hm.' }, text('ho')] }, user],
    [user, { role: 'model', parts: [{ type: 'thought', text: 'Hm.' }] }, user],
    ...wires.map((wire): readonly Turn[] => [user, { role: 'model', parts: [{ type: 'thought', text: 'Hm.', extra: signed(wire) }, text('ho')] }, user]),
  ],
  foreign: wires.map((wire) => [user, { role: 'model', parts: [foreign(wire), text('ho')] }, user]),
};

function customNote() {
  return { extra: { 'openai-responses': { '.custom': true } } };
}

/** What is said, turn by turn: those of one speaker that follow each other are one. */
function heard({ turns }: GenerateCall): unknown {
  const out: { role: string; parts: unknown[] }[] = [];
  for (const { role, parts } of turns) {
    const last = out.at(-1);
    const views = parts.flatMap((part) => viewOf(part));
    if (views.length === 0) continue;
    if (last?.role === role) last.parts.push(...views);
    else out.push({ role, parts: views });
  }
  return out.map(({ role, parts }) => ({ role, parts: together(parts) }));
}

/** Images that a tool returned are as good beside its result. */
const together = (parts: readonly unknown[]) => [...parts.filter((part) => !isMedia(part)), ...parts.filter(isMedia)];
const isMedia = (part: unknown) => isObject(part) && part['type'] === 'media';

function viewOf(part: Part): readonly unknown[] {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return part.text === '' ? [] : [part.text]; // it says nothing
    case 'thought':
      return [{ type: part.type, text: part.text }];
    case 'tool-call': {
      const { id, name, json, custom } = part;
      return [{ id, name, json, ...(custom ? { custom } : {}) }];
    }
    case 'tool-result': {
      const texts = part.parts.flatMap((one) => (one.type === 'text' ? [one.text] : [])).join('\n');
      const plain = unwrapped(unwrapped(unwrapped(texts, 'output'), 'error'), 'error'); // a text that is an error may stand in an error
      return [{ result: part.id, text: plain, ...(part.failed ? { failed: true } : {}) }, ...part.parts.filter((one) => one.type === 'media').flatMap(viewOf)];
    }
    case 'media': {
      const { extra: _notes, detail = 'auto', mediaType, name, ...others } = part;
      const seen = { ...others, ...(name === undefined || /^document\.\w+$/.test(name) ? {} : { name }) }; // where the client gave none
      return [{ ...seen, ...(seen.url === undefined ? { mediaType } : {}), ...(detail === 'auto' ? {} : { detail }) }];
    }
    case 'foreign':
      return [part.value];
    case 'search':
      return []; // of answers alone
    default:
      return part satisfies never;
  }
}

/** Text that stands in an object where the wire wants one. */
function unwrapped(json: string, name: string): string {
  try {
    const value: unknown = JSON.parse(json || '{}');
    if (!isObject(value)) return json;
    const inner = Object.keys(value).length === 1 ? value[name] : undefined;
    return typeof inner === 'string' ? inner : inner === undefined ? JSON.stringify(value) : JSON.stringify(inner);
  } catch {
    return json;
  }
}

const turnSamples = Object.entries(conversations).flatMap(([name, list]) =>
  list.map((turns): Sample => ({ name: `${name}: ${said(turns)}`, call: { ...bare, turns }, view: heard, word: /^[\w ]+:/ })),
);

// ——— what only one wire knows ———

const novel = (wire: CrossedWire): Extra => ({ [wire.name]: { novel: 'n' } });
const hasNovel = (value: unknown) => /"novel":"n"/.test(JSON.stringify(value));

const extraSamples = wires.flatMap((wire): Sample[] => {
  const extra = novel(wire);
  const calls: Readonly<Record<string, GenerateCall>> = {
    'a call': { ...bare, extra },
    'a turn': { ...bare, turns: [{ ...user, extra }] },
    'a text': { ...bare, turns: [{ role: 'user', parts: [{ type: 'text', text: 'hi', extra }] }] },
    'an image': { ...bare, turns: [{ role: 'user', parts: [{ ...mediaParts[0]!, extra }] }] },
    'a function': { ...bare, tools: [{ ...look, extra }] },
    'a tool call': { ...bare, turns: [user, { role: 'model', parts: [{ ...called.parts[0]!, extra } as Part] }, result([text('a')])] },
    'a tool result': { ...bare, turns: [user, called, result([text('a')], { extra })] },
  };
  return Object.entries(calls).map(([place, call]) => ({ name: `a field of ${wire.name} on ${place}`, call, view: hasNovel, word: /^novel:/ }));
});

// ——— what real clients send ———

/** A view of each kind, as the samples have them. Thinking is left out: its words are not the same everywhere. */
const views = [samplingSamples, choiceSamples, parallelSamples, outputSamples, toolSamples, turnSamples].flatMap((kind) =>
  Map.groupBy(kind, ({ name }) => name.split(':', 1)[0]!)
    .values()
    .map(([first]) => first!)
    .toArray(),
);

interface Sent {
  readonly name: string;
  readonly url?: string;
  readonly body: { readonly model?: string };
}

/** Those of clients of the messages wire were not recorded. */
const genuine = [chat, responses, gemini].flatMap((wire) =>
  (JSON.parse(readFileSync(recordingOf(wire.name, 'requests.json'), 'utf8')) as Sent[]).flatMap(({ name, body }) => {
    try {
      return [{ name: `${wire.name}: ${name}`, call: wire.readRequest(body) }];
    } catch {
      return []; // meant to be refused, or going on from what was kept
    }
  }),
);

// ——— the cross ———

const samples: readonly Sample[] = [
  ...samplingSamples,
  ...choiceSamples,
  ...parallelSamples,
  ...outputSamples,
  ...reasoningSamples,
  ...toolSamples,
  ...turnSamples,
  ...extraSamples,
];

describe.each(wires)('a provider of $name', (wire) => {
  test.each(samples)('is told, or it is said what it is not told: $name', ({ call, view, word, instead = [] }) => {
    const { body, ignored } = wire.sayRequest(call);
    const wanted = [view(call), ...instead.filter(([one]) => one === wire).map(([, other]) => other)].map(said);
    const got = said(view(backOf(wire, body)));
    if (wanted.includes(got)) expect(ignored).toEqual([]);
    else expect(ignored, `${got} where ${wanted.join(' or ')} was asked`).toContainEqual(expect.stringMatching(word));
  });

  test('is told to stream, but where that stands in the address', () => {
    if (wire === gemini) return expect(wire.sayRequest({ ...bare, stream: true }).body).toEqual(wire.sayRequest(bare).body);
    expect(wire.sayRequest({ ...bare, stream: true }).body).toMatchObject({ stream: true });
    expect(wire.sayRequest(bare).body).not.toHaveProperty('stream');
  });

  test.each(genuine)('is told all of a request of $name, or it is said what it is not told', ({ call }) => {
    const { body, ignored, unpromised } = wire.sayRequest(call);
    const back = backOf(wire, body);
    for (const { name, view, word } of views) {
      if (unpromised && name.startsWith('output')) continue; // the answer is held against the schema of the client
      if (view(call) !== undefined && said(view(call)) !== said(view(back)))
        expect(ignored, `${name}: ${said(view(back))} where ${said(view(call))} was asked`).toContainEqual(expect.stringMatching(word));
    }
  });
});

/** What a provider is sent, read again. */
const backOf = (wire: CrossedWire, body: object): GenerateCall => wire.readRequest(JSON.parse(JSON.stringify(body)));
