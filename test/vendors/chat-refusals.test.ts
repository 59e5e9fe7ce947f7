import { describe, expect, test } from 'vitest';
import { askFace, everyWay, faces, type Face, type FaceAnswer, spelled } from '../support/all-faces.ts';
import { always, ok, toolCalls, type Behaviour } from '../support/fakes/upstream/index.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** Chat providers at addresses that nobody knows: what they refuse teaches what they accept. */
const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  unknown: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k] }
models:
  "*": { targets: [{ provider: unknown }] }
routing: { cooldownSeconds: 0 }
`,
}));

type Body = Readonly<Record<string, unknown>>;
/** The refusal of a body, with its status; undefined where it is accepted. */
type Refuses = (body: Body) => { readonly status?: number; readonly json: object } | undefined;

const refusing = (refuses: Refuses, accepted: Behaviour = ok()): Behaviour =>
  always({
    name: 'refusing',
    answer(exchange) {
      const refused = refuses(exchange.request.json as Body);
      if (!refused) return accepted.answer(exchange);
      const text = JSON.stringify(refused.json);
      return { status: refused.status ?? 400, headers: { 'content-type': 'application/json' }, body: [text], framing: 'chunked', end: 'finish' };
    },
  });
const error = (message: string, more: object = {}) => ({ json: { error: { message, type: 'invalid_request_error', param: null, code: null, ...more } } });

const bodies = () => upstream.requests.map(({ json }) => json as Body);
const values = (field: string) => bodies().map((body) => body[field]);
let count = 0;
/** A model that nothing is known of yet. */
const freshModel = () => `model-${++count}`;
const ask = (face: Face, model: string, more: object = {}, stream = false, headers = {}): Promise<FaceAnswer> =>
  askFace(server, face, { model, content: 'one two three', stream, headers, more });
const translated = everyWay.filter(([face]) => face !== 'chat');

describe('the token limit', () => {
  const limits: Readonly<Record<Face, object>> = {
    chat: {},
    responses: { max_output_tokens: 32 },
    messages: { max_tokens: 32 },
    gencompat: { generationConfig: { maxOutputTokens: 32 } },
  };

  test.each(translated)('of %s (stream: %s) is sent by the name that every server knows', async (face, stream) => {
    upstream.script(always(ok()));
    expect((await ask(face, freshModel(), limits[face], stream)).complete).toBe(true);
    expect(bodies()).toEqual([expect.objectContaining({ max_tokens: 32 })]);
    expect(bodies()[0]).not.toHaveProperty('max_completion_tokens');
  });

  test.each(translated)('of %s (stream: %s) takes its newer name where the provider asks for it, at once from then on', async (face, stream) => {
    const message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    upstream.script(
      refusing(({ max_tokens: older }) => (older === undefined ? undefined : error(message, { param: 'max_tokens', code: 'unsupported_parameter' }))),
    );
    const model = freshModel();
    for (let at = 0; at < 2; at++) expect(await ask(face, model, limits[face], stream)).toMatchObject({ status: 200, complete: true });
    expect(values('max_completion_tokens')).toEqual([undefined, 32, 32]);
  });

  test.each([
    ['bare', (detail: object) => ({ detail: [detail] })],
    ['within the message', (detail: object) => ({ object: 'error', message: { detail: [detail] }, type: 'invalid_request_error', param: null, code: null })],
    [
      'as the text of the message',
      (detail: object) => ({ object: 'error', message: JSON.stringify({ detail: [detail] }), type: 'x', param: null, code: '1000' }),
    ],
  ])('of a chat client takes its older name where a 422 refuses the newer one (%s)', async (_, shape) => {
    const detail = { type: 'extra_forbidden', loc: ['body', 'max_completion_tokens'], msg: 'Extra inputs are not permitted', input: 32 };
    upstream.script(refusing(({ max_completion_tokens: newer }) => (newer === undefined ? undefined : { status: 422, json: shape(detail) })));
    const model = freshModel();
    for (let at = 0; at < 2; at++) expect((await ask('chat', model, { max_completion_tokens: 32 })).status).toBe(200);
    expect(values('max_tokens')).toEqual([undefined, 32, 32]);
  });
});

describe('an effort', () => {
  const efforts: Readonly<Record<Face, (effort: string) => object>> = {
    chat: (effort) => ({ reasoning_effort: effort }),
    responses: (effort) => ({ reasoning: { effort } }),
    messages: (effort) => (effort === 'none' ? { thinking: { type: 'disabled' } } : { output_config: { effort } }),
    gencompat: (effort) => ({ generationConfig: { thinkingConfig: effort === 'none' ? { thinkingBudget: 0 } : { thinkingLevel: effort } } }),
  };
  const accepting = (...accepted: readonly string[]): Behaviour =>
    refusing(({ reasoning_effort: effort }) => {
      if (effort === undefined || accepted.some((one) => one === effort)) return undefined;
      const list = accepted.map((one) => `'${one}'`).join(', ');
      const message = `Unsupported value: 'reasoning_effort' does not support ${JSON.stringify(effort).replaceAll('"', "'")} with this model. Supported values are: ${list}.`;
      return error(message, { param: 'reasoning_effort', code: 'unsupported_value' });
    });

  test.each(translated)('that the model refuses becomes the nearest that it lists, and costs nobody else theirs (%s, stream: %s)', async (face, stream) => {
    upstream.script(accepting('minimal', 'low', 'medium', 'high'));
    const model = freshModel();
    const { status, headers } = await ask(face, model, efforts[face]('none'), stream);
    expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringMatching(/^[\w.]+: .* none; minimal is sent instead\.$/)]);
    expect(headers.get('x-dragoman-warnings')).toContain(`${spelled(face, 'reasoning_effort')}: `);
    for (const other of ['high', 'low']) {
      await ask('chat', model, efforts.chat(other));
      await ask(face, model, efforts[face](other), stream);
    }
    expect(values('reasoning_effort')).toEqual(['none', 'minimal', 'high', 'high', 'low', 'low']);
  });

  test.each(['responses', 'messages'] as const)('above all that the model has becomes its highest (%s)', async (face) => {
    upstream.script(accepting('low', 'medium', 'high'));
    const model = freshModel();
    for (const effort of ['max', 'xhigh']) await ask(face, model, efforts[face](effort));
    await ask('messages', model, efforts.messages('none'));
    expect(values('reasoning_effort')).toEqual(['max', 'high', 'high', 'low']);
  });

  test('of a chat client is its own: the refusal stays, and nothing is learned from it', async () => {
    upstream.script(accepting('low', 'high'));
    const model = freshModel();
    expect((await ask('chat', model, efforts.chat('none'))).status).toBe(400);
    expect((await ask('chat', model, efforts.chat('high'))).status).toBe(200);
    expect(values('reasoning_effort')).toEqual(['none', 'high']);
  });

  test('that must be refused in strict mode is refused', async () => {
    upstream.script(accepting('low', 'high'));
    for (const [face, name] of [
      ['messages', 'thinking: '],
      ['responses', '"param":"reasoning.effort"'],
      ['gencompat', '"field":"generationConfig.thinkingConfig'],
    ] as const) {
      const answer = await ask(face, freshModel(), efforts[face]('none'), false, { 'x-dragoman-strict': 'true' });
      expect([answer.status, answer.raw]).toEqual([400, expect.stringContaining(name)]);
    }
  });

  test.each([
    ['`reasoning_effort` must be one of `none` or `default`', ['high', 'default', 'none']],
    ['invalid reasoning value: \'high\' (must be "medium", "low", or "none")', ['high', 'medium', 'none']],
    ["[{'type': 'literal_error', 'loc': ('body', 'reasoning_effort'), 'msg': \"Input should be 'none' or 'low'\"}]", ['high', 'low', 'none']],
    ["Unsupported value: 'high' is not supported with the 'o9' model. Supported values are: 'none' and 'low'.", ['high', 'low', 'none']],
    ['Invalid reasoning effort: high. Must be one of: [none, low]', ['high', 'low', 'none']],
  ])('is found in %s', async (message, sent) => {
    upstream.script(refusing(({ reasoning_effort: effort }) => (effort === 'high' ? error(message) : undefined)));
    const model = freshModel();
    expect((await ask('messages', model, efforts.messages('high'))).status).toBe(200);
    await ask('messages', model, efforts.messages('none'));
    expect(values('reasoning_effort')).toEqual(sent);
  });

  test('that is refused in any words costs nobody another', async () => {
    const message = "reasoning_effort: the value 'none' is not supported by this model.";
    upstream.script(refusing(({ reasoning_effort: effort }) => (effort === 'none' ? error(message) : undefined)));
    const model = freshModel();
    for (const effort of ['none', 'high']) expect((await ask('messages', model, efforts.messages(effort))).status).toBe(200);
    expect(values('reasoning_effort')).toEqual(['none', undefined, 'high']);
  });

  test('is left out where the model does not know the field', async () => {
    upstream.script(
      refusing(({ reasoning_effort: effort }) => (effort === undefined ? undefined : error('Unrecognized request argument supplied: reasoning_effort'))),
    );
    const model = freshModel();
    for (const effort of ['low', 'none']) expect((await ask('responses', model, efforts.responses(effort))).status).toBe(200);
    expect(values('reasoning_effort')).toEqual(['low', undefined, undefined]);
  });
});

describe('sampling of a model that reasons', () => {
  const sampled: Readonly<Record<string, object>> = {
    gencompat: { generationConfig: { temperature: 0.5, topP: 0.95, stopSequences: ['END'], presencePenalty: 0.5 } },
    messages: { temperature: 0.5, top_p: 0.95, stop_sequences: ['END'] },
    responses: { temperature: 0.5, top_p: 0.95 },
  };
  const picky = refusing((body) => {
    if (body['reasoning_effort'] === 'none') return undefined;
    const { temperature } = body;
    if (temperature !== undefined && temperature !== 1)
      return error(
        `Unsupported value: 'temperature' does not support ${JSON.stringify(temperature)} with this model. Only the default (1) value is supported.`,
        {
          param: 'temperature',
          code: 'unsupported_value',
        },
      );
    const field = ['top_p', 'stop', 'presence_penalty'].find((name) => body[name] !== undefined);
    return field === undefined
      ? undefined
      : error(`Unsupported parameter: '${field}' is not supported with this model.`, { param: field, code: 'unsupported_parameter' });
  });

  test.each(translated)('is left out with a warning (%s, stream: %s), and from then on at once', async (face, stream) => {
    upstream.script(picky);
    const model = freshModel();
    for (let at = 0; at < 2; at++) {
      const { status, complete, headers } = await ask(face, model, sampled[face], stream);
      expect([status, complete]).toEqual([200, true]);
      for (const name of ['temperature', 'top_p'] as const)
        expect(headers.get('x-dragoman-warnings')).toContain(`${spelled(face, name)}: this model does not take it while it thinks.`);
    }
    const { length } = bodies();
    expect(length).toBe(face === 'gencompat' ? 6 : face === 'messages' ? 5 : 4);
    for (const name of ['temperature', 'top_p', 'stop', 'presence_penalty']) expect(bodies().at(-1)).not.toHaveProperty(name);
  });

  test('goes along where the model is not to think, and that of a chat client always', async () => {
    upstream.script(picky);
    const model = freshModel();
    await ask('messages', model, sampled['messages']);
    const { length } = bodies();
    expect((await ask('messages', model, { ...sampled['messages'], thinking: { type: 'disabled' } })).headers.get('x-dragoman-warnings')).toBeNull();
    expect((await ask('chat', model, { temperature: 0.5, top_p: 0.9 })).status).toBe(400);
    expect(bodies().slice(length)).toEqual([
      expect.objectContaining({ temperature: 0.5, top_p: 0.95, stop: ['END'], reasoning_effort: 'none' }),
      expect.objectContaining({ temperature: 0.5, top_p: 0.9 }),
    ]);
  });

  test('at its default is left out without a word', async () => {
    upstream.script(refusing(({ top_p: value }) => (value === undefined ? undefined : error('x', { param: 'top_p', code: 'unsupported_parameter' }))));
    expect((await ask('gencompat', freshModel(), { generationConfig: { temperature: 1, topP: 1 } })).headers.get('x-dragoman-warnings')).toBeNull();
  });
});

describe('the role developer', () => {
  const messages = [
    { role: 'developer', content: 'Be brief.' },
    { role: 'user', content: 'hi' },
  ];
  const roles = () => bodies().map((body) => (body['messages'] as readonly { readonly role: string }[])[0]!.role);

  test.each<[string, ReturnType<Refuses>]>([
    [
      'DeepSeek',
      error(
        'Failed to deserialize the JSON body into the target type: messages[0].role: unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool` at line 1 column 85',
      ),
    ],
    [
      'Mistral',
      {
        status: 422,
        json: {
          detail: [
            {
              type: 'union_tag_invalid',
              loc: ['body', 'messages', 0],
              msg: "Input tag 'developer' found using 'role' does not match any of the expected tags: 'assistant', 'system', 'tool', 'user'",
            },
          ],
        },
      },
    ],
    ['a chat template', error('Unexpected message role.')],
    ['llama.cpp', { status: 500, json: { error: { code: 500, message: 'Jinja Exception: Unexpected message role.', type: 'server_error' } } }],
    ['Groq', error("'messages.0' : discriminator property 'role' has invalid value")],
    ['a list of roles', error("messages.0.role: Input should be 'system', 'user', 'assistant' or 'tool'")],
    ['a list of values', error("Invalid value: 'developer'. Supported values are: 'system', 'assistant', 'user', and 'tool'.", { param: 'messages[0].role' })],
    ['a list of values without a place', error("Invalid value: 'developer'. Supported values are: 'system', 'assistant', 'user', and 'tool'.")],
  ])('becomes system where it is refused in the words of %s, for chat clients and others', async (_, refused) => {
    upstream.script(refusing((body) => (JSON.stringify(body).includes('"developer"') ? refused : undefined)));
    const model = freshModel();
    expect((await ask('chat', model, { messages })).status).toBe(200);
    expect((await ask('chat', model, { messages, stream: true }, true)).complete).toBe(true);
    expect(roles()).toEqual(['developer', 'system', 'system']);
  });
});

describe('a choice among some of the tools', () => {
  const parameters = { type: 'object', properties: {} };
  const names = ['look', 'hear'];
  const tools = names.map((name) => ({ type: 'function', function: { name, parameters } }));
  const allowed = { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'hear' } }] } };
  const declared = () => bodies().map(({ tools: list, tool_choice: choice }) => [(list as typeof tools).map((one) => one.function.name), choice]);

  test('is sent as the only tools by other clients', async () => {
    upstream.script(always(toolCalls([{ name: 'hear', json: '{}' }])));
    const flat = names.map((name) => ({ type: 'function', name, parameters }));
    await ask('responses', freshModel(), {
      tools: flat,
      tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'hear' }] },
    });
    const config = { functionCallingConfig: { mode: 'VALIDATED', allowedFunctionNames: ['hear'] } };
    await ask('gencompat', freshModel(), {
      tools: [{ functionDeclarations: names.map((name) => ({ name, parametersJsonSchema: parameters })) }],
      toolConfig: config,
    });
    expect(declared()).toEqual([
      [['hear'], 'required'],
      [['hear'], 'auto'],
    ]);
  });

  test('of a chat client is sent so once it is refused', async () => {
    const message =
      'Failed to deserialize the JSON body into the target type: tool_choice: data did not match any variant of untagged enum ChatCompletionToolChoiceOption';
    upstream.script(refusing(({ tool_choice: choice }) => (typeof choice === 'object' ? error(message) : undefined)));
    const model = freshModel();
    for (let at = 0; at < 2; at++) expect((await ask('chat', model, { tools, tool_choice: allowed })).status).toBe(200);
    expect(declared()).toEqual([
      [names, allowed],
      [['hear'], 'required'],
      [['hear'], 'required'],
    ]);
  });
});

describe('ids of tool calls', () => {
  const id = (at: number) => `toolu_${at}`;
  const tools = [{ name: 'look', input_schema: { type: 'object', properties: {} } }];
  const messages = [
    { role: 'user', content: 'look' },
    { role: 'assistant', content: [0, 1].map((at) => ({ type: 'tool_use', id: id(at), name: 'look', input: {} })) },
    { role: 'user', content: [1, 0].map((at) => ({ type: 'tool_result', tool_use_id: id(at), content: `saw ${at}` })) },
  ];

  test('become nine letters and digits where nothing else is accepted, for calls and results alike', async () => {
    const isShort = (body: Body) => [...JSON.stringify(body).matchAll(/"(?:tool_call_)?id":"(.*?)"/g)].every(([, one]) => /^[A-Za-z0-9]{9}$/.test(one!));
    const message = 'Tool call id was toolu_0 but must be a-z, A-Z, 0-9, with a length of 9.';
    upstream.script(
      refusing((body) => (isShort(body) ? undefined : { json: { object: 'error', message, type: 'invalid_function_call', param: null, code: '3280' } })),
    );
    const model = freshModel();
    for (let at = 0; at < 2; at++) expect((await ask('messages', model, { tools, messages })).status).toBe(200);
    expect(bodies()).toHaveLength(3);
    const sent = bodies()[2]!['messages'] as readonly { readonly tool_calls?: readonly { id: string }[]; readonly tool_call_id?: string }[];
    const ids = sent[1]!.tool_calls!.map((call) => call.id);
    expect(new Set(ids).size).toBe(2);
    expect(sent.slice(2).map((one) => one.tool_call_id)).toEqual([ids[1], ids[0]]);
  });
});

describe('JSON', () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false };
  const withSchema: Readonly<Record<Face, object>> = {
    chat: { response_format: { type: 'json_schema', json_schema: { name: 'a', schema, strict: true } } },
    responses: { text: { format: { type: 'json_schema', name: 'a', schema, strict: true } } },
    messages: { output_config: { format: { type: 'json_schema', schema } } },
    gencompat: { generationConfig: { responseMimeType: 'application/json', responseJsonSchema: schema } },
  };
  const contents = (at: number) => (bodies()[at]!['messages'] as readonly { readonly content: string }[]).map(({ content }) => content).join('\n');

  test.each(faces)('without schemas is asked for with the schema in an instruction (%s)', async (face) => {
    const unavailable = error('This response_format type is unavailable now');
    upstream.script(
      refusing(
        ({ response_format: format }) => ((format as { type?: string } | undefined)?.type === 'json_schema' ? unavailable : undefined),
        ok({ text: '{"a":"b"}' }),
      ),
    );
    const model = freshModel();
    for (const stream of [false, true]) {
      const { status, headers, text } = await ask(face, model, withSchema[face], stream);
      expect([status, text]).toEqual([200, '{"a":"b"}']);
      expect(headers.get('x-dragoman-warnings')).toContain(`${spelled(face, 'response_format')}: `);
    }
    expect(values('response_format').map((format) => (format as { type: string }).type)).toEqual(['json_schema', 'json_object', 'json_object']);
    expect(contents(2)).toMatch(/JSON.*"additionalProperties":false/s);
  });

  test.each([
    ['response_format.type: json_schema is not supported', true],
    ["Invalid value for 'response_format.type': json_schema. Supported values are: 'text', 'json_object'.", true],
    [`'response_format.type' : value must be one of the following: ["text", "json_object"]`, true],
    ['This model does not support this: json_schema is not supported', true],
    ["Unsupported parameter: 'response_format' is not supported with this model.", false],
  ])('without schemas is known by %s', async (message, hasMode) => {
    const isRefused = (format: unknown) => format !== undefined && !(hasMode && (format as { type: string }).type === 'json_object');
    upstream.script(refusing(({ response_format: format }) => (isRefused(format) ? { ...error(message), status: 422 } : undefined), ok({ text: '{"a":"b"}' })));
    const model = freshModel();
    for (const face of ['messages', 'chat'] as const) expect((await ask(face, model, withSchema[face])).text).toBe('{"a":"b"}');
    expect(values('response_format').slice(1)).toEqual(hasMode ? [{ type: 'json_object' }, { type: 'json_object' }] : [undefined, undefined]);
    expect(contents(2)).toMatch(/JSON.*"additionalProperties":false/s);
  });

  test.each([
    ['gencompat', { generationConfig: { responseMimeType: 'application/json' } }],
    ['responses', { text: { format: { type: 'json_object' } } }],
  ] as const)('without a schema is asked for by its name (%s)', async (face, more) => {
    upstream.script(always(ok({ text: '{}' })));
    expect((await ask(face, freshModel(), more)).headers.get('x-dragoman-warnings')).toBeNull();
    expect([values('response_format'), contents(0)]).toEqual([[{ type: 'json_object' }], expect.stringMatching(/json/i)]);
  });

  test('beside tools is an instruction where the provider takes no format beside them', async () => {
    upstream.script(
      refusing(
        ({ response_format: format, tools }) => (format && tools ? error('json mode cannot be combined with tool/function calling') : undefined),
        ok({ text: '{"a":"b"}' }),
      ),
    );
    const tools = [{ name: 'look', input_schema: { type: 'object', properties: {} } }];
    expect((await ask('messages', freshModel(), { ...withSchema.messages, tools })).status).toBe(200);
    expect([bodies()[1], contents(1)]).toEqual([expect.objectContaining({ tools: [expect.anything()] }), expect.stringContaining('additionalProperties')]);
  });
});

describe('a field of one answer or several', () => {
  test('is left out where the provider accepts one', async () => {
    upstream.script(refusing(({ n }) => (typeof n === 'number' && n > 1 ? error("'n' : number must be at most 1") : undefined)));
    const model = freshModel();
    const more = { generationConfig: { candidateCount: 2 } };
    const first = await ask('gencompat', model, more);
    expect([first.status, first.headers.get('x-dragoman-warnings')]).toEqual([200, 'generationConfig.candidateCount: this model does not take it.']);
    await ask('gencompat', model, more);
    expect(values('n')).toEqual([2, undefined, undefined]);
  });
});

describe('an image for a model that reads text', () => {
  type Content = Body['content'];
  const isImage = (content: Content) => Array.isArray(content) && content.some((part: Body) => part['type'] === 'image_url');
  const seen = {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look.' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } },
        ],
      },
    ],
  };
  const refusingImages = (message: string, more: object = {}) =>
    refusing(({ messages }) => ((messages as readonly Body[]).some(({ content }) => isImage(content)) ? error(message, more) : undefined));

  // zhukunpenglinyutong/jetbrains-cc-gui#591
  test.each([
    'Failed to deserialize the JSON body into the target type: messages[0]: unknown variant `image_url`, expected `text` at line 1 column 180',
    'unknown variant `image_url`, expected `text`',
  ])('is left out with a warning, at once from then on: %s', async (message) => {
    upstream.script(refusingImages(message));
    const model = freshModel();
    for (let round = 0; round < 2; round++) {
      const { status, headers } = await ask('messages', model, seen);
      expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringContaining('image: ')]);
    }
    expect(bodies()).toHaveLength(3);
  });

  test.each([
    ['Failed to deserialize the JSON body into the target type: messages[0]: unknown variant `image_url`, expected `text` at line 1 column 85', 'messages[0]'],
    ['unknown variant `image_url`, expected `text`', 'messages'],
  ])('of a client of the same interface is refused, naming its message: %s', async (message, param) => {
    upstream.script(refusingImages(message));
    const content = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }];
    const { status, raw } = await ask('chat', freshModel(), { messages: [{ role: 'user', content }] });
    const { error: refusal } = JSON.parse(raw) as { readonly error: { readonly param: string; readonly message: string } };
    expect([status, refusal.param, refusal.message]).toEqual([400, param, expect.stringContaining(`did not accept ${param} (400`)]);
  });

  test.each<[string, string, object]>([
    ['that knows images and no files', 'messages[0]: unknown variant `file`, expected `text` or `image_url`', {}],
    ['that knows images and no files, without a place', 'unknown variant `file`, expected `text` or `image_url`', {}],
    ['that finds something else wrong with the content', 'The content is too strange.', { param: 'content' }],
  ])('is not given up for the sake of a refusal %s', async (_, message, more) => {
    upstream.script(refusingImages(message, more));
    const model = freshModel();
    expect((await ask('messages', model, seen)).status).toBe(400);
    upstream.script(always(ok()));
    expect((await ask('messages', model, seen)).headers.get('x-dragoman-warnings')).toBeNull();
    expect(isImage((bodies().at(-1)!['messages'] as readonly Body[])[0]!['content'])).toBe(true);
  });
});

test.each(["'temperature' : number must be at most 1", 'temperature must be at most 1'])(
  'a temperature that is too high costs nobody theirs: %s',
  async (message) => {
    upstream.script(refusing(({ temperature }) => (typeof temperature === 'number' && temperature > 1 ? error(message) : undefined)));
    const model = freshModel();
    expect((await ask('gencompat', model, { generationConfig: { temperature: 1.5 } })).status).toBe(400);
    expect((await ask('gencompat', model, { generationConfig: { temperature: 0.5 } })).headers.get('x-dragoman-warnings')).toBeNull();
    expect(values('temperature')).toEqual([1.5, 0.5]);
  },
);

test.each(['user', 'seed'])('a field named %s, refused without `param`, is left out of the next requests too', async (field) => {
  upstream.script(refusing((body) => (body[field] === undefined ? undefined : error(`Unrecognized request argument supplied: ${field}`))));
  const model = freshModel();
  const more = field === 'user' ? { metadata: { user_id: 'owl' } } : { generationConfig: { seed: 7 } };
  for (let round = 0; round < 2; round++) expect((await ask(field === 'user' ? 'messages' : 'gencompat', model, more)).status).toBe(200);
  expect(values(field).map((value) => value !== undefined)).toEqual([true, false, false]);
});

describe('a model of xAI or Ollama', () => {
  const xai = (message: string) => ({ json: { code: 'Client specified an invalid argument', error: message } });
  const thinking: Readonly<Record<Face, object>> = {
    chat: { reasoning_effort: 'low' },
    responses: { reasoning: { effort: 'low' } },
    messages: { max_tokens: 4000, thinking: { type: 'enabled', budget_tokens: 1024 } },
    gencompat: { generationConfig: { thinkingConfig: { thinkingLevel: 'LOW' } } },
  };

  test.each(
    [
      xai('Model grok-4 does not support parameter reasoningEffort.'),
      error('"llama3.2:latest" does not support thinking'),
      error('think value "low" is not supported for this model'),
    ].flatMap((refusal) => translated.map(([face, stream]) => [refusal, face, stream] as const)),
  )('does not think: %j (%s, stream: %s)', async (refusal, face, stream) => {
    upstream.script(refusing(({ reasoning_effort: effort }) => (effort === undefined ? undefined : refusal)));
    const model = freshModel();
    for (let round = 0; round < 2; round++) {
      const answer = await ask(face, model, thinking[face], stream);
      expect(answer).toMatchObject({ status: 200, complete: true });
      expect(answer.headers.get('x-dragoman-warnings')).toContain(`${spelled(face, 'reasoning_effort')}: this model does not`);
    }
    expect(values('reasoning_effort')).toEqual([values('reasoning_effort')[0], undefined, undefined]);
  });

  test.each(['presencePenalty', 'frequencyPenalty'] as const)('takes no %s', async (name) => {
    const field = `${name.slice(0, -7)}_penalty`;
    upstream.script(refusing((body) => (body[field] === undefined ? undefined : xai(`Model grok-4 does not support parameter ${name}.`))));
    const model = freshModel();
    for (let round = 0; round < 2; round++) {
      const answer = await ask('gencompat', model, { generationConfig: { [name]: 0.5 } });
      expect([answer.status, answer.headers.get('x-dragoman-warnings')]).toEqual([
        200,
        expect.stringContaining(`generationConfig.${name}: this model does not take it`),
      ]);
    }
    expect(values(field)).toEqual([0.5, undefined, undefined]);
    const own = await ask('chat', model, { [field]: 0.5 });
    expect([own.status, (JSON.parse(own.raw) as { error: { param: string } }).error.param]).toEqual([400, field]);
  });

  test.each(translated.filter(([face]) => face !== 'responses'))(
    'that takes no stop sequences is stopped by the gateway (%s, stream: %s)',
    async (face, stream) => {
      const answers = ok({ text: 'one two three four' });
      upstream.script(refusing(({ stop }) => (stop === undefined ? undefined : xai('Argument not supported on this model: stop')), answers));
      const model = freshModel();
      const stops = face === 'messages' ? { stop_sequences: ['three'] } : { generationConfig: { stopSequences: ['three'] } };
      for (let round = 0; round < 2; round++) {
        const answer = await ask(face, model, stops, stream);
        expect(answer).toMatchObject({ status: 200, complete: true, text: 'one two ' });
        expect(answer.headers.get('x-dragoman-warnings') ?? '').not.toContain('stop');
      }
      expect(values('stop')).toEqual([['three'], undefined, undefined]);
    },
  );
});

describe('a tool that must be called', () => {
  const message = 'tool_choice must either be a named tool, "auto", or "none".';
  const tool = (name: string) => ({ name, input_schema: { type: 'object', properties: {} } });
  const forced = (...names: readonly string[]) => ({ tools: names.map(tool), tool_choice: { type: 'any' } });
  const unforced = refusing(({ tool_choice: choice }) => (choice === 'required' ? error(message) : undefined));

  test('is named where the model takes no other order, and many are left to its choice', async () => {
    upstream.script(unforced);
    const model = freshModel();
    const first = await ask('messages', model, forced('look'));
    expect([first.status, first.headers.get('x-dragoman-warnings')]).toEqual([200, null]);
    const second = await ask('messages', model, forced('look', 'hear'));
    expect([second.status, second.headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringContaining('tool_choice: this model cannot be forced')]);
    expect(values('tool_choice')).toEqual(['required', { type: 'function', function: { name: 'look' } }, 'auto']);
  });

  test('is left to a model that cannot be forced at all', async () => {
    upstream.script(
      refusing(({ tool_choice: choice }) =>
        choice === undefined || choice === 'auto' ? undefined : error('deepseek-reasoner does not support this tool_choice'),
      ),
    );
    const model = freshModel();
    expect((await ask('messages', model, forced('look'))).status).toBe(200);
    expect((await ask('messages', model, { ...forced('look', 'hear'), tool_choice: { type: 'tool', name: 'hear' } })).status).toBe(200);
    expect(values('tool_choice')).toEqual(['required', { type: 'function', function: { name: 'look' } }, 'auto', 'auto']);
    expect(bodies().at(-1)).toMatchObject({ tools: [{ function: { name: 'hear' } }] });
  });

  test.each(['Thinking mode does not support this tool_choice', 'The tool_choice parameter does not support being set to required or object in thinking mode'])(
    'is called where the model does not think, after it refused one while it thinks (%s)',
    async (refusal) => {
      upstream.script(refusing(({ tool_choice: choice, reasoning_effort: effort }) => (choice !== 'auto' && effort !== 'none' ? error(refusal) : undefined)));
      const model = freshModel();
      const warned = async (type: string) =>
        (
          await ask('messages', model, { ...forced('look'), max_tokens: 4096, thinking: type === 'enabled' ? { type, budget_tokens: 1024 } : { type } })
        ).headers.get('x-dragoman-warnings');
      for (let at = 0; at < 2; at++) expect(await warned('enabled')).toContain('tool_choice: this model cannot be forced');
      expect(await warned('disabled')).toBeNull();
      expect(values('tool_choice')).toEqual(['required', 'auto', 'auto', 'required']);
    },
  );

  test('of a chat client is its own: the refusal names it', async () => {
    upstream.script(unforced);
    const answer = await ask('chat', freshModel(), { tools: [{ type: 'function', function: { name: 'look' } }], tool_choice: 'required' });
    expect([answer.status, (JSON.parse(answer.raw) as { error: { param: string } }).error.param]).toEqual([400, 'tool_choice']);
    expect(upstream.requests).toHaveLength(1);
  });
});

test('the kind of an error in the place of its field is not named', async () => {
  const json = { message: "type: Input should be 'text'", type: 'invalid_request_error', param: 'validation_error', code: 'wrong_api_format' };
  for (const face of faces) {
    upstream.script(refusing(() => ({ status: 422, json })));
    const { raw } = await ask(face, freshModel());
    expect(raw).toMatch(/did not accept the request [^"]{0,40}It says: type: Input should be 'text'/);
    expect(raw).not.toContain('validation_error');
  }
});

describe('metadata of a responses client', () => {
  const metadata = { order: '17' };

  test.each([false, true])('arrives at a server that nobody knows, streamed: %s', async (stream) => {
    upstream.script(always(ok()));
    const { status, headers } = await askFace(server, 'responses', { model: freshModel(), content: 'hi', stream, more: { metadata } });
    expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, null]);
    expect(values('metadata')).toEqual([metadata]);
  });

  // QwenLM/qwen-code#243
  test.each(["The 'metadata' parameter is only allowed when 'store' is enabled.", 'Unrecognized request argument supplied: metadata'])(
    'is left out, with a warning, where the server refuses it: %s',
    async (message) => {
      upstream.script(refusing((body) => (body['metadata'] === undefined ? undefined : error(message))));
      const model = freshModel();
      for (let round = 0; round < 2; round++) {
        const { status, headers, raw } = await ask('responses', model, { metadata });
        expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringContaining('metadata: ')]);
        expect(JSON.parse(raw)).toMatchObject({ metadata });
      }
      expect(values('metadata')).toEqual([metadata, undefined, undefined]);
      // The response has it all the same.
      expect((await ask('responses', model, { metadata }, false, { 'x-dragoman-strict': 'true' })).status).toBe(200);
      for (const face of ['chat', 'responses'] as const)
        expect((await ask(face, model, { metadata: {} })).headers.get('x-dragoman-warnings'), 'nothing is lost of what is empty').toBeNull();
    },
  );
});

// https://docs.mistral.ai/capabilities/completion/prefix
test.each(['responses', 'messages', 'gencompat'] as const)('an answer that a %s client has begun is marked where the provider demands that', async (face) => {
  upstream.script(
    refusing(({ messages }) => {
      const last = (messages as readonly Body[]).at(-1)!;
      if (last['role'] !== 'assistant' || last['prefix'] === true) return undefined;
      return error('Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant');
    }),
  );
  const model = freshModel();
  const begun = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'Well,' },
  ];
  const contents = [
    { role: 'user', parts: [{ text: 'hi' }] },
    { role: 'model', parts: [{ text: 'Well,' }] },
  ];
  const more = face === 'responses' ? { input: begun } : face === 'messages' ? { messages: begun } : { contents };
  for (let round = 0; round < 2; round++) expect((await ask(face, model, more)).status).toBe(200);
  expect(upstream.requests).toHaveLength(3);
});

test.each([
  ['top_k', { top_k: 5 }],
  ['thinking', { thinking: { type: 'enabled' } }],
  ['reasoning_effort', { reasoning_effort: 'default' }],
])('a refusal of %s, which a chat client wrote, names it as the client’s', async (field, more) => {
  upstream.script(refusing((body) => (body[field] === undefined ? undefined : error(`Unrecognized request argument supplied: ${field}`))));
  const { status, raw } = await ask('chat', freshModel(), more);
  expect({ status, raw: JSON.parse(raw) as unknown }).toMatchObject({ status: 400, raw: { error: { param: field } } });
  expect(raw).not.toContain('the gateway added');
});

test('fields are left out one after the other, as many as a provider refuses so', async () => {
  const fields = [
    'parallel_tool_calls',
    'seed',
    'user',
    'presence_penalty',
    'frequency_penalty',
    'top_p',
    'temperature',
    'stop',
    'max_tokens',
    'reasoning_effort',
  ];
  upstream.script(
    refusing((body) => {
      const field = fields.find((one) => body[one] !== undefined);
      return field === undefined ? undefined : { status: 422, json: { detail: [{ loc: ['body', field], msg: 'Extra inputs are not permitted' }] } };
    }),
  );
  const generationConfig = { temperature: 0.5, topP: 0.5, stopSequences: ['x'], maxOutputTokens: 50, seed: 3, presencePenalty: 0.1, frequencyPenalty: 0.1 };
  const more = { generationConfig: { ...generationConfig, thinkingConfig: { thinkingLevel: 'HIGH' } } };
  expect((await ask('gencompat', freshModel(), more)).status).toBe(200);
  expect(bodies().at(-1)).toMatchObject({ max_completion_tokens: 50 });
});

test('thoughts of a chat client are left out where a message with them is refused in the words of Groq', async () => {
  const message =
    "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported, did you mean 'role'?)]";
  upstream.script(refusing((body) => (JSON.stringify(body).includes('reasoning_content') ? error(message) : undefined)));
  const model = freshModel();
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'Well.', reasoning_content: 'Hm.' },
    { role: 'user', content: 'and?' },
  ];
  for (let round = 0; round < 2; round++) expect((await ask('chat', model, { messages })).status).toBe(200);
  expect(upstream.requests).toHaveLength(3);
});

describe('a strict client', () => {
  test('reads its own names for the fields that a provider does not support', async () => {
    const strict = { 'x-dragoman-strict': 'true' };
    const gencompat = await askFace(server, 'gencompat', {
      model: 'gpt-4o',
      content: 'hi',
      stream: false,
      more: { generationConfig: { topK: 5 } },
      headers: strict,
    });
    expect(gencompat.status).toBe(400);
    expect(gencompat.raw).toContain('generationConfig.topK: ');
    const messages = await askFace(server, 'messages', { model: 'gpt-4o', content: 'hi', stream: false, more: { top_k: 5 }, headers: strict });
    expect(JSON.parse(messages.raw)).toMatchObject({ error: { message: expect.stringContaining('top_k: ') as string } });
  });
});
