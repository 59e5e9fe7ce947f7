import { describe, expect, test } from 'vitest';
import { askFace, everyWay, type AskingFace, type Face, spelled } from '../support/all-faces.ts';
import { always, badRequest, ok } from '../support/fakes/upstream/index.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** Servers of the Messages API at an address that nobody knows: what they refuse tells what they are. Each test has a model of its own, since lessons are kept. */

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  claude: { dialect: anthropic-messages, baseUrl: "${url}", apiKeys: [k] }
  saving: { dialect: anthropic-messages, baseUrl: "${url}", apiKeys: [k], caching: auto }
models:
  saving: { targets: [{ provider: saving }], limits: { output: 64000 } }
  unknown: { targets: [{ provider: claude }] }
  "*": { targets: [{ provider: claude }], limits: { output: 64000 } }
routing: { cooldownSeconds: 0 }
`,
}));

interface Sent {
  readonly temperature?: number;
  readonly top_p?: number;
  readonly system?: unknown;
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  readonly tools?: readonly { readonly name: string; readonly strict?: boolean; readonly input_schema: Readonly<Record<string, unknown>> }[];
  readonly tool_choice?: unknown;
  readonly thinking?: unknown;
  readonly output_config?: { readonly effort?: string; readonly format?: { readonly schema: unknown } };
  readonly cache_control?: unknown;
  readonly max_tokens: number;
}

const sent = (at = 0) => upstream.requests[at]!.json as Sent;
const bodies = () => upstream.requests.map(({ json }) => json as Sent);

let models = 0;
const newModel = () => `model-${models++}`;

const ask = async (face: Face, more: object, { stream = false, ...asking }: Partial<AskingFace> = {}) => {
  const answer = await askFace(server, face, { model: newModel(), content: 'hi', stream, more, ...asking });
  return { ...answer, warnings: answer.headers.get('x-dragoman-warnings') ?? '' };
};
const strict = { headers: { 'x-dragoman-strict': 'true' } };

/** The translated interfaces, whole and streamed. */
const translated = everyWay.filter(([face]) => face !== 'messages');

describe('a model that accepts either a temperature or a top_p', () => {
  const refusal = () => badRequest({ message: '`temperature` and `top_p` cannot both be specified for this model. Please use only one.' });
  const sliders = (face: Face, temperature: number) => (face === 'gencompat' ? { generationConfig: { temperature, topP: 0.9 } } : { temperature, top_p: 0.9 });

  test.each(translated)('is sent the temperature, and what is left out is named (%s, stream %s)', async (face, stream) => {
    upstream.script(refusal(), always(ok()));
    const model = newModel();
    for (let at = 0; at < 2; at++) {
      const { status, warnings } = await ask(face, sliders(face, 0.7), { stream, model });
      expect([status, warnings]).toEqual([200, `${spelled(face, 'top_p')}: this model accepts either temperature or top_p, not both.`]);
    }
    expect(bodies().map(({ temperature, top_p: topP }) => [temperature, topP])).toEqual([
      [0.7, 0.9],
      [0.7, undefined],
      [0.7, undefined],
    ]);
  });

  test.each(['temperature and top_p cannot both be set. Use only one.', '`temperature` and `top_p` are not supported together.'])(
    'is known by other words: %s',
    async (message) => {
      upstream.script(badRequest({ message }), always(ok()));
      expect((await ask('chat', sliders('chat', 0.7))).status).toBe(200);
      expect([sent(1).temperature, sent(1).top_p]).toEqual([0.7, undefined]);
    },
  );

  test('is told from one that accepts none of them', async () => {
    upstream.script(badRequest({ message: '`temperature`, `top_p` and `top_k` are not supported for this model.' }), always(ok()));
    const { status, warnings } = await ask('gencompat', { generationConfig: { temperature: 0.5, topP: 0.9, topK: 5 } });
    expect([status, warnings]).toEqual([200, expect.stringMatching(/\.temperature: .*\.topP: .*\.topK: /)]);
    expect([upstream.requests.length, sent(1).temperature, sent(1).top_p]).toEqual([2, undefined, undefined]);
  });

  test('is sent the top_p where the temperature is the default', async () => {
    upstream.script(refusal(), always(ok()));
    const { warnings } = await ask('gencompat', sliders('gencompat', 1));
    expect(sent(1)).toMatchObject({ top_p: 0.9 });
    expect(sent(1)).not.toHaveProperty('temperature');
    expect(warnings).toMatch(/^generationConfig\.temperature: /);
  });

  test('is between a client of the Messages API and the provider', async () => {
    upstream.script(refusal(), always(ok()));
    const model = newModel();
    expect((await ask('messages', { temperature: 0.7, top_p: 0.9 }, { model })).status).toBe(400);
    await ask('messages', { temperature: 0.7, top_p: 0.9 }, { model });
    expect(sent(1)).toMatchObject({ temperature: 0.7, top_p: 0.9 });
  });
});

describe('a model that cannot be forced to call a tool', () => {
  const refusal = () => badRequest({ message: 'tool_choice: type "tool" and "any" are not supported for this model.' });
  const named = (name: string) => ({ type: 'function', function: { name, parameters: { type: 'object', properties: {} } } });
  const tools = [named('look'), named('listen')];

  test('is asked to, and that is said', async () => {
    upstream.script(refusal(), always(ok()));
    const model = newModel();
    const { status, warnings } = await ask('chat', { tools, tool_choice: 'required' }, { model });
    expect([status, warnings]).toEqual([200, 'tool_choice: this model cannot be forced to call a tool, so it is told to.']);
    expect(sent(1)).toMatchObject({ tool_choice: { type: 'auto' }, system: 'You must call at least one of the tools in this turn.' });
    expect(sent(1).tools).toHaveLength(2);
    const refused = await ask('chat', { tools, tool_choice: 'required' }, { model, ...strict });
    expect([refused.status, JSON.parse(refused.raw)]).toMatchObject([400, { error: { message: expect.stringContaining('tool_choice: ') as string } }]);
    expect(upstream.requests).toHaveLength(2);
  });

  test.each(['tool_choice forces tool use is not supported with this model', "tool_choice.type: Input should be 'auto' or 'none'"])(
    'is known by other words: %s',
    async (message) => {
      upstream.script(badRequest({ message }), always(ok()));
      expect((await ask('chat', { tools, tool_choice: 'required' })).status).toBe(200);
      expect(sent(1)).toMatchObject({ tool_choice: { type: 'auto' } });
    },
  );

  test('is given the named tool alone', async () => {
    upstream.script(refusal(), always(ok()));
    await ask('chat', { tools, tool_choice: { type: 'function', function: { name: 'listen' } }, reasoning_effort: 'low' });
    expect(sent(1)).toMatchObject({ tool_choice: { type: 'auto' }, system: 'You must call the tool listen in this turn.', thinking: { type: 'enabled' } });
    expect(sent(1).tools?.map(({ name }) => name)).toEqual(['listen']);
  });
});

describe('a model that always thinks', () => {
  const refusal = () =>
    badRequest({
      message:
        '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
    });
  const off = {
    chat: { reasoning_effort: 'none' },
    responses: { reasoning: { effort: 'none' } },
    gencompat: { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } },
  };

  test.each(translated)('is asked for its lowest effort (%s, stream %s)', async (face, stream) => {
    upstream.script(refusal(), always(ok()));
    const { status, warnings } = await ask(face, off[face as 'chat'], { stream });
    expect([status, warnings]).toMatchObject([200, expect.stringContaining(`${spelled(face, 'reasoning_effort')}: `) as string]);
    expect(sent(1)).toMatchObject({ output_config: { effort: 'low' } });
    expect(sent(1)).not.toHaveProperty('thinking');
  });

  test('is not sent again what it refused', async () => {
    upstream.script(always(refusal()));
    const { status } = await ask('chat', off.chat);
    expect(status).toBe(400);
    expect(new Set(upstream.requests.map(({ json }) => JSON.stringify(json))).size).toBe(upstream.requests.length);
  });
});

describe('schemas', () => {
  const schema = {
    type: 'object',
    properties: {
      age: { type: 'integer', minimum: 0, maximum: 150 },
      pets: { type: 'array', minItems: 2, items: { type: 'object', properties: { name: { type: 'string' } } } },
    },
    required: ['age'],
  };
  const closed = {
    type: 'object',
    properties: {
      age: { type: 'integer', description: '{minimum: 0, maximum: 150}' },
      pets: { type: 'array', description: '{minItems: 2}', items: { type: 'object', properties: { name: { type: 'string' } }, additionalProperties: false } },
    },
    required: ['age'],
    additionalProperties: false,
  };
  const asked = {
    chat: { response_format: { type: 'json_schema', json_schema: { name: 'n', strict: true, schema } } },
    responses: { text: { format: { type: 'json_schema', name: 'n', strict: true, schema } } },
    gencompat: { generationConfig: { responseMimeType: 'application/json', responseJsonSchema: schema } },
  };

  test.each(translated)('are closed and their bounds told; the answer is held against the original (%s, stream %s)', async (face, stream) => {
    upstream.script(ok({ text: '{"age":200}' }), ok({ text: '{"age":20}' }));
    const { status, text, warnings } = await ask(face, asked[face as 'chat'], { stream });
    expect([status, text, warnings]).toEqual([200, '{"age":20}', '']);
    expect(sent().output_config).toEqual({ format: { type: 'json_schema', schema: closed } });
    expect(upstream.requests).toHaveLength(2);
  });

  test.each(translated)('that nothing can satisfy are an error in the end (%s, stream %s)', async (face, stream) => {
    upstream.script(always(ok({ text: '{"age":200}' })));
    const { status, complete } = await ask(face, asked[face as 'chat'], { stream });
    expect([status === 200 && complete, upstream.requests.length]).toEqual([false, 2]);
  });

  test('of a client that does not insist are passed on with a warning', async () => {
    upstream.script(always(ok({ text: '{"age":200}' })));
    const { status, text, warnings } = await ask('chat', { response_format: { type: 'json_schema', json_schema: { name: 'n', schema } } });
    expect([status, text, upstream.requests.length]).toEqual([200, '{"age":200}', 1]);
    expect(warnings).toMatch(/^response_format: .*not checked/);
  });

  test('that are recursive become an instruction', async () => {
    const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } };
    const recursive = { $ref: '#/$defs/node', $defs: { node } };
    upstream.script(ok({ text: 'Here: {}' }), ok({ text: '{"next":{}}' }));
    const { text, warnings } = await ask('chat', { response_format: { type: 'json_schema', json_schema: { name: 'n', strict: true, schema: recursive } } });
    expect([text, warnings]).toMatchObject(['{"next":{}}', expect.stringMatching(/^response_format: /) as string]);
    expect(sent()).not.toHaveProperty('output_config');
    expect(sent().system).toContain(JSON.stringify(recursive));
  });

  test('of a client of the Messages API go as they are', async () => {
    upstream.script(ok({ text: '{"age":200}' }));
    const { text } = await ask('messages', { output_config: { format: { type: 'json_schema', schema } } });
    expect([text, sent().output_config]).toEqual(['{"age":200}', { format: { type: 'json_schema', schema } }]);
  });

  test('of strict tools are closed, and a tool that does not fit is not strict', async () => {
    upstream.script(ok());
    const tool = (name: string, parameters: object) => ({ type: 'function', function: { name, parameters, strict: true } });
    const { warnings } = await ask('chat', {
      tools: [tool('fits', { type: 'object', properties: {} }), tool('map', { type: 'object', additionalProperties: { type: 'number' } })],
    });
    expect(sent().tools).toEqual([
      { name: 'fits', input_schema: { type: 'object', properties: {}, additionalProperties: false }, strict: true },
      { name: 'map', input_schema: { type: 'object', additionalProperties: { type: 'number' } } },
    ]);
    expect(warnings).toBe('strict: the provider cannot enforce the schema of the tool map.');
  });

  test('that are refused all the same become an instruction for that call alone', async () => {
    upstream.script(badRequest({ message: 'output_config.format.schema: Schema is too complex' }), always(ok({ text: '{"age":1}' })));
    const model = newModel();
    for (let at = 0; at < 2; at++) expect((await ask('chat', asked.chat, { model })).status).toBe(200);
    expect(bodies().map(({ output_config: config }) => config !== undefined)).toEqual([true, false, true]);
  });

  test('JSON without a schema is asked for by an instruction, and the answer is checked', async () => {
    upstream.script(ok({ text: 'Sure.' }), ok({ text: '```json\n{"a":1}\n```' }));
    const { text, warnings } = await ask('chat', { response_format: { type: 'json_object' } });
    expect([text, warnings]).toMatchObject(['{"a":1}', expect.stringMatching(/^response_format: /) as string]);
    expect(sent().system).toMatch(/JSON object/);
  });
});

describe('cache breakpoints', () => {
  const breakpoint = { cache_control: { type: 'ephemeral', ttl: '1h' } };

  test('are set where a chat client sets them', async () => {
    upstream.script(ok());
    const messages = [
      { role: 'system', content: [{ type: 'text', text: 'Long.', ...breakpoint }] },
      { role: 'user', content: [{ type: 'text', text: 'hi', ...breakpoint }] },
    ];
    const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } }, ...breakpoint }];
    const { warnings } = await ask('chat', { messages, tools });
    expect(warnings).toBe('');
    expect(sent()).toMatchObject({
      system: [{ type: 'text', text: 'Long.', ...breakpoint }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', ...breakpoint }] }],
      tools: [{ name: 'look', ...breakpoint }],
    });
  });

  test('are set where a chat client sets them within a function, which a strict client may do, too', async () => {
    upstream.script(always(ok()));
    const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} }, ...breakpoint } }];
    const { status, warnings } = await ask('chat', { tools }, strict);
    expect([status, warnings]).toEqual([200, '']);
    expect(sent()).toMatchObject({ tools: [{ name: 'look', ...breakpoint }] });
  });

  test('are set where a client of responses sets them, and where a message has one as a whole', async () => {
    upstream.script(always(ok()));
    await ask('responses', { input: [{ role: 'user', content: [{ type: 'input_text', text: 'hi', ...breakpoint }] }] });
    await ask('chat', { messages: [{ role: 'user', content: 'hi', ...breakpoint }] });
    for (const { messages } of bodies()) expect(messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'hi', ...breakpoint }] }]);
  });

  test('cover the whole request at a provider with caching: auto, unless the client sets some itself', async () => {
    upstream.script(always(ok()));
    await ask('chat', {}, { model: 'saving' });
    await ask('chat', { messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', ...breakpoint }] }] }, { model: 'saving' });
    expect(bodies().map(({ cache_control: whole }) => whole)).toEqual([{ type: 'ephemeral' }, undefined]);
  });
});

describe('thinking', () => {
  test.each([
    [2048, 1536],
    [1400, 1050],
  ])('leaves a quarter of %i tokens to the answer', async (most, budget) => {
    upstream.script(ok());
    await ask('chat', { reasoning_effort: 'high', max_tokens: most });
    expect(sent()).toMatchObject({ max_tokens: most, thinking: { budget_tokens: budget } });
  });

  test('is left out where the answer would have no room, and that is said', async () => {
    upstream.script(ok());
    const { warnings } = await ask('chat', { reasoning_effort: 'high', max_tokens: 1300 });
    expect(sent()).not.toHaveProperty('thinking');
    expect(warnings).toMatch(/^reasoning_effort: /);
  });

  test('shows thoughts of a model that thinks by effort alone', async () => {
    upstream.script(badRequest({ message: '"thinking.type.enabled" is not supported for this model.' }), always(ok()));
    await ask('chat', { reasoning_effort: 'max' });
    expect(sent(1)).toMatchObject({ thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'max' } });
  });

  test('is left out for a model that has none, in the words of Ollama', async () => {
    upstream.script(badRequest({ message: '"llama3.2:latest" does not support thinking' }), always(ok()));
    const model = newModel();
    for (let at = 0; at < 2; at++) {
      const { status, warnings } = await ask('chat', { reasoning_effort: 'low' }, { model });
      expect([status, warnings]).toEqual([200, 'reasoning_effort: this model does not think.']);
    }
    expect(bodies().map(({ thinking }) => thinking !== undefined)).toEqual([true, false, false]);
  });

  test('has the nearest effort that the model accepts', async () => {
    upstream.script(
      badRequest({ message: '"thinking.type.enabled" is not supported for this model.' }),
      badRequest({ message: "output_config.effort: Input should be 'low', 'medium' or 'high'" }),
      always(ok()),
    );
    const model = newModel();
    await ask('chat', { reasoning_effort: 'max' }, { model });
    await ask('chat', { reasoning_effort: 'medium' }, { model });
    expect(bodies().map(({ output_config: config }) => config?.effort)).toEqual([undefined, 'max', 'high', 'medium']);
  });
});

describe('system messages in the middle', () => {
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'ho' },
    { role: 'system', content: 'Be kind.' },
    { role: 'user', content: 'again' },
  ];

  test('are text of the user there', async () => {
    upstream.script(ok());
    const { warnings } = await ask('chat', { messages });
    expect(sent()).toMatchObject({
      system: 'Be brief.',
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: 'ho' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Be kind.' },
            { type: 'text', text: 'again' },
          ],
        },
      ],
    });
    expect(warnings).toMatch(/^system: /);
  });

  test('of a client of the Messages API are so too, once the model has refused one', async () => {
    upstream.script(
      badRequest({
        message: 'messages.1.role: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.',
      }),
      always(ok()),
    );
    const { status } = await ask('messages', {
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'system', content: 'Be kind.' },
      ],
    });
    expect([status, sent(1).messages]).toEqual([
      200,
      [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'hi' },
            { type: 'text', text: 'Be kind.' },
          ],
        },
      ],
    ]);
  });
});

describe('nothing to say', () => {
  test.each<[string, readonly object[], unknown]>([
    ['only system messages', [{ role: 'system', content: 'Tell me a joke.' }], [{ role: 'user', content: 'Tell me a joke.' }]],
    ['an empty text', [{ role: 'user', content: '' }], [{ role: 'user', content: '.' }]],
    ['white space', [{ role: 'user', content: ' \n' }], [{ role: 'user', content: '.' }]],
    [
      'white space beside a text',
      [
        {
          role: 'user',
          content: [
            { type: 'text', text: '\n' },
            { type: 'text', text: 'hi' },
          ],
        },
      ],
      [{ role: 'user', content: 'hi' }],
    ],
  ])('%s is said in a way that the provider accepts', async (_, messages, expected) => {
    upstream.script(ok());
    expect((await ask('chat', { messages })).status).toBe(200);
    expect(sent().messages).toEqual(expected);
    expect(sent()).not.toHaveProperty('system');
  });

  test('a message of which nothing can be sent is refused, and names what that is', async () => {
    const messages = [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } }] }];
    const { status, raw } = await ask('chat', { messages });
    expect([status, JSON.parse(raw)]).toMatchObject([400, { error: { param: 'messages', message: expect.stringContaining('audio') as string } }]);
    expect(upstream.requests).toHaveLength(0);
  });

  test.each([
    ['a file of another provider', { type: 'file', file: { file_id: 'file-123' } }, 'file'],
    [
      'a document of an office',
      { type: 'file', file: { filename: 'a.docx', file_data: 'data:application/vnd.openxmlformats-officedocument.wordprocessingml.document;base64,UEsDBA==' } },
      'wordprocessingml',
    ],
    ['an image of a type that the provider does not have', { type: 'image_url', image_url: { url: 'data:image/bmp;base64,Qk0=' } }, 'image/bmp'],
  ])('%s is never sent', async (_, part, name) => {
    upstream.script(always(ok()));
    const alone = await ask('chat', { messages: [{ role: 'user', content: [part] }] });
    expect([alone.status, alone.raw]).toMatchObject([400, expect.stringContaining(name) as string]);
    const { status, warnings } = await ask('chat', { messages: [{ role: 'user', content: [{ type: 'text', text: 'See:' }, part] }] });
    expect([status, warnings]).toMatchObject([200, expect.stringContaining(name) as string]);
    expect(bodies().map(({ messages }) => messages)).toEqual([[{ role: 'user', content: 'See:' }]]);
  });

  test('an image of text is sent as text', async () => {
    upstream.script(ok());
    const url = `data:image/svg+xml;base64,${Buffer.from('<svg/>').toString('base64')}`;
    await ask('chat', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] });
    expect(sent().messages[0]!.content).toEqual([{ type: 'document', source: { type: 'text', media_type: 'text/plain', data: '<svg/>' } }]);
  });
});

describe('an answer that was begun', () => {
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'Once upon ' },
  ];

  test('is sent without white space at its end', async () => {
    upstream.script(ok());
    const { warnings } = await ask('chat', { messages });
    expect(sent().messages.at(-1)).toEqual({ role: 'assistant', content: 'Once upon' });
    expect(warnings).toMatch(/^messages: /);
  });

  test('is followed by the user where the model does not go on with one', async () => {
    upstream.script(
      badRequest({ message: 'This model does not support assistant message prefill. The conversation must end with a user message.' }),
      always(ok()),
    );
    const { status, warnings } = await ask('chat', { messages });
    expect([status, sent(1).messages.at(-1)]).toEqual([200, { role: 'user', content: 'Continue.' }]);
    expect(warnings).toMatch(/^messages: this model does not continue/);
  });
});

describe('a limit that nobody named', () => {
  test.each(translated)('is named in a warning, and no reason to refuse a strict client (%s, stream %s)', async (face, stream) => {
    upstream.script(always(ok()));
    for (const more of [{}, strict]) {
      const { status, warnings } = await ask(face, {}, { model: 'unknown', stream, ...more });
      expect([status, warnings]).toMatchObject([200, expect.stringMatching(/^[\w.]+: .*8192/) as string]);
      expect(warnings).toContain(`${spelled(face, 'max_tokens')}: `);
    }
    expect(bodies().map(({ max_tokens: most }) => most)).toEqual([8192, 8192]);
  });

  test.each(translated)('is that of the model where it is known, without a warning (%s, stream %s)', async (face, stream) => {
    upstream.script(always(ok()));
    expect((await ask(face, {}, { stream })).warnings).toBe('');
    expect(sent().max_tokens).toBe(64_000);
  });
});

describe('beta features that Claude Code sends to every server', () => {
  const betaError = (...names: readonly string[]) =>
    badRequest({
      message: `Unexpected value(s) ${names.map((one) => `\`${one}\``).join(', ')} for the \`anthropic-beta\` header. Please consult our documentation.`,
    });
  const betas = () => upstream.requests.map(({ headers }) => headers['anthropic-beta']);

  test('go to a server without those that it refuses', async () => {
    upstream.script(betaError('b-2026-01-01', 'c-2026-01-01'), always(ok()));
    const model = newModel();
    for (let at = 0; at < 2; at++) {
      const { status, warnings } = await ask('messages', {}, { model, headers: { 'anthropic-beta': 'a-2026-01-01,b-2026-01-01, c-2026-01-01' } });
      expect([status, warnings]).toEqual([200, 'anthropic-beta: the provider does not know b-2026-01-01, c-2026-01-01.']);
    }
    await ask('messages', {}, { model, headers: { 'anthropic-beta': 'b-2026-01-01' } });
    expect(betas()).toEqual(['a-2026-01-01,b-2026-01-01, c-2026-01-01', 'a-2026-01-01', 'a-2026-01-01', undefined]);
  });

  test('are no reason to ask twice where the client sent none of them', async () => {
    upstream.script(always(betaError('b-2026-01-01')));
    expect((await ask('messages', {}, { headers: { 'anthropic-beta': 'a-2026-01-01' } })).status).toBe(400);
    expect(upstream.requests).toHaveLength(1);
  });

  const breakpoint = { type: 'ephemeral', ttl: '1h', scope: 'global' };
  const more = {
    max_tokens: 100,
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    output_config: { effort: 'high' },
    system: [{ type: 'text', text: 'Be brief.', cache_control: breakpoint }],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', cache_control: breakpoint }] }],
    tools: [
      {
        name: 'look',
        input_schema: { type: 'object', properties: { cache_control: { type: 'object', properties: { scope: { type: 'string' } } } } },
        eager_input_streaming: true,
        input_examples: [{}],
        cache_control: breakpoint,
      },
    ],
  };

  test.each<[string, string, RegExp]>([
    ['context_management', 'context_management', /"context_management"/],
    ['system.0.cache_control.ephemeral.scope', 'cache_control.scope', /"scope":"/],
    ['messages.0.content.0.text.cache_control.ephemeral.ttl', 'cache_control.ttl', /"ttl"/],
    ['tools.0.custom.eager_input_streaming', 'tools.eager_input_streaming', /"eager_input_streaming"/],
    ['tools.0.custom.input_examples', 'tools.input_examples', /"input_examples"/],
    ['output_config', 'output_config.effort', /"output_config"/],
  ])('have no member %s where a server does not know it', async (place, name, pattern) => {
    upstream.script(badRequest({ message: `${place}: Extra inputs are not permitted` }), always(ok()));
    const model = newModel();
    for (let at = 0; at < 2; at++) {
      const { status, warnings } = await ask('messages', more, { model });
      expect([status, warnings]).toEqual([200, `${name}: the provider does not know it.`]);
    }
    const texts = bodies().map((body) => JSON.stringify(body));
    expect(texts.map((text) => pattern.test(text))).toEqual([true, false, false]);
    expect(texts[1]).toContain('"properties":{"cache_control":{"type":"object","properties":{"scope"');
    const kept = { context_management: 1, output_config: 1, system: 1, messages: 1, tools: 1 };
    expect(Object.keys(bodies()[1]!)).toEqual(expect.arrayContaining(Object.keys(kept).filter((one) => one !== place)));
  });

  test('have other members refused as they are', async () => {
    upstream.script(always(badRequest({ message: 'messages.0.content.0.text.colour: Extra inputs are not permitted' })));
    expect((await ask('messages', more)).status).toBe(400);
    expect(upstream.requests).toHaveLength(1);
  });
});
