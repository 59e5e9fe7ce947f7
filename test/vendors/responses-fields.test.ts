import { describe, expect, test } from 'vitest';
import { always, badRequest, ok, type Behaviour } from '../support/fakes/upstream/index.ts';
import { askFace, type Face } from '../support/all-faces.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** Fields and values that OpenAI's models refuse on the Responses API. */

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  elsewhere: { dialect: openai-responses, baseUrl: "${url}/v1", apiKeys: [k] }
  chat: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k] }
  azure: { dialect: openai-responses, kind: azure, apiVersion: v1, baseUrl: "${url}", apiKeys: [k] }
models:
  on-chat: { targets: [{ provider: chat }] }
${Array.from({ length: 40 }, (_, at) => `  m${at}: { targets: [{ provider: elsewhere }] }\n`).join('')}${['gpt-5', 'gpt-5.1', 'gpt-4o'].map((name) => `  ${name}: { targets: [{ provider: azure }] }\n`).join('')}routing: { cooldownSeconds: 0 }
`,
}));

let models = 0;
const fresh = () => `m${models++}`;
type Json = Readonly<Record<string, unknown>>;
const sent = (at = -1) => upstream.requests.at(at)!.json as Json;
const efforts = () => upstream.requests.map(({ json }) => (json as { readonly reasoning?: { readonly effort?: string } }).reasoning?.effort);

/** Refuses requests that `refuses` finds fault with, in the words of OpenAI. */
const refusing = (refuses: (body: Json) => { readonly message: string; readonly param?: string; readonly code?: string } | undefined): Behaviour =>
  always({
    name: 'refusing',
    answer(exchange) {
      const error = refuses(exchange.request.json as Json);
      if (!error) return ok().answer(exchange);
      return {
        status: 400,
        headers: { 'content-type': 'application/json' },
        body: [JSON.stringify({ error: { type: 'invalid_request_error', code: null, ...error } })],
        framing: 'chunked',
        end: 'finish',
      };
    },
  });

const ask = (face: Face, model: string, more: object = {}, headers: Readonly<Record<string, string>> = {}) =>
  askFace(server, face, { model, content: 'hi', stream: false, more, headers });

test.each(['Model grok-4 does not support parameter reasoningEffort.', '"llama3.2:latest" does not support thinking'])(
  'a model does not think, in the words of xAI and Ollama: %s',
  async (message) => {
    upstream.script(refusing(({ reasoning }) => (reasoning === undefined ? undefined : { message })));
    const model = fresh();
    for (const face of ['chat', 'responses'] as const) {
      const { status, headers } = await ask(face, model, face === 'chat' ? { reasoning_effort: 'low' } : { reasoning: { effort: 'low' } });
      expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringMatching(/^reasoning[_.]effort: this model does not/)]);
    }
    expect(efforts()).toEqual(['low', undefined, undefined]);
  },
);

describe('an effort', () => {
  const gpt5 = refusing(({ reasoning }) => {
    const { effort } = (reasoning ?? {}) as { readonly effort?: string };
    if (effort === undefined || ['minimal', 'low', 'medium', 'high'].includes(effort)) return undefined;
    const message = `Unsupported value: '${effort}' is not supported with the 'gpt-5' model. Supported values are: 'minimal', 'low', 'medium', and 'high'.`;
    return { message, param: 'reasoning.effort', code: 'unsupported_value' };
  });

  test('that a model refuses becomes the nearest that it lists, and others arrive as they were', async () => {
    upstream.script(gpt5);
    const model = fresh();
    const first = await ask('chat', model, { reasoning_effort: 'none' });
    expect(first.status).toBe(200);
    expect(first.headers.get('x-dragoman-warnings')).toContain('reasoning_effort: this model does not accept none; minimal is sent instead.');
    for (const effort of ['high', 'xhigh', 'low', 'none']) await ask('chat', model, { reasoning_effort: effort });
    await ask('messages', model, { output_config: { effort: 'max' } });
    expect(efforts()).toEqual(['none', 'minimal', 'high', 'high', 'low', 'minimal', 'high']);
  });

  test.each(["Unsupported value: 'none'. Supported values are: 'low' and 'high'.", '`reasoning_effort` must be one of `low`, `high`'])(
    'is found where its place is not named: %s',
    async (message) => {
      upstream.script(refusing(({ reasoning }) => ((reasoning as Json | undefined)?.['effort'] === 'none' ? { message } : undefined)));
      expect((await ask('chat', fresh(), { reasoning_effort: 'none' })).status).toBe(200);
      expect(efforts()).toEqual(['none', 'low']);
    },
  );

  test('is known from the beginning where the address and the model are', async () => {
    upstream.script(gpt5);
    await ask('chat', 'gpt-5', { reasoning_effort: 'none' });
    await ask('chat', 'gpt-5', { reasoning_effort: 'xhigh' });
    expect(efforts()).toEqual(['minimal', 'high']);
  });

  test('is left out for a model that has none', async () => {
    upstream.script(
      refusing(({ reasoning }) =>
        reasoning
          ? { message: "Unsupported parameter: 'reasoning.effort' is not supported with this model.", param: 'reasoning.effort', code: 'unsupported_parameter' }
          : undefined,
      ),
    );
    const model = fresh();
    expect((await ask('chat', model, { reasoning_effort: 'low' })).status).toBe(200);
    await ask('chat', model, { reasoning_effort: 'high' });
    await ask('chat', 'gpt-4o', { reasoning_effort: 'high' });
    expect(efforts()).toEqual(['low', undefined, undefined, undefined]);
    expect(sent()).not.toHaveProperty('include');
  });

  test.each([
    ['that refuses it once', fresh],
    ['known by its name', () => 'gpt-4o'],
  ])('of codex is left out with a warning for a model that does not reason, %s', async (_, name) => {
    upstream.script(
      refusing(({ reasoning }) =>
        reasoning
          ? { message: "Unsupported parameter: 'reasoning.effort' is not supported with this model.", param: 'reasoning.effort', code: 'unsupported_parameter' }
          : undefined,
      ),
    );
    const model = name();
    const more = { reasoning: { effort: 'medium', summary: 'auto' } };
    for (let round = 0; round < 2; round++) {
      const { status, headers } = await ask('responses', model, more);
      expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringContaining('reasoning.effort: this model does not reason.')]);
    }
    expect(sent()).not.toHaveProperty('reasoning');
    expect((await ask('responses', model, more, { 'x-dragoman-strict': 'true' })).status).toBe(400);
  });

  test('of codex that is refused by its value costs nobody the reasoning', async () => {
    upstream.script(
      refusing(({ reasoning }) =>
        (reasoning as Json | undefined)?.['effort'] === 'xhigh'
          ? { message: "Reasoning effort 'xhigh' is not supported with this model.", param: 'reasoning.effort', code: 'unsupported_parameter' }
          : undefined,
      ),
    );
    const model = fresh();
    expect((await ask('responses', model, { reasoning: { effort: 'xhigh' } })).status).toBe(400);
    expect((await ask('responses', model, { reasoning: { effort: 'high' } })).headers.get('x-dragoman-warnings')).toBeNull();
    expect(efforts()).toEqual(['xhigh', 'high']);
  });

  test('of a client of the same API is between it and the provider', async () => {
    upstream.script(gpt5);
    expect((await ask('responses', fresh(), { reasoning: { effort: 'none' } })).status).toBe(400);
    expect(efforts()).toEqual(['none']);
  });
});

describe('summaries of the reasoning', () => {
  const shown = { effort: 'high', summary: 'auto' };

  test('are asked for where clients of other APIs are shown thoughts', async () => {
    upstream.script(always(ok()));
    await ask('chat', fresh(), { reasoning_effort: 'high' });
    expect(sent()['reasoning']).toEqual(shown);
    await ask('messages', fresh(), { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } });
    expect(sent()['reasoning']).toEqual(shown);
    await ask('gencompat', fresh(), { generationConfig: { thinkingConfig: { thinkingLevel: 'HIGH', includeThoughts: true } } });
    expect(sent()['reasoning']).toEqual(shown);
    await ask('messages', fresh(), { thinking: { type: 'adaptive' } });
    expect(sent()['reasoning']).toEqual({ summary: 'auto' });
  });

  test('are not asked for where nobody wants them', async () => {
    upstream.script(always(ok()));
    await ask('chat', fresh());
    expect(sent()).not.toHaveProperty('reasoning');
    await ask('chat', fresh(), { reasoning_effort: 'none' });
    expect(sent()['reasoning']).toEqual({ effort: 'none' });
    await ask('gencompat', fresh(), { generationConfig: { thinkingConfig: { thinkingLevel: 'HIGH' } } });
    expect(sent()['reasoning']).toEqual({ effort: 'high' });
    await ask('messages', fresh(), { thinking: { type: 'adaptive', display: 'omitted' }, output_config: { effort: 'high' } });
    expect(sent()['reasoning']).toEqual({ effort: 'high' });
    await ask('responses', fresh(), { reasoning: { effort: 'high' } });
    expect(sent()['reasoning']).toEqual({ effort: 'high' });
  });

  test('are not asked for again where the provider does not show them, and the effort stays', async () => {
    upstream.script(
      refusing(({ reasoning }) =>
        (reasoning as Json | undefined)?.['summary']
          ? { message: 'Your organization must be verified to generate reasoning summaries.', param: 'reasoning.summary', code: 'unsupported_value' }
          : undefined,
      ),
    );
    const model = fresh();
    for (const effort of ['high', 'low']) {
      const { status, headers } = await ask('chat', model, { reasoning_effort: effort });
      expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, null]);
      expect(sent()['reasoning']).toEqual({ effort });
    }
    expect(upstream.requests).toHaveLength(3);
    expect((await ask('responses', model, { reasoning: { effort: 'high' } })).status).toBe(200);
  });
});

test('cache breakpoints are left out where a server does not know them, with a warning', async () => {
  upstream.script(
    refusing(({ input }) =>
      JSON.stringify(input).includes('cache_control')
        ? { message: "Unknown parameter: 'input[0].content[0].cache_control'.", param: 'input[0].content[0].cache_control', code: 'unknown_parameter' }
        : undefined,
    ),
  );
  const breakpoint = { cache_control: { type: 'ephemeral' } };
  const input = [{ role: 'user', content: [{ type: 'input_text', text: 'hi', ...breakpoint }] }];
  for (const model of [fresh(), 'gpt-5']) {
    for (let round = 0; round < 2; round++) {
      const { status, headers } = await ask('responses', model, { input });
      expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringContaining('cache_control: ')]);
      expect(sent()['input']).toEqual([{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] }]);
    }
  }
  expect(upstream.requests).toHaveLength(5);
  expect(JSON.stringify(sent(0))).toContain('"cache_control":{"type":"ephemeral"}');
});

test('a cache breakpoint that is refused for its value costs nobody theirs', async () => {
  const place = 'input[0].content[4].cache_control';
  const message = `Invalid value for '${place}': at most 4 blocks may be marked.`;
  upstream.script(refusing(({ input }) => ((JSON.stringify(input).match(/cache_control/g) ?? []).length > 4 ? { message, param: place } : undefined)));
  const cached = (count: number) => [
    { role: 'user', content: Array.from({ length: count }, () => ({ type: 'input_text', text: 'hi', cache_control: { type: 'ephemeral' } })) },
  ];
  const model = fresh();
  expect((await ask('responses', model, { input: cached(5) })).status).toBe(400);
  const { status, headers } = await ask('responses', model, { input: cached(1) });
  expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, null]);
  expect(JSON.stringify(sent())).toContain('"cache_control":{"type":"ephemeral"}');
  expect(upstream.requests).toHaveLength(2);
});

describe('sampling', () => {
  const reasoning = refusing((body) => {
    const { effort } = (body['reasoning'] ?? {}) as { readonly effort?: string };
    const isThinking = effort !== 'none' && !(effort === undefined && body['model'] === 'gpt-5.1');
    const field = !isThinking ? undefined : ['temperature', 'top_p'].find((name) => body[name] !== undefined);
    return field === undefined ? undefined : { message: `Unsupported parameter: '${field}' is not supported with this model.`, param: field };
  });

  test.each(['chat', 'messages', 'gencompat'] as const)('of %s clients is left out with a warning where a model refuses it', async (face) => {
    upstream.script(reasoning);
    const values = { temperature: 0.2, top_p: 0.9 };
    const more = face === 'gencompat' ? { generationConfig: { temperature: 0.2, topP: 0.9 } } : values;
    for (const model of [fresh(), 'gpt-5']) {
      const { status, headers } = await ask(face, model, more);
      expect(status).toBe(200);
      expect(headers.get('x-dragoman-warnings')).toMatch(face === 'gencompat' ? /\.temperature: .*\.topP: / : /temperature: .*top_p: /);
      expect(sent()).not.toHaveProperty('temperature');
      expect(sent()).not.toHaveProperty('top_p');
    }
    expect(upstream.requests).toHaveLength(4);
  });

  test('is sent where the model does not think', async () => {
    upstream.script(reasoning);
    const model = fresh();
    await ask('chat', model, { temperature: 0.2, reasoning_effort: 'high' });
    await ask('chat', model, { temperature: 0.2, reasoning_effort: 'none' });
    expect(sent()).toMatchObject({ temperature: 0.2 });
    await ask('chat', 'gpt-5.1', { temperature: 0.2 });
    expect(sent()).toMatchObject({ temperature: 0.2 });
    expect(upstream.requests).toHaveLength(4);
  });

  test('of a client of the same API is between it and the provider', async () => {
    upstream.script(reasoning);
    expect((await ask('responses', 'gpt-5', { temperature: 0.2 })).status).toBe(400);
  });
});

test('a limit below 16 tokens is raised', async () => {
  upstream.script(
    refusing(({ max_output_tokens: most }) =>
      typeof most === 'number' && most < 16
        ? { message: "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 1 instead.", param: 'max_output_tokens' }
        : undefined,
    ),
  );
  const { status, headers } = await ask('messages', fresh(), { max_tokens: 1 });
  expect({ status, warnings: headers.get('x-dragoman-warnings') }).toEqual({
    status: 200,
    warnings: expect.stringContaining('max_tokens: raised to 16') as string,
  });
  expect((await ask('responses', fresh(), { max_output_tokens: 1 })).status).toBe(200);
  expect(upstream.requests.map(({ json }) => (json as Json)['max_output_tokens'])).toEqual([16, 1, 16]);
});

test('a PDF without a name has one', async () => {
  upstream.script(always(ok()));
  const source = { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' };
  await ask('messages', fresh(), { messages: [{ role: 'user', content: [{ type: 'document', source }] }] });
  const file = { type: 'input_file', filename: 'document.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' };
  expect(sent()['input']).toMatchObject([{ content: [file] }]);
  await ask('gencompat', fresh(), { contents: [{ role: 'user', parts: [{ inlineData: { mimeType: 'application/pdf', data: 'JVBERi0=' } }] }] });
  expect(sent()['input']).toMatchObject([{ content: [file] }]);
});

test('the word JSON is in a conversation that is to be answered in JSON', async () => {
  upstream.script(always(ok({ text: '{}' })));
  await ask('gencompat', fresh(), { generationConfig: { responseMimeType: 'application/json' } });
  expect(JSON.stringify(sent()['input'])).toContain('JSON');
  expect(sent()['text']).toEqual({ format: { type: 'json_object' } });
  await ask('chat', fresh(), { response_format: { type: 'json_object' }, messages: [{ role: 'user', content: 'Say it in json.' }] });
  expect(sent()['input']).toHaveLength(1);
});

test('metadata and cache retention of chat clients arrive', async () => {
  upstream.script(ok());
  const { headers } = await ask('chat', fresh(), { metadata: { a: 'b' }, prompt_cache_retention: '24h', store: false });
  expect(sent()).toMatchObject({ metadata: { a: 'b' }, prompt_cache_retention: '24h', store: false });
  expect(headers.get('x-dragoman-warnings')).toBeNull();
});

test('metadata of clients of the same API arrives, and the response has it', async () => {
  upstream.script(ok());
  const { headers, raw } = await ask('responses', fresh(), { metadata: { a: 'b' } });
  expect(sent()).toMatchObject({ metadata: { a: 'b' }, store: false });
  expect(headers.get('x-dragoman-warnings')).toBeNull();
  expect(JSON.parse(raw)).toMatchObject({ metadata: { a: 'b' } });
});

test('metadata that is no text arrives as its JSON, which is all that the API takes, and the response has it as it came', async () => {
  upstream.script(ok());
  const metadata = { order: 17, tags: ['a', null], note: 'x' };
  const { raw } = await ask('responses', fresh(), { metadata });
  expect(sent()).toMatchObject({ metadata: { order: '17', tags: '["a",null]', note: 'x' } });
  expect(JSON.parse(raw)).toMatchObject({ metadata });
});

test('a field that a server does not know is left out of the next requests too', async () => {
  upstream.script(
    refusing(({ metadata }) => (metadata ? { message: "Unknown parameter: 'metadata'.", param: 'metadata', code: 'unknown_parameter' } : undefined)),
  );
  const model = fresh();
  for (let round = 0; round < 2; round++) expect((await ask('chat', model, { metadata: { a: 'b' } })).status).toBe(200);
  expect(upstream.requests).toHaveLength(3);
  expect((await ask('chat', model, { metadata: {} })).headers.get('x-dragoman-warnings'), 'nothing is lost of what is empty').toBeNull();
});

test('a refusal that teaches nothing is given to the client', async () => {
  upstream.script(always(badRequest()));
  expect((await ask('chat', fresh())).status).toBe(400);
  expect(upstream.requests).toHaveLength(1);
});

test('a model goes on thinking for a client of the same API that returns its reasoning without the encrypted content, which it did not ask for', async () => {
  const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'sealed' };
  const call = { type: 'function_call', id: 'fc_1', call_id: 'call_owl', name: 'look', arguments: '{}', status: 'completed' };
  const response = { id: 'resp_1', object: 'response', created_at: 1, model: 'm', status: 'completed', output: [reasoning, call] };
  const whole: Behaviour = {
    name: 'a call after a thought',
    answer: () => ({
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: [JSON.stringify({ ...response, usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } })],
      framing: 'chunked',
      end: 'finish',
    }),
  };
  upstream.script(whole, always(ok()));
  const model = fresh();
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
  const { raw } = await ask('responses', model, { tools });
  expect(raw).not.toContain('sealed');
  const { output } = JSON.parse(raw) as { readonly output: readonly Json[] };
  const input = [{ role: 'user', content: 'hi' }, ...output, { type: 'function_call_output', call_id: 'call_owl', output: 'an owl' }];
  expect((await ask('responses', model, { tools, input })).status).toBe(200);
  expect(sent()['input']).toMatchObject([{ role: 'user' }, { type: 'reasoning', encrypted_content: 'sealed' }, { type: 'function_call' }, {}]);
});

test('members of a tool of free text arrive, and are named where no provider knows them', async () => {
  upstream.script(always(ok()));
  const tool = { type: 'custom', name: 'exec', description: 'Runs.', defer_loading: true, allowed_callers: ['programmatic'] };
  expect((await ask('responses', 'gpt-5', { tools: [tool] })).status).toBe(200);
  expect(sent()['tools']).toEqual([tool]);
  const { headers } = await ask('responses', 'on-chat', { tools: [tool] });
  expect(headers.get('x-dragoman-warnings')).toMatch(/defer_loading.*allowed_callers|allowed_callers.*defer_loading/);
});
