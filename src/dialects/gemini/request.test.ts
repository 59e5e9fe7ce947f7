import { describe, expect, test } from 'vitest';
import type { Fault } from '#core/fault';
import type { GenerateCall } from '#core/call';
import type { Part } from '#core/conversation';
import { decodeCount, decodeRequest } from './decode-request.ts';
import { encodeRequest } from './encode-request.ts';
import type { Quirks } from './quirks.ts';
import { geminiRequests } from '../../../test/support/recordings.ts';
import { jsonSchemaOf } from './schema.ts';
import { cpuMilliseconds, slowness, unscaledCpuMilliseconds } from '../../../test/support/cpu-time.ts';
import { proves } from '../../../test/support/proves.ts';

const asked = { model: 'gemini-2.5-flash', stream: false };
const hi = { role: 'user', parts: [{ text: 'hi' }] };
const decode = (body: unknown) => decodeRequest(body, asked);
const again = (body: unknown) => encodeRequest(decode(body), 'm').body;

function refusal(body: unknown): { readonly field: string | undefined; readonly message: string; readonly code: string } {
  try {
    decode(body);
  } catch (error) {
    const { details, message, code } = error as Fault;
    return { field: details.field, message, code };
  }
  throw new Error('It was taken.');
}

interface Loose {
  readonly generationConfig?: Readonly<Record<string, unknown>>;
  readonly tools?: readonly unknown[];
  readonly safetySettings?: readonly unknown[];
  readonly systemInstruction?: { readonly parts: unknown };
  readonly contents: readonly { readonly role?: string; readonly parts: unknown }[];
  readonly model?: string;
}

/** The intended changes: an empty configuration and empty lists are left out, and the system instruction gets the role `user`. */
function normal(body: unknown): unknown {
  const { generationConfig, tools, safetySettings, systemInstruction, contents, model: _, ...others } = body as Loose;
  const { stopSequences, ...config } = generationConfig ?? {};
  const stops = Array.isArray(stopSequences) && stopSequences.length > 0 ? { stopSequences } : {};
  const whole = { ...config, ...stops };
  return {
    ...others,
    contents: contents.map(({ role = 'user', parts }) => ({ role, parts })),
    ...(systemInstruction ? { systemInstruction: { role: 'user', parts: systemInstruction.parts } } : {}),
    ...(Object.keys(whole).length > 0 ? { generationConfig: whole } : {}),
    ...(tools?.length ? { tools } : {}),
    ...(safetySettings?.length ? { safetySettings } : {}),
  };
}

describe('a genuine request', () => {
  const generating = geminiRequests.filter(({ url }) => /enerateContent/.test(url));

  test.each(generating)('of $name goes upstream as it came', ({ body }) => {
    expect(again(body)).toEqual(normal(body));
  });

  test.each(generating)('of $name leaves nothing unheard', ({ body }) => {
    expect(encodeRequest(decode(body), 'm').ignored).toEqual([]);
  });

  test.each(geminiRequests.filter(({ url }) => url.includes(':countTokens')))('of $name is one that can be counted', ({ body }) => {
    expect(decodeCount(body, 'm').turns.length).toBeGreaterThan(0);
  });
});

describe('spelling', () => {
  test('snake_case and camelCase may be mixed, and schemas and arguments keep their own names', () => {
    const call = decode({
      contents: [
        { role: 'user', parts: [{ inline_data: { mime_type: 'image/png', data: 'aGk=' } }, { functionCall: { name: 'f', args: { my_arg: { in_line: 1 } } } }] },
      ],
      system_instruction: { parts: [{ text: 'brief' }] },
      generation_config: {
        max_output_tokens: 5,
        topK: 3,
        response_mime_type: 'application/json',
        response_json_schema: { type: 'object', properties: { my_name: {} } },
      },
      tools: [{ function_declarations: [{ name: 'f', parameters_json_schema: { type: 'object', properties: { some_thing: { type: 'string' } } } }] }],
    });
    expect(call.turns[0]).toEqual({ role: 'system', parts: [{ type: 'text', text: 'brief' }] });
    expect(call.turns[1]?.parts).toMatchObject([
      { type: 'media', kind: 'image', base64: 'aGk=' },
      { type: 'tool-call', json: '{"my_arg":{"in_line":1}}' },
    ]);
    expect(call.sampling).toEqual({ maxTokens: 5, topK: 3 });
    expect(call.output).toMatchObject({ schema: { properties: { my_name: {} } } });
    expect(call.tools).toMatchObject([{ parameters: { properties: { some_thing: { type: 'string' } } } }]);
  });

  test('a field is refused in the spelling it came in', () => {
    expect(refusal({ contents: [hi], generation_config: { candidate_count: 0 } })).toMatchObject({
      code: 'invalid',
      field: 'generation_config.candidate_count',
      message: 'generation_config.candidate_count must be between 1 and 128.',
    });
    expect(refusal({ contents: [hi], generationConfig: { candidateCount: 0 } })).toMatchObject({ field: 'generationConfig.candidateCount' });
  });

  test('parts may be one part', () => {
    const body = { contents: [{ role: 'user', parts: { text: 'hi' } }], system_instruction: { parts: { text: 'be brief' } } };
    expect(again(body)).toEqual({ contents: [hi], systemInstruction: { role: 'user', parts: [{ text: 'be brief' }] } });
    expect(refusal({ contents: [{ parts: { text: 1 } }] })).toMatchObject({ field: 'contents[0].parts[0].text' });
  });

  test('the same member in both spellings is refused', () => {
    expect(refusal({ contents: [hi], generationConfig: { topK: 1, top_k: 2 } })).toMatchObject({ field: 'top_k' });
  });
});

describe('roles', () => {
  test(
    proves(['gencompat.role-user', 'gencompat.role-model', 'gencompat.role-assistant'], ' user stays user, model stays model, assistant becomes model'),
    () => {
      const roles = ['user', 'model', 'assistant', 'user'].map((role) => ({ role, parts: [{ text: role }] }));
      expect(decode({ contents: roles }).turns.map(({ role }) => role)).toEqual(['user', 'model', 'model', 'user']);
      expect(decode({ contents: [{ parts: [{ text: 'x' }] }] }).turns[0]?.role).toBe('user');
    },
  );

  test(proves('gencompat.role-system', ' turns of role system join the system instruction, which stays first'), () => {
    const body = {
      contents: [{ role: 'system', parts: [{ text: 'two' }] }, hi, { role: 'system', parts: [{ text: 'three' }] }],
      systemInstruction: { role: 'system', parts: [{ text: 'one' }] },
    };
    const { turns } = decode(body);
    expect(turns.map(({ role }) => role)).toEqual(['system', 'user']);
    expect(turns[0]?.parts).toEqual(['one', 'two', 'three'].map((text) => ({ type: 'text', text })));
    expect(again(body)).toEqual({ contents: [hi], systemInstruction: { role: 'user', parts: [{ text: 'one' }, { text: 'two' }, { text: 'three' }] } });
  });

  test('may be in capitals', () => {
    const body = { contents: ['USER', 'MODEL', 'System'].map((role) => ({ role, parts: [{ text: role }] })) };
    expect(decode(body).turns.map(({ role }) => role)).toEqual(['system', 'user', 'model']);
  });

  test('another role is refused', () => {
    expect(refusal({ contents: [{ role: 'tool', parts: [{ text: 'x' }] }] })).toMatchObject({ field: 'contents[0].role' });
  });
});

describe('what is refused', () => {
  test.each([
    [{}, 'contents'],
    [{ contents: 'hi' }, 'contents'],
    [{ contents: [] }, 'contents'],
    [{ contents: [{ role: 'user' }] }, 'contents[0].parts'],
    [{ contents: [{ parts: [] }] }, 'contents[0].parts'],
    [{ contents: [{ parts: [{}] }] }, 'contents[0].parts[0]'],
    [{ contents: [{ parts: [{ text: 1 }] }] }, 'contents[0].parts[0].text'],
    [{ contents: [{ parts: [{ text: 'a', inlineData: { mimeType: 'image/png', data: '' } }] }] }, 'contents[0].parts[0]'],
    [{ contents: [{ parts: [{ functionCall: { args: {} } }] }] }, 'contents[0].parts[0].functionCall.name'],
    [{ contents: [{ parts: [{ functionResponse: { name: 'f', response: 'x' } }] }] }, 'contents[0].parts[0].functionResponse.response'],
    [{ contents: [hi], systemInstruction: 'be brief' }, 'systemInstruction'],
    [{ contents: [hi], systemInstruction: { parts: [{ inlineData: { mimeType: 'image/png', data: '' } }] } }, 'systemInstruction.parts[0]'],
    [{ contents: [hi], generationConfig: [] }, 'generationConfig'],
    [{ contents: [hi], generationConfig: { temperature: 2.1 } }, 'generationConfig.temperature'],
    [{ contents: [hi], generationConfig: { topP: -0.1 } }, 'generationConfig.topP'],
    [{ contents: [hi], generationConfig: { topK: 'many' } }, 'generationConfig.topK'],
    [{ contents: [hi], generationConfig: { maxOutputTokens: 0 } }, 'generationConfig.maxOutputTokens'],
    [{ contents: [hi], generationConfig: { candidateCount: 0 } }, 'generationConfig.candidateCount'],
    [{ contents: [hi], generationConfig: { stopSequences: 'x' } }, 'generationConfig.stopSequences'],
    [{ contents: [hi], generationConfig: { responseMimeType: 'text/plain', responseSchema: {} } }, 'generationConfig.responseMimeType'],
    [{ contents: [hi], generationConfig: { responseSchema: {}, responseJsonSchema: {} } }, 'generationConfig.responseJsonSchema'],
    [{ contents: [hi], tools: 'search' }, 'tools'],
    [{ contents: [hi], tools: [{ functionDeclarations: [{}] }] }, 'tools[0].functionDeclarations[0].name'],
    [
      { contents: [hi], tools: [{ functionDeclarations: [{ name: 'f', parameters: { type: 'STRING' } }] }] },
      'tools[0].functionDeclarations[0].parameters.type',
    ],
    [
      { contents: [hi], tools: [{ functionDeclarations: [{ name: 'f', parametersJsonSchema: { type: ['object', 'null'] } }] }] },
      'tools[0].functionDeclarations[0].parametersJsonSchema.type',
      'must be "object"',
    ],
    [{ contents: [hi], tools: [{ functionDeclarations: [{ name: 'f' }, { name: 'f' }] }] }, 'tools[0].functionDeclarations[1].name'],
    [{ contents: [hi], toolConfig: { functionCallingConfig: { mode: 'MAYBE' } } }, 'toolConfig.functionCallingConfig.mode'],
    [{ contents: [hi], safetySettings: 'none' }, 'safetySettings'],
    [{ contents: [hi], safetySettings: [{ category: 'HARM_CATEGORY_HATE_SPEECH' }] }, 'safetySettings[0].threshold'],
  ])('%o, naming the field', (body, field, words = '') => {
    expect(refusal(body)).toMatchObject({ code: 'invalid', field, message: expect.stringContaining(words) });
  });

  test('a schema that is nested beyond reason', () => {
    let schema: unknown = { type: 'STRING' };
    for (let depth = 0; depth < 60; depth++) schema = { type: 'ARRAY', items: schema };
    expect(refusal({ contents: [hi], generationConfig: { responseMimeType: 'application/json', responseSchema: schema } })).toMatchObject({
      field: 'generationConfig.responseSchema',
    });
  });
});

describe('functions', () => {
  test('without ids the first call of the name that is open is the one that is answered', () => {
    const { turns } = decode({
      contents: [
        hi,
        { role: 'model', parts: ['a', 'b', 'a'].map((name) => ({ functionCall: { name } })) },
        { role: 'user', parts: ['b', 'a', 'a'].map((name) => ({ functionResponse: { name, response: { result: name } } })) },
      ],
    });
    const ids = turns.map(({ parts }) => parts.flatMap((part) => ('id' in part ? [part.id] : [])));
    expect(ids).toEqual([[], ['call_1', 'call_2', 'call_3'], ['call_2', 'call_1', 'call_3']]);
  });

  const idsOf = (calls: readonly (string | undefined)[], results: readonly (string | undefined)[]) => {
    const named = (id: string | undefined) => ({ name: 'f', ...(id === undefined ? {} : { id }) });
    const { turns } = decode({
      contents: [
        hi,
        { role: 'model', parts: calls.map((id) => ({ functionCall: named(id) })) },
        { role: 'user', parts: results.map((id) => ({ functionResponse: { ...named(id), response: { output: 'x' } } })) },
      ],
    });
    return turns[2]!.parts.map((part) => ('id' in part ? part.id : ''));
  };
  test.each<{ calls: (string | undefined)[]; results: (string | undefined)[]; ids: string[] }>([
    { calls: ['A', undefined], results: [undefined, 'A'], ids: ['call_1', 'A'] },
    { calls: ['A', undefined, 'B'], results: ['B', undefined, undefined], ids: ['B', 'A', 'call_1'] },
    { calls: ['A', 'B'], results: [undefined, 'A', undefined], ids: ['B', 'A', 'call_1'] },
    { calls: ['A', 'A'], results: ['A', undefined, undefined], ids: ['A', 'A', 'call_1'] },
    { calls: ['B'], results: ['A', undefined], ids: ['A', 'B'] },
  ])('a result without an id is none of a call that another result names: $calls, $results', ({ calls, results, ids }) => {
    expect(idsOf(calls, results)).toEqual(ids);
  });

  test('ten thousands of results are matched without holding up others', () => {
    const ids = Array.from({ length: 50_000 }, (_, at) => `a${at}`);
    expect(cpuMilliseconds(() => idsOf(ids, [...ids.toReversed(), ...ids.map(() => undefined)]))).toBeLessThan(2000);
  });

  test('a response of an error alone is that of a function that failed', () => {
    const { turns } = decode({ contents: [{ role: 'user', parts: [{ functionResponse: { name: 'f', response: { error: 'no' } } }] }] });
    expect(turns[0]?.parts).toMatchObject([{ type: 'tool-result', failed: true, parts: [{ text: '{"error":"no"}' }] }]);
  });

  test('ANY with one name is a choice of that tool, with several of one among them', () => {
    const choice = (mode: string, ...names: string[]) =>
      decode({ contents: [hi], toolConfig: { functionCallingConfig: { mode, ...(names.length > 0 ? { allowedFunctionNames: names } : {}) } } }).toolChoice;
    expect(choice('ANY', 'f')).toEqual({ type: 'tool', name: 'f' });
    expect(choice('ANY', 'f', 'g')).toEqual({ type: 'allowed', names: ['f', 'g'], mode: 'required' });
    expect(choice('any')).toEqual({ type: 'required' });
    expect(choice('NONE')).toEqual({ type: 'none' });
  });
});

test('a schema with references becomes a JSON Schema with them', () => {
  const owl = { type: 'OBJECT', properties: { name: { type: 'STRING' } } };
  const list = { type: 'array', items: { $ref: '#/$defs/Owl' }, $defs: { Owl: { type: 'object', properties: { name: { type: 'string' } } } } };
  expect(jsonSchemaOf({ type: 'ARRAY', items: { ref: '#/defs/Owl' }, defs: { Owl: owl } })).toEqual(list);
  expect(jsonSchemaOf({ type: 'ARRAY', items: { $ref: '#/$defs/Owl' }, $defs: { Owl: owl } })).toEqual(list);
  expect(jsonSchemaOf({ type: 'ARRAY', prefix_items: [{ type: 6 }], oneOf: [{ type: 'NULL' }] })).toEqual({
    type: 'array',
    prefixItems: [{ type: 'object' }],
    oneOf: [{ type: 'null' }],
  });
});

test('a schema in capitals becomes a JSON Schema in the order that is asked for', () => {
  const schema = {
    type: 'OBJECT',
    propertyOrdering: ['b', 'a'],
    properties: {
      a: { type: 'STRING', format: 'enum', enum: ['x', 'y'], nullable: true },
      b: { type: 'ARRAY', items: { type: 'INTEGER' }, minItems: '1', max_items: 3 },
      c: { any_of: [{ type: 'NUMBER' }, { type: 'BOOLEAN' }], nullable: true },
    },
    required: ['a'],
  };
  const made = jsonSchemaOf(schema);
  expect(made).toEqual({
    type: 'object',
    properties: {
      b: { type: 'array', items: { type: 'integer' }, minItems: 1, maxItems: 3 },
      a: { type: ['string', 'null'], enum: ['x', 'y', null] },
      c: { anyOf: [{ type: 'number' }, { type: 'boolean' }, { type: 'null' }] },
    },
    required: ['a'],
  });
  expect(Object.keys(made['properties'] as object)).toEqual(['b', 'a', 'c']);
});

describe('a call of another interface', () => {
  const call: GenerateCall = {
    model: 'm',
    stream: true,
    output: { type: 'schema', schema: { type: 'object' } },
    sampling: { maxTokens: 9000, candidates: 2, seed: 2 ** 40, logprobs: 2 },
    reasoning: { effort: 'low' },
    parallelToolCalls: false,
    toolChoice: { type: 'allowed', names: ['look'], mode: 'auto' },
    tools: [
      { type: 'function', name: 'look', description: 'l', parameters: { type: 'object' }, strict: true },
      { type: 'function', name: 'other' },
      { type: 'custom', name: 'free' },
    ],
    turns: [
      { role: 'user', parts: [{ type: 'text', text: 'hi' }] },
      {
        role: 'model',
        parts: [
          { type: 'tool-call', id: 'c1', name: 'look', json: '{"a":1}' },
          { type: 'tool-call', id: 'c2', name: 'look', json: 'oops' },
        ],
      },
      { role: 'user', parts: [{ type: 'tool-result', id: 'c1', parts: [{ type: 'text', text: '{"seen":true}' }] }] },
      { role: 'user', parts: [{ type: 'tool-result', id: 'c2', parts: [{ type: 'text', text: 'plain' }], failed: true }] },
      { role: 'system', parts: [{ type: 'text', text: 'late' }] },
      {
        role: 'user',
        parts: [
          { type: 'media', kind: 'image', url: 'https://a.example/cat.png' },
          { type: 'text', text: '' },
        ],
      },
    ],
    extra: { 'openai-chat': { user: 'u' } },
  };

  test('is said in the words of this wire, and what it has none for is told', () => {
    const { body, ignored } = encodeRequest(call, 'm');
    expect(body).toEqual({
      contents: [
        hi,
        {
          role: 'model',
          parts: [{ functionCall: { id: 'c1', name: 'look', args: { a: 1 } } }, { functionCall: { id: 'c2', name: 'look', args: { arguments: 'oops' } } }],
        },
        {
          role: 'user',
          parts: [
            { functionResponse: { id: 'c1', name: 'look', response: { output: '{"seen":true}' } } },
            { functionResponse: { id: 'c2', name: 'look', response: { error: 'plain' } } },
          ],
        },
        { role: 'user', parts: [{ text: 'late' }, { fileData: { mimeType: 'image/png', fileUri: 'https://a.example/cat.png' } }] },
      ],
      tools: [{ functionDeclarations: [{ name: 'look', description: 'l', parametersJsonSchema: { type: 'object' } }] }],
      toolConfig: { functionCallingConfig: { mode: 'AUTO' } },
      generationConfig: {
        candidateCount: 2,
        maxOutputTokens: 9000,
        seed: 0,
        responseLogprobs: true,
        logprobs: 2,
        responseMimeType: 'application/json',
        responseJsonSchema: { type: 'object' },
        thinkingConfig: { thinkingBudget: 1024, includeThoughts: true },
      },
    });
    const reported = ['user', 'parallel_tool_calls', 'strict', 'tools', 'seed', 'system', 'tool call'];
    expect(new Set(ignored.map((one) => one.split(':')[0]))).toEqual(new Set(reported));
  });

  test('calls of functions get back the signature that the provider gave them', () => {
    const signed = { ...call, turns: call.turns.map((turn) => ({ ...turn, parts: turn.parts.map(withSignature) })) };
    const parts = (quirks: Quirks) => (encodeRequest(signed, 'm', quirks).body['contents'] as { parts: object[] }[])[1]!.parts;
    expect(parts({})).toMatchObject([{ thoughtSignature: 'sig' }, {}]);
    expect(parts({})[1]).not.toHaveProperty('thoughtSignature');
    expect(parts({ signed: true })).toEqual(parts({})); // of calls that were made together the first is signed
    expect(parts({ withoutIds: true })[0]).toMatchObject({ functionCall: { name: 'look', args: { a: 1 } } });
    expect(JSON.stringify(parts({ withoutIds: true }))).not.toContain('"id"');
  });

  test('results are in the order of their calls, which tells whose they are where there are no ids', () => {
    const called = (id: string): Part => ({ type: 'tool-call', id, name: 'look', json: '{}' });
    const result = (id: string): Part => ({ type: 'tool-result', id, parts: [{ type: 'text', text: `of ${id}` }] });
    const turns: GenerateCall['turns'] = [
      { role: 'user', parts: [{ type: 'text', text: 'hi' }] },
      { role: 'model', parts: [called('c1'), called('c2'), called('c3')] },
      { role: 'user', parts: [result('c3')] },
      { role: 'user', parts: [result('c1'), { type: 'text', text: 'now' }] },
    ];
    const { body } = encodeRequest({ ...call, turns }, 'm', { withoutIds: true });
    expect((body['contents'] as object[]).slice(2)).toEqual([
      { role: 'user', parts: ['of c1', '', 'of c3'].map((output) => ({ functionResponse: { name: 'look', response: { output } } })) },
      { role: 'user', parts: [{ text: 'now' }] },
    ]);
  });
});

const withSignature = (part: Part): Part =>
  part.type === 'tool-call' && part.id === 'c1' ? { ...part, extra: { ...part.extra, gemini: { ...part.extra?.['gemini'], thoughtSignature: 'sig' } } } : part;

describe('bytes of any size', () => {
  const raw = Buffer.alloc(24_750_001, 'fbefbeffbfffbe', 'hex');
  const mediaOf = (data: string) => {
    const [part] = decode({ contents: [{ role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data } }] }] }).turns[0]!.parts;
    return part?.type === 'media' ? part.base64 : undefined;
  };

  test.each([
    ['base64url', raw.toString('base64url')],
    ['base64 without its padding', raw.toString('base64').replace(/==$/, '')],
  ])('in %s become base64 without holding up others', (_, data) => {
    const wanted = raw.toString('base64');
    const least = (work: () => unknown) => Math.min(...Array.from({ length: 5 }, () => unscaledCpuMilliseconds(() => void work())));
    const native = least(() => Buffer.from(wanted, 'base64').toString('base64'));
    const took = least(() => mediaOf(data));
    expect(mediaOf(data) === wanted).toBe(true);
    expect(took).toBeLessThan(Math.max(50 * slowness(), 8 * native));
  });

  test('that lack some of their padding get it, and others stay as they are', () => {
    expect(['QQ=', 'QQ', 'QUI', 'ab-_c', 'ab+_', 'Q Q', 'Q!Q', 'Q'].map(mediaOf)).toEqual(['QQ==', 'QQ==', 'QUI=', 'ab-_c', 'ab+/', 'Q Q', 'Q!Q', 'Q']);
  });
});
