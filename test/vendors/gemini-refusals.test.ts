import { beforeEach, describe, expect, test } from 'vitest';
import { always, badRequest, ok, on, type Behaviour } from '../support/fakes/upstream/index.ts';
import { askFace, type Face, spelled } from '../support/all-faces.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** What Gemini refuses, in its own words, from every interface: the client gets its answer, and the next request is right the first time. */

let models = 0;
let model = '';
const names = Array.from({ length: 80 }, (_, at) => `g${at}`);

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  google: { dialect: gemini, baseUrl: "${url}/v1beta", apiKeys: [k] }
models:
${names.map((name) => `  ${name}: { targets: [{ provider: google }] }\n`).join('')}routing: { cooldownSeconds: 0 }
`,
}));

beforeEach(() => {
  model = names[models++]!; // nothing is known of it
});

const faces: readonly Face[] = ['chat', 'responses', 'messages'];

interface Sent {
  readonly contents: readonly { readonly role: string; readonly parts: readonly Readonly<Record<string, unknown>>[] }[];
  readonly systemInstruction?: { readonly parts: readonly { readonly text: string }[] };
  readonly tools?: readonly object[];
  readonly toolConfig?: object;
  readonly generationConfig?: Readonly<Record<string, unknown>> & {
    readonly thinkingConfig?: { readonly thinkingBudget?: number; readonly thinkingLevel?: string };
  };
}
const sent = (): readonly Sent[] => upstream.requests.map(({ json }) => json as Sent);
const thinkingSent = () => sent().map(({ generationConfig }) => generationConfig?.thinkingConfig);

/** Refuses what fits, and answers the rest. */
function refusing(message: string, fits: (body: Sent) => boolean): void {
  const refusal = badRequest({ message });
  const behaviour: Behaviour = {
    name: 'refusing',
    uses: Infinity,
    answer: (exchange) => (fits(exchange.request.json as Sent) ? refusal : ok({ text: '{"a":"b"}' })).answer(exchange),
  };
  upstream.script(behaviour);
}

const ask = (face: Face, more: object, stream = false, headers = {}) => askFace(server, face, { model, content: 'Hello there', stream, more, headers });

/** An effort in the words of each interface. */
const effort = (face: Face, word: string): object =>
  face === 'chat'
    ? { reasoning_effort: word }
    : face === 'responses'
      ? { reasoning: { effort: word } }
      : word === 'none'
        ? { thinking: { type: 'disabled' } }
        : { thinking: { type: 'adaptive' }, output_config: { effort: word } };

const limit = (face: Face, most: number): object => ({ [spelled(face, 'max_tokens')]: most });

describe('thinking', () => {
  const budgetOf = (body: Sent) => body.generationConfig?.thinkingConfig?.thinkingBudget;

  test.each(faces)('of a model that always thinks is the least where %s asks for none, and others still think and see it', async (face) => {
    refusing('Budget 0 is invalid. This model only works in thinking mode.', (body) => budgetOf(body) === 0);
    const first = await ask(face, effort(face, 'none'));
    expect([first.status, first.headers.get('x-dragoman-warnings')]).toEqual([
      200,
      expect.stringContaining(`${spelled(face, 'reasoning_effort')}: this model always thinks`),
    ]);
    expect((await ask(face, { ...effort(face, 'high'), ...limit(face, 40_000) }, true)).status).toBe(200);
    expect((await ask(face, effort(face, 'none'))).status).toBe(200);
    expect(thinkingSent()).toEqual([
      { thinkingBudget: 0 },
      { thinkingBudget: 128 },
      { thinkingBudget: 24_576, includeThoughts: true },
      { thinkingBudget: 128 },
    ]);
  });

  test('that nobody can do without is refused where the client is strict', async () => {
    refusing('Budget 0 is invalid. This model only works in thinking mode.', (body) => budgetOf(body) === 0);
    expect((await ask('chat', effort('chat', 'none'), false, { 'x-dragoman-strict': 'true' })).status).toBe(400);
  });

  test('within a range that the provider names changes no budget inside of it', async () => {
    refusing(
      'Unable to submit request because thinking_budget is out of range; supported values are integers from 1 to 8192. Learn more: https://x',
      (body) => budgetOf(body)! > 8192,
    );
    for (const word of ['high', 'low', 'none', 'high']) expect((await ask('chat', effort('chat', word))).status).toBe(200);
    expect(thinkingSent()).toEqual([
      { thinkingBudget: 24_576, includeThoughts: true },
      { thinkingBudget: 8192, includeThoughts: true },
      { thinkingBudget: 1024, includeThoughts: true },
      { thinkingBudget: 0 },
      { thinkingBudget: 8192, includeThoughts: true },
    ]);
  });

  test.each(faces)('leaves a quarter of its limit to the answer of %s, and is left out where that is too little to think', async (face) => {
    upstream.script(always(ok()));
    const warnings: (string | null)[] = [];
    for (const most of [40_000, 5000, 500, 100])
      warnings.push((await ask(face, { ...effort(face, 'high'), ...limit(face, most) })).headers.get('x-dragoman-warnings'));
    expect(thinkingSent()).toEqual([
      { thinkingBudget: 24_576, includeThoughts: true },
      { thinkingBudget: 3750, includeThoughts: true },
      { thinkingBudget: 375, includeThoughts: true },
      { thinkingBudget: 0 },
    ]);
    expect(warnings).toEqual([null, null, null, expect.stringContaining(`${spelled(face, 'reasoning_effort')}: `)]);
  });

  test('that is too little for the model is the least of one that always thinks, and none of others', async () => {
    const asking = () => ask('chat', { ...effort('chat', 'high'), max_tokens: 600 });
    refusing('Thinking budget is out of range; supported values are integers from 512 to 24576.', (body) => budgetOf(body) === 450);
    expect((await asking()).headers.get('x-dragoman-warnings')).toContain('too little to think');
    expect(thinkingSent()).toEqual([{ thinkingBudget: 450, includeThoughts: true }, { thinkingBudget: 0 }]);
    upstream.reset();
    refusing('Budget 0 is invalid. This model only works in thinking mode.', (body) => budgetOf(body) === 0);
    const { status, headers } = await asking();
    expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringContaining('this model always thinks')]);
    expect(thinkingSent()).toEqual([{ thinkingBudget: 0 }, { thinkingBudget: 512, includeThoughts: true }]);
  });

  test('by a level is asked for where the model refuses budgets, at a level that it accepts', async () => {
    const levelOf = (body: Sent) => body.generationConfig?.thinkingConfig?.thinkingLevel;
    upstream.script(badRequest({ message: 'Thinking budget is not supported for this model. Use thinking_budget no more.' }));
    refusing('Thinking level MEDIUM is not supported for this model. Please retry with other thinking level.', (body) => levelOf(body) === 'medium');
    for (const word of ['medium', 'low', 'none']) expect((await ask('chat', effort('chat', word))).status).toBe(200);
    expect(thinkingSent()).toEqual([
      { thinkingBudget: 8192, includeThoughts: true },
      { thinkingLevel: 'medium', includeThoughts: true },
      { thinkingLevel: 'high', includeThoughts: true },
      { thinkingLevel: 'low', includeThoughts: true },
      { thinkingLevel: 'minimal' },
    ]);
  });

  test('is left out where the model has none', async () => {
    refusing('Thinking is not enabled for models/gemini-2.0-flash', (body) => body.generationConfig?.thinkingConfig !== undefined);
    const { status, headers } = await ask('responses', effort('responses', 'high'));
    expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, 'reasoning.effort: this model does not take it.']);
  });

  test('that a client of this wire asked for itself is between it and the provider', async () => {
    refusing('Budget 0 is invalid. This model only works in thinking mode.', (body) => budgetOf(body) === 0);
    const { status, raw } = await ask('gencompat', { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } });
    expect([status, raw]).toEqual([400, expect.stringContaining('Budget 0 is invalid.')]);
    expect(upstream.requests).toHaveLength(1);
  });
});

const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false };
const tool = { type: 'object', properties: {} };

/** An answer of a schema beside a tool, in the words of each interface. */
const formatted: Readonly<Record<Exclude<Face, 'gencompat'>, object>> = {
  chat: {
    response_format: { type: 'json_schema', json_schema: { name: 'x', schema } },
    tools: [{ type: 'function', function: { name: 'look', parameters: tool } }],
  },
  responses: {
    text: { format: { type: 'json_schema', name: 'x', schema } },
    tools: [{ type: 'function', name: 'look', parameters: tool }],
  },
  messages: { output_config: { format: { type: 'json_schema', schema } }, tools: [{ name: 'look', input_schema: tool }] },
};

describe('a JSON schema beside tools', () => {
  test.each(['chat', 'responses', 'messages'] as const)('is an instruction for a model that takes only one of them: %s', async (face) => {
    refusing(
      "Function calling with a response mime type: 'application/json' is unsupported",
      ({ generationConfig, tools }) => tools !== undefined && generationConfig?.['responseMimeType'] !== undefined,
    );
    for (const stream of [false, true]) {
      const { status, text, headers } = await ask(face, formatted[face], stream);
      expect([status, text]).toEqual([200, '{"a":"b"}']);
      expect(headers.get('x-dragoman-warnings')).toContain(`${spelled(face, 'response_format')}:`);
    }
    const [refused, ...accepted] = sent();
    expect(refused?.generationConfig).toHaveProperty('responseJsonSchema');
    expect(accepted).toHaveLength(2);
    for (const body of accepted) {
      expect(body.generationConfig ?? {}).not.toHaveProperty('responseMimeType');
      expect(body.tools).toMatchObject([{ functionDeclarations: [{ name: 'look' }] }]);
      expect(body.systemInstruction?.parts.at(-1)?.text).toContain(JSON.stringify(schema));
    }
  });
});

describe('penalties', () => {
  test.each(['Penalty is not enabled for models/gemini-2.5-flash', 'Penalty is not enabled for this model'])('are left out after "%s"', async (message) => {
    refusing(message, ({ generationConfig }) => generationConfig?.['frequencyPenalty'] !== undefined);
    for (let at = 0; at < 2; at++) {
      const { status, headers } = await ask('chat', { frequency_penalty: 0.5, temperature: 0.3 });
      expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, 'frequency_penalty: this model does not take it.']);
    }
    expect(sent().map(({ generationConfig }) => generationConfig)).toEqual([
      { temperature: 0.3, frequencyPenalty: 0.5 },
      { temperature: 0.3 },
      { temperature: 0.3 },
    ]);
    const own = await ask('gencompat', { generationConfig: { frequencyPenalty: 0.5 } });
    expect([own.status, own.headers.get('x-dragoman-warnings')]).toEqual([400, null]);
  });
});

describe('an image in a result', () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } };
  const call = (id: string) => ({ type: 'tool_use', id, name: 'look', input: {} });
  const result = (id: string, ...content: object[]) => ({ type: 'tool_result', tool_use_id: id, content: [{ type: 'text', text: id }, ...content] });
  const asked = (...ids: string[]) => ({
    tools: [{ name: 'look', input_schema: tool }],
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: ids.map(call) },
      { role: 'user', content: [...ids.map((id, at) => result(id, ...(at === 0 ? [image] : []))), { type: 'text', text: 'and?' }] },
    ],
  });
  const inline = { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } };

  test('is beside it where the model takes none inside, and behind the results of several calls', async () => {
    refusing('Unable to submit request because `function_response.parts` is not supported for this model. Learn more: https://x', ({ contents }) =>
      contents.some(({ parts }) => parts.some(({ functionResponse }) => (functionResponse as { parts?: unknown } | undefined)?.parts !== undefined)),
    );
    expect((await ask('messages', asked('a'))).status).toBe(200);
    expect((await ask('messages', asked('a', 'b'))).status).toBe(200);
    const [, one, several] = sent();
    expect(one!.contents.slice(2)).toEqual([
      { role: 'user', parts: [{ functionResponse: { id: 'a', name: 'look', response: { output: 'a' } } }, inline] },
      { role: 'user', parts: [{ text: 'and?' }] },
    ]);
    expect(several!.contents.slice(2).map(({ parts }) => parts.map((part) => Object.keys(part)[0]))).toEqual([
      ['functionResponse', 'functionResponse'],
      ['inlineData', 'text'],
    ]);
  });
});

test('a choice of tools goes with no request that has no functions', async () => {
  upstream.script(always(ok()));
  expect((await ask('responses', { tools: [{ type: 'web_search' }], tool_choice: 'auto' })).status).toBe(200);
  expect(sent()[0]).toMatchObject({ tools: [{ googleSearch: {} }] });
  expect(sent()[0]).not.toHaveProperty('toolConfig');
});

test('a schema has nothing beside its references', async () => {
  upstream.script(always(on({}, ok({ text: '{"pet":{"name":"x"}}' }))));
  const referring = {
    type: 'object',
    properties: { pet: { $ref: '#/$defs/Pet', description: 'The pet.', default: null } },
    required: ['pet'],
    $defs: { Pet: { type: 'object', properties: { name: { type: 'string' } } } },
  };
  const { status, headers } = await ask('chat', { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: referring } } });
  expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringContaining('response_format: the provider accepts nothing beside $ref')]);
  expect(sent()[0]?.generationConfig?.['responseJsonSchema']).toEqual({ ...referring, properties: { pet: { $ref: '#/$defs/Pet' } } });
});

describe('a field that Gemini does not know', () => {
  const unknown = (name: string, at: string) => `Invalid JSON payload received. Unknown name "${name}" at '${at}': Cannot find field.`;
  const look = { name: 'look', parameters: { type: 'OBJECT' } };

  test.each<[own: string, at: string, body: object]>([
    ['generationConfig.foo', 'generation_config', { generationConfig: { foo: 1 } }],
    ['generation_config.foo', 'generation_config', { generation_config: { foo: 1 } }],
    ['generationConfig.speechConfig.foo', 'generation_config.speech_config', { generationConfig: { speechConfig: { foo: 1 } } }],
    ['contents[0].parts[0].foo', 'contents[0].parts[0]', { contents: [{ role: 'user', parts: [{ text: 'hi', foo: 1 }] }] }],
    ['safetySettings[0].foo', 'safety_settings[0]', { safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'OFF', foo: 1 }] }],
    ['tools[0].functionDeclarations[0]', 'tools[0].function_declarations[0]', { tools: [{ functionDeclarations: [{ ...look, foo: 1 }] }] }],
    [
      'tools[1].function_declarations[0].parameters',
      'tools[0].function_declarations[1].parameters.properties[0].value',
      { tools: [{ function_declarations: [look] }, { function_declarations: [{ ...look, name: 'b' }] }] },
    ],
    [
      'generationConfig.responseSchema',
      'generation_config.response_schema.properties[0].value',
      { generationConfig: { responseMimeType: 'application/json', responseSchema: { type: 'OBJECT', properties: { a: { type: 'NUMBER', foo: 1 } } } } },
    ],
  ])('is named as %s for its own clients', async (own, at, more) => {
    upstream.script(always(badRequest({ message: unknown('foo', at) })));
    const { status, raw } = await ask('gencompat', more);
    const { error } = JSON.parse(raw) as { error: { message: string; details: readonly object[] } };
    expect(status).toBe(400);
    expect(error.message).toMatch(/^The provider google did not accept [\w.[\]]+ \(400.*\)\. It says: Invalid JSON/);
    expect(error.details).toEqual([expect.objectContaining({ fieldViolations: [expect.objectContaining({ field: own })] })]);
  });

  test("or whose value it does not accept, is the client's too", async () => {
    upstream.script(always(badRequest({ message: "Invalid value at 'generation_config.speech_config' (type.googleapis.com/google.x), 5" })));
    expect((await ask('gencompat', { generationConfig: { speechConfig: {} } })).raw).toContain('did not accept generationConfig.speechConfig (');
  });

  test('is part of what a client of another interface wrote, or the gateway added it', async () => {
    const schema = { type: 'object', properties: { a: { type: 'number', exclusiveMinimum: 1 } } };
    const more = { response_format: { type: 'json_schema', json_schema: { name: 'n', schema } } };
    upstream.script(always(badRequest({ message: unknown('exclusiveMinimum', 'generation_config.response_json_schema.properties[0].value') })));
    expect((await ask('chat', more)).raw).toContain('did not accept response_format');
    expect((await ask('chat', {})).raw).toMatch(/did not accept [\w.[\]]+, which the gateway added/);
  });
});
