import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Fault } from '#core/fault';
import { isObject, type JsonObject } from '#core/json';
import { decodeRequest } from './decode-request.ts';
import { encodeRequest } from './encode-request.ts';

const hi = { role: 'user', content: 'hi' };
const body = { model: 'gpt-4o-mini', messages: [hi] };
const look = { type: 'function', function: { name: 'look' } };

const again = (request: unknown, model = (request as { model: string }).model) => encodeRequest(decodeRequest(request).call, model, { refusals: true }).body;

function refusal(request: unknown): { field: string | undefined; reason: string | undefined; message: string; code: string } {
  try {
    decodeRequest(request);
  } catch (error) {
    const { details, message, code } = error as Fault;
    return { field: details.field, reason: details.reason, message, code };
  }
  throw new Error('It was taken.');
}

/**
 * The intended changes of decoding and encoding: null and the defaults of `stream`, `logprobs` and `response_format` are left out, a single plain text is a
 * string, a single stop sequence a list, a tool choice an object, `tool_choice` is sent only with tools, and streams ask for usage.
 */
function normal(request: JsonObject): unknown {
  const {
    tool_choice: choice,
    tools,
    stop,
    stream,
    logprobs,
    response_format: format,
    parallel_tool_calls: parallel,
    ...others
  } = withoutNull(request) as Record<string, unknown>;
  const list = tools as { function?: { name: string } }[] | undefined;
  const named = typeof choice === 'string' && !['auto', 'none', 'required'].includes(choice);
  return {
    ...others,
    messages: (others['messages'] as JsonObject[]).map(normalMessage),
    ...(list && list.length > 0
      ? { tools, ...(choice === undefined ? {} : { tool_choice: named ? { type: 'function', function: { name: choice } } : choice }) }
      : {}),
    ...(list && list.length > 0 && parallel !== undefined ? { parallel_tool_calls: parallel } : {}),
    ...(stop === undefined ? {} : { stop: [stop].flat() }),
    ...(logprobs ? { logprobs } : {}),
    ...((format as { type?: string } | undefined)?.type === 'text' || format === undefined ? {} : { response_format: format }),
    ...(stream ? { stream, stream_options: { ...(others['stream_options'] as object | undefined), include_usage: true } } : {}),
  };
}

function normalMessage({ annotations, ...message }: JsonObject): unknown {
  const { content } = message;
  const only = Array.isArray(content) && content.length === 1 ? (content[0] as JsonObject) : undefined;
  const plain = only?.['type'] === 'text' && Object.keys(only).length === 2 ? only['text'] : (content ?? null);
  return { ...message, ...(annotations === undefined || (Array.isArray(annotations) && annotations.length === 0) ? {} : { annotations }), content: plain };
}

function withoutNull(value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).flatMap(([name, inner]) => (inner === null ? [] : [[name, inner]])));
}

/** Chat requests captured from real clients. */
const captured = JSON.parse(readFileSync(new URL('./recordings/requests.json', import.meta.url), 'utf8')) as { name: string; body: JsonObject }[];

describe('a request of a real client', () => {
  test.each(captured)('$name goes upstream as it came', ({ body }) => {
    expect(again(body)).toEqual(normal(body));
  });
});

describe('any request', () => {
  const text = fc.string({ unit: 'grapheme', minLength: 1 });
  const json = fc.jsonValue({ maxDepth: 2 }).filter((value) => value !== null);
  const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
  const optionals = (members: Record<string, fc.Arbitrary<unknown>>) => fc.record(members, { requiredKeys: [] });
  const number = (min: number, max: number) => fc.double({ min, max, noNaN: true }).map((value) => value + 0);
  const base64 = fc.base64String();
  const part = fc.oneof(
    fc.record({ type: fc.constant('text'), text: fc.string() }),
    fc.record({ type: fc.constant('text'), text, prompt_cache_breakpoint: json }),
    fc.record({
      type: fc.constant('image_url'),
      image_url: fc.record({ url: base64.map((one) => `data:image/png;base64,${one}`), detail: fc.constantFrom('low', 'high') }),
    }),
    fc.record({
      type: fc.constant('image_url'),
      image_url: fc.record({ url: fc.constantFrom('https://example.org/a.png', 'data:image/svg+xml,<svg/>', 'data:text/plain;charset=x;base64,QQ==') }),
    }),
    fc.record({ type: fc.constant('input_audio'), input_audio: fc.record({ data: base64, format: fc.constantFrom('wav', 'mp3', 'flac') }) }),
    fc.record({ type: fc.constant('file'), file: fc.record({ file_data: base64.map((one) => `data:application/pdf;base64,${one}`), filename: text }) }),
    fc.record({ type: fc.constant('file'), file: fc.record({ file_id: text }) }),
  );
  const named = { name: maybe(text) };
  const call = fc.oneof(
    fc.record({ id: fc.constant('call_1'), type: fc.constant('function'), function: fc.record({ name: text, arguments: fc.string() }) }),
    fc.record({ id: fc.constant('call_1'), type: fc.constant('custom'), custom: fc.record({ name: text, input: fc.string() }) }),
    fc.record({ id: fc.constant('call_1'), type: fc.constant('function'), function: fc.record({ name: text, arguments: fc.string() }), extra_content: json }),
  );
  const exchange = fc
    .tuple(
      fc.record({ role: fc.constantFrom('system', 'developer'), content: fc.string(), ...named }),
      fc.record({ role: fc.constant('user'), content: fc.oneof(fc.string(), fc.array(part, { minLength: 1 })), ...named }),
      fc.record({
        role: fc.constant('assistant'),
        content: fc.oneof(fc.string(), fc.constant(null)),
        tool_calls: fc.tuple(call),
        refusal: maybe(text),
        reasoning_content: maybe(text),
        annotations: maybe(json),
      }),
      fc.record({
        role: fc.constant('tool'),
        tool_call_id: fc.constant('call_1'),
        content: fc.oneof(fc.string(), fc.array(fc.record({ type: fc.constant('text'), text }), { minLength: 1 })),
      }),
      fc.record({ role: fc.constant('assistant'), content: fc.constant(null), function_call: fc.record({ name: fc.constant('f'), arguments: fc.string() }) }),
      fc.record({ role: fc.constant('function'), name: fc.constant('f'), content: fc.string() }),
    )
    .map((messages) => messages.map((message) => Object.fromEntries(Object.entries(message).filter(([, value]) => value !== undefined))));
  const tools = fc.constantFrom(
    [
      {
        type: 'function',
        function: { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: { at: { type: 'string' } } }, strict: true, vendor: 1 },
        cache_control: { type: 'ephemeral' },
      },
      { type: 'custom', custom: { name: 'sql', format: { type: 'text' } } },
    ],
    [look, { type: 'web_search', filters: { domains: ['example.org'] } }],
  );
  const fields = optionals({
    temperature: number(0, 2),
    top_p: number(0, 1),
    frequency_penalty: number(-2, 2),
    presence_penalty: number(-2, 2),
    n: fc.integer({ min: 1, max: 128 }),
    seed: fc.maxSafeInteger().map((value) => value + 0),
    stop: fc.oneof(text, fc.array(text, { minLength: 1, maxLength: 4 })),
    logit_bias: fc.dictionary(fc.nat().map(String), fc.integer({ min: -100, max: 100 })),
    reasoning_effort: fc.constantFrom('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'),
    response_format: fc.constantFrom(
      { type: 'text' },
      { type: 'json_object' },
      { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' }, strict: true, description: 'd' } },
    ),
    tool_choice: fc.constantFrom(
      'none',
      'auto',
      'required',
      'look',
      { type: 'function', function: { name: 'look' } },
      { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [look] } },
    ),
    parallel_tool_calls: fc.boolean(),
    metadata: fc.dictionary(
      fc.string({ maxLength: 64 }).filter((key) => key !== '__proto__'),
      fc.string({ maxLength: 512 }),
      { maxKeys: 16, noNullPrototype: true },
    ),
    store: fc.boolean(),
    user: fc.string(),
    service_tier: fc.constantFrom('auto', 'flex'),
    prediction: fc.record({ type: fc.constant('content'), content: fc.string() }),
    modalities: fc.constant(['text', 'audio']),
    audio: fc.constant({ voice: 'alloy', format: 'wav' }),
    verbosity: fc.constant('low'),
    web_search_options: fc.constant({ search_context_size: 'low' }),
    prompt_cache_key: fc.string(),
    safety_identifier: fc.string(),
    functions: fc.constant([{ name: 'f', parameters: {} }]),
    something_new: json,
  });
  const limit = fc.oneof(fc.constant({}), fc.record({ max_tokens: fc.integer({ min: 1 }) }), fc.record({ max_completion_tokens: fc.integer({ min: 1 }) }));
  const logprobs = fc.constantFrom({}, { logprobs: false }, { logprobs: true }, { logprobs: true, top_logprobs: 20 });
  const streaming = fc.constantFrom(
    {},
    { stream: false },
    { stream: true },
    { stream: true, stream_options: { include_usage: true } },
    { stream: true, stream_options: { include_usage: false, include_obfuscation: false } },
  );

  test('goes upstream as it came', () => {
    fc.assert(
      fc.property(exchange, tools, fields, limit, logprobs, streaming, (messages, declared, ...members) => {
        const request = Object.assign({ model: 'm', messages, tools: declared }, ...members) as JsonObject;
        expect(again(request)).toEqual(normal(request));
      }),
      { numRuns: 500 },
    );
  });
});

describe('a call', () => {
  test('has what the client asked for and nothing else', () => {
    expect(decodeRequest(body)).toEqual({
      call: {
        dialect: 'openai-chat',
        model: 'gpt-4o-mini',
        turns: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
        tools: [],
        output: { type: 'text' },
        sampling: {},
        stream: false,
        extra: {},
      },
      usageWanted: false,
      asItCame: true,
    });
    expect(again(body)).toEqual(body);
  });

  test('takes null for absent', () => {
    const fields = [
      'temperature',
      'top_p',
      'max_tokens',
      'n',
      'stop',
      'tools',
      'tool_choice',
      'response_format',
      'stream',
      'stream_options',
      'seed',
      'logit_bias',
      'metadata',
      'prediction',
      'new',
    ];
    expect(decodeRequest({ ...body, ...Object.fromEntries(fields.map((name) => [name, null])) }).call).toEqual(decodeRequest(body).call);
  });

  test('has images and files without their base64 being touched', () => {
    const content = [
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
      { type: 'image_url', image_url: { url: 'https://example.org/a.png' } },
      { type: 'input_audio', input_audio: { data: 'BBBB', format: 'mp3' } },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,CCCC' } },
      { type: 'file', file: { file_id: 'file-1' } },
    ];
    expect(decodeRequest({ ...body, messages: [{ role: 'user', content }] }).call.turns[0]?.parts).toEqual([
      { type: 'media', kind: 'image', mediaType: 'image/png', base64: 'AAAA', detail: 'low' },
      { type: 'media', kind: 'image', url: 'https://example.org/a.png' },
      { type: 'media', kind: 'audio', mediaType: 'audio/mpeg', base64: 'BBBB' },
      { type: 'media', kind: 'file', name: 'a.pdf', mediaType: 'application/pdf', base64: 'CCCC' },
      { type: 'media', kind: 'file', fileId: 'file-1' },
    ]);
  });

  test.each([
    ['auto', { type: 'auto' }],
    ['none', { type: 'none' }],
    ['required', { type: 'required' }],
    ['look', { type: 'tool', name: 'look' }],
    ['sql', { type: 'tool', name: 'sql' }],
    [
      { type: 'function', function: { name: 'look' } },
      { type: 'tool', name: 'look' },
    ],
    [
      { type: 'custom', custom: { name: 'sql' } },
      { type: 'tool', name: 'sql' },
    ],
    [
      { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [look, { type: 'custom', custom: { name: 'sql' } }] } },
      { type: 'allowed', names: ['look', 'sql'], mode: 'required' },
    ],
  ])('knows tool_choice %j', (tool_choice, choice) => {
    const tools = [look, { type: 'custom', custom: { name: 'sql' } }, { type: 'web_search' }];
    expect(decodeRequest({ ...body, tools, tool_choice }).call.toolChoice).toEqual(choice);
  });

  test.each(['auto', 'none'])('knows tool_choice "%s" without tools, and does not send it', (tool_choice) => {
    expect(decodeRequest({ ...body, tool_choice }).call.toolChoice).toEqual({ type: tool_choice });
    expect(again({ ...body, tool_choice })).toEqual(body);
  });

  test('carries tools that it does not know', () => {
    const tool = { type: 'namespace', name: 'x', tools: [{ deep: true }] };
    expect(decodeRequest({ ...body, tools: [tool] }).call.tools).toEqual([{ type: 'foreign', dialect: 'openai-chat', value: tool }]);
  });

  test('is not polluted by odd keys', () => {
    const odd = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"toString":"x"}') as object;
    const { call } = decodeRequest({
      ...body,
      ...odd,
      metadata: { constructor: 'x' },
      messages: [Object.assign(JSON.parse('{"__proto__":{"polluted":1}}'), hi)],
    });
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    expect((call.extra['openai-chat'] as { polluted?: unknown }).polluted).toBeUndefined();
  });
});

describe('a request is refused, naming the field,', () => {
  const tool = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'x' });
  const parts = (...content: unknown[]) => ({ ...body, messages: [{ role: 'user', content }] });
  const messages = (...list: unknown[]) => ({ ...body, messages: list });
  const deep = (levels: number): object => (levels === 0 ? {} : { properties: { a: deep(levels - 1) } });
  const wide = { enum: Array.from({ length: 1_000_000 }, (_, at) => at) };
  const schema = (parameters: object) => ({ ...body, tools: [{ type: 'function', function: { name: 'look', parameters } }] });

  test.each<[string, unknown, string | undefined, string?]>([
    ['no object', [], undefined],
    ['null', null, undefined],
    ['no model', { messages: [hi] }, 'model', 'missing'],
    ['an empty model', { ...body, model: '' }, 'model'],
    ['a model with a line end', { ...body, model: 'a\r\nb' }, 'model'],
    ['64 KB of model', { ...body, model: 'm'.repeat(65_536) }, 'model'],
    ['no messages', { model: 'm' }, 'messages', 'missing'],
    ['empty messages', { ...body, messages: [] }, 'messages'],
    ['100,000 messages', { ...body, messages: Array.from({ length: 100_000 }, () => hi) }, 'messages'],
    ['messages as text', { ...body, messages: 'hi' }, 'messages'],
    ['an unknown role', messages({ role: 'robot', content: 'x' }), 'messages[0].role'],
    ['no role', messages(hi, { content: 'x' }), 'messages[1].role', 'missing'],
    ['no content', messages({ role: 'user' }), 'messages[0].content', 'missing'],
    ['null content', messages({ role: 'system', content: null }), 'messages[0].content', 'missing'],
    ['an assistant who says nothing', messages(hi, { role: 'assistant', content: null }), 'messages[1].content', 'missing'],
    ['no parts', parts(), 'messages[0].content'],
    ['a text part without text', parts({ type: 'text' }), 'messages[0].content[0].text', 'missing'],
    ['a deep part of an unknown type', parts({ type: 'smell', smell: deep(100) }), 'messages[0].content[0]'],
    ['a part without type', parts({ text: 'x' }), 'messages[0].content[0].type', 'missing'],
    ['a refusal from the user', parts({ type: 'refusal', refusal: 'no' }), 'messages[0].content[0].type'],
    [
      'an image in the system message',
      messages({ role: 'system', content: [{ type: 'image_url', image_url: { url: 'https://a' } }] }),
      'messages[0].content[0].type',
    ],
    ['an image from a file system', parts({ type: 'image_url', image_url: { url: 'file:///etc/passwd' } }), 'messages[0].content[0].image_url.url'],
    ['an image without address', parts({ type: 'image_url', image_url: {} }), 'messages[0].content[0].image_url.url', 'missing'],
    ['a file without data', parts({ type: 'file', file: {} }), 'messages[0].content[0].file.file_data', 'missing'],
    ['an orphan tool message', messages(hi, tool('call_1')), 'messages[1].tool_call_id'],
    ['a tool message without id', messages(hi, { role: 'tool', content: 'x' }), 'messages[1].tool_call_id', 'missing'],
    ['an orphan function message', messages(hi, { role: 'function', name: 'f', content: 'x' }), 'messages[1].name'],
    [
      'a tool call without type',
      messages(hi, { role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'f', arguments: '' } }] }),
      'messages[1].tool_calls[0].type',
      'missing',
    ],
    ['tools without type', { ...body, tools: [{ function: { name: 'look' } }] }, 'tools[0].type', 'missing'],
    ['a function tool without function', { ...body, tools: [{ type: 'function', name: 'look' }] }, 'tools[0].function', 'missing'],
    ['a function without name', { ...body, tools: [{ type: 'function', function: {} }] }, 'tools[0].function.name', 'missing'],
    ['parameters that are no object schema', schema({ type: 'string' }), 'tools[0].function.parameters.type'],
    ['parameters that are no schema', { ...body, tools: [{ type: 'function', function: { name: 'look', parameters: [] } }] }, 'tools[0].function.parameters'],
    ['a schema of 100 levels', schema(deep(100)), 'tools[0].function.parameters'],
    ['a schema of a million values', schema(wide), 'tools[0].function.parameters'],
    ['an undeclared tool', { ...body, tools: [look], tool_choice: 'jump' }, 'tool_choice'],
    ['an undeclared tool as object', { ...body, tools: [look], tool_choice: { type: 'function', function: { name: 'jump' } } }, 'tool_choice'],
    [
      'an undeclared allowed tool',
      {
        ...body,
        tools: [look],
        tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'jump' } }] } },
      },
      'tool_choice',
    ],
    ['tool_choice of an unknown type', { ...body, tools: [look], tool_choice: { type: 'any' } }, 'tool_choice.type'],
    ['tool_choice as a number', { ...body, tools: [look], tool_choice: 1 }, 'tool_choice'],
    ['required without tools', { ...body, tool_choice: 'required' }, 'tool_choice'],
    ['a name without tools', { ...body, tool_choice: 'look' }, 'tool_choice'],
    ['an object without tools', { ...body, tools: [], tool_choice: { type: 'function', function: { name: 'look' } } }, 'tool_choice'],
    ['temperature 2.1', { ...body, temperature: 2.1 }, 'temperature'],
    ['temperature −0.1', { ...body, temperature: -0.1 }, 'temperature'],
    ['temperature as text', { ...body, temperature: '1' }, 'temperature'],
    ['an infinite temperature', { ...body, temperature: Infinity }, 'temperature'],
    ['top_p 1.1', { ...body, top_p: 1.1 }, 'top_p'],
    ['frequency_penalty 3', { ...body, frequency_penalty: 3 }, 'frequency_penalty'],
    ['presence_penalty −3', { ...body, presence_penalty: -3 }, 'presence_penalty'],
    ['max_tokens 0', { ...body, max_tokens: 0 }, 'max_tokens'],
    ['max_tokens 1.5', { ...body, max_tokens: 1.5 }, 'max_tokens'],
    ['max_tokens beyond safe integers', { ...body, max_tokens: 2 ** 53 }, 'max_tokens'],
    ['max_completion_tokens 1e308', { ...body, max_completion_tokens: 1e308 }, 'max_completion_tokens'],
    ['two different limits', { ...body, max_tokens: 1, max_completion_tokens: 2 }, 'max_tokens'],
    ['n 0', { ...body, n: 0 }, 'n'],
    ['n 129', { ...body, n: 129 }, 'n'],
    ['a seed beyond safe integers', { ...body, seed: 2 ** 53 }, 'seed'],
    ['five stop sequences', { ...body, stop: ['a', 'b', 'c', 'd', 'e'] }, 'stop'],
    ['top_logprobs 21', { ...body, logprobs: true, top_logprobs: 21 }, 'top_logprobs'],
    ['top_logprobs without logprobs', { ...body, top_logprobs: 2 }, 'top_logprobs'],
    ['a logit bias of 101', { ...body, logit_bias: { 50256: 101 } }, 'logit_bias.50256'],
    ['an unknown effort', { ...body, reasoning_effort: 'huge' }, 'reasoning_effort'],
    ['stream as text', { ...body, stream: 'true' }, 'stream'],
    ['stream_options without stream', { ...body, stream_options: { include_usage: true } }, 'stream_options'],
    ['17 pairs of metadata', { ...body, metadata: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [at, 'x'])) }, 'metadata'],
    ['a long metadata key', { ...body, metadata: { ['k'.repeat(65)]: 'x' } }, 'metadata'],
    ['a long metadata value', { ...body, metadata: { k: 'x'.repeat(513) } }, 'metadata.k'],
    ['metadata of numbers', { ...body, metadata: { k: 1 } }, 'metadata.k'],
    ['an unknown response format', { ...body, response_format: { type: 'xml' } }, 'response_format.type'],
    [
      'a schema without name',
      { ...body, response_format: { type: 'json_schema', json_schema: { schema: {} } } },
      'response_format.json_schema.name',
      'missing',
    ],
    ['no schema', { ...body, response_format: { type: 'json_schema', json_schema: { name: 'a' } } }, 'response_format.json_schema.schema', 'missing'],
  ])('for %s', (_, request, field, reason) => {
    const fault = refusal(request);
    expect(fault).toMatchObject({ code: 'invalid', field, reason });
    if (field !== undefined) expect(fault.message).toContain(field);
    expect(fault.message.length).toBeLessThan(300);
  });
});

describe('a call from another dialect', () => {
  const call = decodeRequest({ ...body, stream: true, max_tokens: 5 }).call;

  test('asks by the name of the limit that every server knows, unless its provider is known for the other', () => {
    const foreign = { ...call, extra: {} };
    expect(encodeRequest(foreign, 'm').body).toMatchObject({ max_tokens: 5 });
    expect(encodeRequest(foreign, 'm', { maxTokensDefault: 'max_completion_tokens' }).body).toMatchObject({ max_completion_tokens: 5 });
    expect(encodeRequest(foreign, 'm', { maxTokensField: 'max_completion_tokens' }).body).toMatchObject({ max_completion_tokens: 5 });
    expect(encodeRequest(call, 'm', { maxTokensDefault: 'max_completion_tokens' }).body).toMatchObject({ max_tokens: 5 });
    expect(encodeRequest(call, 'm').body).toMatchObject({ max_tokens: 5 });
    expect(encodeRequest(call, 'm', { maxTokensField: 'max_completion_tokens' }).body).not.toHaveProperty('max_tokens');
  });

  test('asks for usage, unless its provider refuses to be asked', () => {
    expect(encodeRequest(call, 'm').body).toMatchObject({ stream_options: { include_usage: true } });
    expect(encodeRequest(call, 'm', { usage: false }).body).not.toHaveProperty('stream_options');
  });

  test('says what it cannot say here', () => {
    const { ignored, body: sent } = encodeRequest(
      {
        ...call,
        dialect: 'gemini',
        sampling: { topK: 3 },
        tools: [{ type: 'foreign', dialect: 'gemini', value: { type: 'googleSearch' } }],
        turns: [
          {
            role: 'user',
            parts: [
              { type: 'text', text: 'look' },
              { type: 'media', kind: 'video', mediaType: 'video/mp4', base64: 'AAAA' },
            ],
          },
          {
            role: 'model',
            parts: [
              { type: 'thought', text: 'hm' },
              { type: 'tool-call', id: 'a', name: 'f', json: '{}' },
            ],
          },
          {
            role: 'user',
            parts: [
              {
                type: 'tool-result',
                id: 'a',
                failed: true,
                parts: [
                  { type: 'text', text: 'no' },
                  { type: 'media', kind: 'image', mediaType: 'image/png', base64: 'BBBB' },
                ],
              },
              { type: 'text', text: 'go on' },
            ],
          },
        ],
        extra: { gemini: { safetySettings: [], '.note': 1 } },
      },
      'm',
    );
    expect(ignored.map((one) => one.split(':')[0])).toEqual(['safetySettings', 'top_k', 'video', 'thoughts', 'tool result', 'tools']);
    expect(sent['messages']).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'look' }] },
      { role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: 'a', content: 'no' },
      {
        role: 'user',
        content: [
          { type: 'image_url', image_url: { url: 'data:image/png;base64,BBBB' } },
          { type: 'text', text: 'go on' },
        ],
      },
    ]);
    expect(sent).not.toHaveProperty('tools');
  });
});
