import { describe, expect, test } from 'vitest';
import { askFace, everyWay, type Face } from '../support/all-faces.ts';
import { whole } from '../support/fakes/upstream/answer.ts';
import { always, errorEvent, on, replay, type Behaviour } from '../support/fakes/upstream/index.ts';
import { loggedAs } from '../support/members.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** What providers refuse, in their own words, through every interface: who is asked next, and what the client reads. */

const wires = ['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini'] as const;
type Wire = (typeof wires)[number];
const addressOf: Readonly<Record<Wire, (url: string) => string>> = {
  'openai-chat': (url) => `${url}/v1`,
  'openai-responses': (url) => `${url}/v1`,
  'anthropic-messages': (url) => url,
  gemini: (url) => `${url}/v1beta`,
};

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
${wires.map((wire) => `  ${wire}: { dialect: ${wire}, baseUrl: "${addressOf[wire](url)}", apiKeys: [one, two] }`).join('\n')}
  other: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [other] }
  cloud: { dialect: gemini, kind: vertex, project: p, baseUrl: "${url}/{region}/v1", credentials: { accessToken: t }, regions: [us-east1, us-east4] }
models:
${wires.map((wire) => `  ${wire}: { targets: [{ provider: ${wire}, model: first }, { provider: ${wire}, model: second }, { provider: other, model: last }] }`).join('\n')}
${wires.map((wire) => `  alone-${wire}: { targets: [{ provider: ${wire}, model: first }] }`).join('\n')}
  sister-openai-chat: { targets: [{ provider: openai-chat, model: second }] }
  cloud: { targets: [{ provider: cloud, model: first }, { provider: other, model: last }] }
routing: { cooldownSeconds: 0 }
`,
}));

/** A refusal in exactly these words. */
const says = (status: number, value: object): Behaviour => ({
  name: `says ${status}`,
  answer: () => whole(status, JSON.stringify(value), { 'content-type': 'application/json' }),
});
const openai = (message: string, more: object = {}) => ({ error: { message, type: 'invalid_request_error', param: null, code: null, ...more } });
const claude = (type: string, message: string) => ({ type: 'error', error: { type, message } });
const google = (code: number, status: string, message: string) => ({ error: { code, status, message } });

const asked = () => upstream.requests.map(({ key, model }) => `${key} ${model}`);
const ask = (face: Face, stream: boolean, model: string) => askFace(server, face, { model, content: 'hi', stream });

/** Keys take turns: the first one of a request is either. */
const bothKeys = (model: string) => expect.toSatisfy((all: readonly string[]) => all.toSorted().join() === [`one ${model}`, `two ${model}`].join());

describe.each<[string, Wire, number, object]>([
  ['a bad key', 'openai-chat', 401, openai('Incorrect API key provided: sk-abc.', { code: 'invalid_api_key' })],
  [
    'an empty balance (DeepSeek)',
    'openai-chat',
    402,
    { error: { message: 'Insufficient Balance', type: 'unknown_error', param: null, code: 'invalid_request_error' } },
  ],
  ['a forbidden project', 'openai-chat', 403, openai('You are not allowed to sample from this model')],
  [
    'a spent quota (OpenAI)',
    'openai-chat',
    429,
    openai('You exceeded your current quota, please check your plan and billing details.', { type: 'insufficient_quota', code: 'insufficient_quota' }),
  ],
  [
    'a suspended account (Moonshot)',
    'openai-chat',
    429,
    { error: { message: 'Your account x is suspended, please check your plan and billing details', type: 'exceeded_current_quota_error' } },
  ],
  [
    'a limit of the account that is reached (OpenAI)',
    'openai-chat',
    400,
    openai('Billing hard limit has been reached', { code: 'billing_hard_limit_reached' }),
  ],
  ['an account without billing (OpenAI)', 'openai-responses', 400, openai('Billing is not active on this organization', { code: 'billing_not_active' })],
  ['a bad key by its code alone', 'openai-chat', 400, openai('Authentication Fails', { code: 'invalid_api_key' })],
  [
    'a spent quota (OpenAI)',
    'openai-responses',
    429,
    openai('You exceeded your current quota, please check your plan and billing details.', { type: 'insufficient_quota', code: 'insufficient_quota' }),
  ],
  ['a bad key', 'openai-responses', 401, openai('Incorrect API key provided: sk-abc.', { code: 'invalid_api_key' })],
  [
    'an empty balance (Claude)',
    'anthropic-messages',
    400,
    claude('invalid_request_error', 'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.'),
  ],
  ['a bad key', 'anthropic-messages', 401, claude('authentication_error', 'invalid x-api-key')],
  ['a forbidden key', 'anthropic-messages', 403, claude('permission_error', 'Your API key does not have permission to use the specified resource.')],
  ['a bad key', 'gemini', 400, google(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.')],
  ['a forbidden project', 'gemini', 403, google(403, 'PERMISSION_DENIED', 'Permission denied: Consumer has been suspended.')],
  ['a country without service', 'gemini', 400, google(400, 'FAILED_PRECONDITION', 'User location is not supported for the API use.')],
])('%s on %s', (_, wire, status, value) => {
  test.each(everyWay)('has the other key tried, then the other provider, and no other model of the same (%s, streamed: %s)', async (face, stream) => {
    upstream.script(always(on({ model: 'first' }, says(status, value))), always(on({ model: 'second' }, says(status, value))));
    const answer = await ask(face, stream, wire);
    expect({ status: answer.status, complete: answer.complete, attempts: answer.headers.get('x-dragoman-attempts') }).toEqual({
      status: 200,
      complete: true,
      attempts: '2',
    });
    expect(asked().slice(0, 2)).toEqual(bothKeys('first'));
    expect(asked().slice(2)).toEqual(['other last']);
  });

  test.each(everyWay)('is 502 where no other provider is left, and nothing of its message is told (%s, streamed: %s)', async (face, stream) => {
    upstream.script(always(says(status, value)));
    const answer = await ask(face, stream, `alone-${wire}`);
    expect(answer.status).toBe(502);
    expect(answer.raw).not.toMatch(/balance|billing (?:hard|is)|your current quota|API key|Authentication Fails|location|permission(?!_)|sk-/i);
    expect(asked()).toEqual(bothKeys('first'));
  });
});

test('a picture that the account has no money for is asked of the other provider, and is 502 where there is none', async () => {
  const refusal = openai('Billing hard limit has been reached', { code: 'billing_hard_limit_reached' });
  const picture = '{"created":1,"data":[{"b64_json":"aGk="}]}';
  const pictures: Behaviour = { name: 'a picture', answer: () => whole(200, picture, { 'content-type': 'application/json' }) };
  const path = /images\/generations$/;
  upstream.script(always(on({ path, key: 'other' }, pictures)), always(on({ path }, says(400, refusal))));
  const answer = await server.ask('/v1/images/generations', { model: 'openai-chat', prompt: 'a cat' });
  expect([answer.status, await answer.text()]).toEqual([200, picture]);
  expect(new Set(upstream.requests.map(({ key }) => key))).toEqual(new Set(['one', 'two', 'other']));
  expect((await server.ask('/v1/images/generations', { model: 'alone-openai-chat', prompt: 'a cat' })).status).toBe(502);
});

describe.each<[Wire, number, Parameters<typeof errorEvent>[0]]>([
  ['openai-chat', 1, { status: 429, type: 'insufficient_quota', code: 'insufficient_quota', message: 'You exceeded your current quota.' }],
  ['openai-chat', 1, { status: 400, type: 'invalid_request_error', code: 'billing_hard_limit_reached', message: 'Billing hard limit has been reached' }],
  ['openai-chat', 1, { status: 400, type: 'invalid_request_error', code: 'invalid_api_key', message: 'Authentication Fails' }],
  ['openai-responses', 1, { status: 429, type: 'insufficient_quota', code: 'insufficient_quota', message: 'You exceeded your current quota.' }],
  ['anthropic-messages', 1, { status: 400, message: 'Your credit balance is too low to access the Anthropic API.' }],
  ['gemini', 0, { status: 400, message: 'API key not valid. Please pass a valid API key.' }],
])('an account of %s that is refused in an answer of status 200', (wire, afterEvents, words) => {
  const refusing = errorEvent({ afterEvents, ...words });

  test.each(everyWay)('has the other key tried before the other provider (%s, streamed: %s)', async (face, stream) => {
    upstream.script(always(on({ model: 'first', key: 'one' }, refusing)));
    for (let round = 0; round < 3; round++) {
      const answer = await ask(face, stream, wire);
      expect({ status: answer.status, complete: answer.complete, attempts: answer.headers.get('x-dragoman-attempts') }).toEqual({
        status: 200,
        complete: true,
        attempts: '1',
      });
      expect(answer.raw.match(/"type":"message_start"|"response.created"/g)?.length ?? 1).toBeLessThan(3);
    }
    expect(asked().every((one) => one.endsWith(' first'))).toBe(true);
    expect(asked().at(-1)).toBe('two first');
  });

  test.each(everyWay)('has the other provider tried where all keys are refused (%s, streamed: %s)', async (face, stream) => {
    upstream.script(always(on({ model: 'first' }, refusing)), always(on({ model: 'second' }, refusing)));
    expect(await ask(face, stream, wire)).toMatchObject({ status: 200, complete: true });
    expect(asked().slice(0, 2)).toEqual(bothKeys('first'));
    expect(asked().slice(2)).toEqual(['other last']);
  });
});

describe('an MCP server of the client that the provider cannot use', () => {
  const refused = {
    message: "Error retrieving tool list from MCP server: 'docs'. Http status code: 401 (Unauthorized)",
    type: 'external_connector_error',
    param: 'tools',
    code: 'http_error',
  };
  const tools = [{ type: 'mcp', server_label: 'docs', server_url: 'https://docs.example/mcp', require_approval: 'never' }];
  const event = (value: object): Behaviour => replay([JSON.stringify({ type: 'response.created', response: { id: 'r', model: 'm' } }), JSON.stringify(value)]);

  test.each<[string, boolean, Behaviour]>([
    ['424', false, says(424, { error: refused })],
    ['424', true, says(424, { error: refused })],
    ['an error event', true, event({ type: 'error', error: refused })],
    ['a failed response', true, event({ type: 'response.failed', response: { error: { code: refused.type, message: refused.message } } })],
  ])('is 400 after one attempt, and no other target is asked (%s, streamed: %s)', async (_, stream, behaviour) => {
    upstream.script(behaviour);
    const answer = await server.ask('/v1/responses', { model: 'openai-responses', input: 'hi', tools, stream });
    const body = await answer.text();
    expect([answer.status, JSON.parse(body)]).toMatchObject([
      400,
      { error: { type: 'invalid_request_error', param: 'tools', message: expect.stringContaining('cannot list the tools of an MCP server') as string } },
    ]);
    expect(upstream.requests).toHaveLength(1);
  });

  test.each(everyWay)('is not what any other 424 means: the next target is asked (%s, streamed: %s)', async (face, stream) => {
    upstream.script(says(424, openai('A dependency failed.', { type: 'server_error' })));
    expect((await ask(face, stream, 'openai-responses')).status).toBe(200);
    expect(asked().map((one) => one.split(' ')[1])).toEqual(['first', 'second']);
  });
});

describe('a provider with regions whose credentials are refused', () => {
  test.each(everyWay)('is left as a whole: no other of its regions is asked (%s, streamed: %s)', async (face, stream) => {
    upstream.script(on({ model: 'first' }, says(403, google(403, 'PERMISSION_DENIED', 'Permission denied.'))));
    expect((await ask(face, stream, 'cloud')).status).toBe(200);
    expect(upstream.requests.map(({ region, model }) => [region, model])).toEqual([
      ['us-east1', 'first'],
      [undefined, 'last'],
    ]);
  });
});

describe('models that a client names in order', () => {
  test.each(everyWay)('are tried past a provider that refuses our credentials (%s, streamed: %s)', async (face, stream) => {
    upstream.script(always(on({ path: '/v1/chat' }, says(401, openai('Incorrect API key provided.')))));
    const headers = { 'x-dragoman-targets': 'alone-openai-chat,sister-openai-chat,alone-gemini' };
    expect((await askFace(server, face, { model: 'alone-openai-chat', content: 'hi', stream, headers })).status).toBe(200);
    expect(asked().slice(0, 2)).toEqual(bothKeys('first'));
    expect(upstream.requests.slice(2).map(({ path }) => path)).toEqual([expect.stringContaining('/v1beta/models/first')]);
  });
});

describe('a limit per minute', () => {
  const tooLarge = (limit: number, requested: number) =>
    says(413, {
      error: {
        message: `Request too large for model \`llama-3.3-70b-versatile\` in organization \`org_01\` service tier \`on_demand\` on tokens per minute (TPM): Limit ${limit}, Requested ${requested}, please reduce your message size and try again.`,
        type: 'tokens',
        code: 'rate_limit_exceeded',
      },
    });

  test.each(everyWay)('that the request alone exceeds (Groq, 413) has another provider tried at once (%s, streamed: %s)', async (face, stream) => {
    upstream.script(always(on({ model: 'first' }, tooLarge(12_000, 14_137))));
    expect((await ask(face, stream, 'openai-chat')).status).toBe(200);
    expect(asked()).toEqual([expect.stringContaining(' first'), 'other last']);
    upstream.reset();
    upstream.script(tooLarge(12_000, 14_137));
    const alone = await ask(face, stream, 'alone-openai-chat');
    expect([alone.status, alone.headers.get('retry-after')]).toEqual([429, '1']);
    expect(upstream.requests).toHaveLength(1);
  });

  test.each(everyWay)('that others have used up (413) has the next target tried (%s, streamed: %s)', async (face, stream) => {
    upstream.script(tooLarge(12_000, 4000));
    expect((await ask(face, stream, 'openai-chat')).status).toBe(200);
    expect(asked().map((one) => one.split(' ')[1])).toEqual(['first', 'second']);
    upstream.script(tooLarge(12_000, 4000));
    expect((await ask(face, stream, 'alone-openai-chat')).status).toBe(429);
  });

  const perMinute = 'The request has too many tokens per minute for this account.';
  test.each([
    ['anthropic-messages', claude('request_too_large', perMinute)],
    ['anthropic-messages', claude('rate_limit_error', 'Too much at once.')],
    ['gemini', google(413, 'FAILED_PRECONDITION', perMinute)],
  ] as const)('that a 413 of %s speaks of has the next target tried: %j', async (wire, refusal) => {
    upstream.script(says(413, refusal));
    expect((await ask('chat', false, wire)).status).toBe(200);
    expect(asked().map((one) => one.split(' ')[1])).toEqual(['first', 'second']);
    upstream.script(says(413, refusal));
    const alone = await ask('chat', false, `alone-${wire}`);
    expect([alone.status, alone.headers.get('retry-after')]).toEqual([429, '1']);
  });

  test.each(everyWay)('whose flexible capacity is used up (Groq, 498) has the next target tried (%s, streamed: %s)', async (face, stream) => {
    const full = says(498, { error: { message: 'Flex tier capacity exceeded', type: 'capacity_exceeded' } });
    upstream.script(full);
    expect((await ask(face, stream, 'openai-chat')).status).toBe(200);
    upstream.script(full);
    expect((await ask(face, stream, 'alone-openai-chat')).status).toBe(503);
  });
});

describe('a prompt that is not allowed', () => {
  const flagged = {
    error: {
      message: 'openai/gpt-4o requires moderation on OpenRouter. Your input was flagged for "violence". No credits were charged.',
      code: 403,
      metadata: { reasons: ['violence'], flagged_input: 'hi', provider_name: 'OpenAI' },
    },
  };
  const invalid = openai('Invalid prompt: your prompt was flagged as potentially violating our usage policy.', { code: 'invalid_prompt' });
  const codeOf: Readonly<Record<Face, string>> = {
    chat: 'content_policy_violation',
    responses: 'content_policy_violation',
    messages: 'invalid_request_error',
    gencompat: 'INVALID_ARGUMENT',
  };

  describe.each<[string, Wire, Behaviour]>([
    ['403 with reasons (OpenRouter)', 'openai-chat', says(403, flagged)],
    ['403 that says flagged', 'openai-chat', says(403, openai('Your input was flagged for "violence"'))],
    ['403 that says flagged', 'anthropic-messages', says(403, claude('permission_error', 'Your input was flagged for "violence"'))],
    ['403 that says flagged', 'gemini', says(403, google(403, 'PERMISSION_DENIED', 'Your input was flagged for "violence"'))],
    ['invalid_prompt', 'openai-chat', says(400, invalid)],
    ['invalid_prompt', 'openai-responses', says(400, invalid)],
    [
      'content_filter (Azure)',
      'openai-chat',
      says(400, openai("The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", { code: 'content_filter' })),
    ],
  ])('as %s on %s', (_, wire, behaviour) => {
    test.each(everyWay)('is 400 after one attempt (%s, streamed: %s)', async (face, stream) => {
      upstream.script(behaviour);
      const answer = await ask(face, stream, wire);
      expect([answer.status, answer.error]).toEqual([400, codeOf[face]]);
      expect(upstream.requests).toHaveLength(1);
    });

    test('sets no key aside', async () => {
      for (let round = 0; round < 4; round++) {
        upstream.script(behaviour);
        await ask('chat', false, wire);
      }
      expect(asked().map((one) => one.split(' ')[0])).toEqual(
        expect.toSatisfy((keys: readonly string[]) => keys.every((key, at) => at === 0 || key !== keys[at - 1])),
      );
    });
  });

  test.each(everyWay)('as the end of a responses stream is 400 after one attempt (%s, streamed: %s)', async (face, stream) => {
    const response = {
      id: 'resp_1',
      object: 'response',
      status: 'failed',
      output: [],
      error: { code: 'invalid_prompt', message: 'Invalid prompt: your prompt was flagged as potentially violating our usage policy.' },
    };
    const event = (type: string, more: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
    upstream.script({
      name: 'response.failed',
      answer: ({ asked: { stream: streamed } }) =>
        streamed
          ? whole(200, event('response.created', { response: { ...response, status: 'in_progress', error: null } }) + event('response.failed', { response }), {
              'content-type': 'text/event-stream',
            })
          : whole(200, JSON.stringify(response), { 'content-type': 'application/json' }),
    });
    const answer = await ask(face, stream, 'openai-responses');
    expect([answer.status, answer.error]).toEqual([400, codeOf[face]]);
    expect(upstream.requests).toHaveLength(1);
  });
});

const listing = { tools: [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} }, strict: false }] };

describe('what a provider says of a request that it refuses', () => {
  const names = (temperature: string, tokens: string, effort: string, content: string, schema: string) => ({ temperature, tokens, effort, content, schema });
  const spelled: Readonly<Record<Face, ReturnType<typeof names>>> = {
    chat: names('temperature', 'max_tokens', 'reasoning_effort', 'messages[0].content', 'response_format'),
    responses: names('temperature', 'max_output_tokens', 'reasoning.effort', 'input[0].content', 'text.format'),
    messages: names('temperature', 'max_tokens', 'output_config.effort', 'messages[0].content', 'output_config.format'),
    gencompat: names(
      'generationConfig.temperature',
      'generationConfig.maxOutputTokens',
      'generationConfig.thinkingConfig',
      'contents[0].parts[0]',
      'generationConfig.responseSchema',
    ),
  };
  const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false };
  const more: Readonly<Record<Face, object>> = {
    chat: {
      temperature: 0.3,
      max_tokens: 50,
      reasoning_effort: 'high',
      response_format: { type: 'json_schema', json_schema: { name: 's', strict: true, schema } },
    },
    responses: {
      input: [{ role: 'user', content: 'hi' }],
      temperature: 0.3,
      max_output_tokens: 50,
      reasoning: { effort: 'high' },
      text: { format: { type: 'json_schema', name: 's', strict: true, schema } },
    },
    messages: { temperature: 0.3, output_config: { effort: 'high', format: { type: 'json_schema', schema } } },
    gencompat: {
      generationConfig: {
        temperature: 0.3,
        maxOutputTokens: 50,
        thinkingConfig: { thinkingLevel: 'high' },
        responseMimeType: 'application/json',
        responseSchema: schema,
      },
    },
  };
  const refused: Readonly<Record<Wire, Readonly<Record<keyof ReturnType<typeof names>, object>>>> = {
    'openai-chat': {
      temperature: openai('This value is bad.', { param: 'temperature' }),
      tokens: openai('This value is bad.', { param: 'max_completion_tokens' }),
      effort: openai('This value is bad.', { param: 'reasoning_effort' }),
      content: openai("Invalid value for 'messages[0].content'."),
      schema: openai("Invalid schema for response_format 's'.", { param: 'response_format' }),
    },
    'openai-responses': {
      temperature: openai('This value is bad.', { param: 'temperature' }),
      tokens: openai('This value is bad.', { param: 'max_output_tokens' }),
      effort: openai('This value is bad.', { param: 'reasoning.effort' }),
      content: openai('This value is bad.', { param: 'input[0].content[0]' }),
      schema: openai("Invalid schema for response_format 's'.", { param: 'text.format' }),
    },
    'anthropic-messages': {
      temperature: claude('invalid_request_error', 'temperature: This value is bad.'),
      tokens: claude('invalid_request_error', 'max_tokens: This value is bad.'),
      effort: claude('invalid_request_error', 'output_config.effort: This value is bad.'),
      content: claude('invalid_request_error', 'messages.0.content.0.text: This value is bad.'),
      schema: claude('invalid_request_error', 'output_config.format: This value is bad.'),
    },
    gemini: {
      temperature: google(400, 'INVALID_ARGUMENT', "Invalid value at 'generation_config.temperature'."),
      tokens: google(400, 'INVALID_ARGUMENT', "Invalid value at 'generation_config.max_output_tokens'."),
      effort: google(400, 'INVALID_ARGUMENT', 'Invalid thinking level: it must be one of low.'),
      content: google(400, 'INVALID_ARGUMENT', 'GenerateContentRequest.contents[0].parts[0]: this value is bad.'),
      schema: google(400, 'INVALID_ARGUMENT', "Invalid value at 'generation_config.response_mime_type'."),
    },
  };

  describe.each(wires)('on %s', (wire) => {
    test.each(everyWay)('names the field as its client spelled it (%s, streamed: %s)', async (face, stream) => {
      for (const [what, value] of Object.entries(refused[wire])) {
        upstream.reset();
        upstream.script(always(says(400, value)));
        const answer = await askFace(server, face, { model: `alone-${wire}`, content: 'hi', stream, more: more[face] });
        const name = spelled[face][what as keyof ReturnType<typeof names>];
        expect({ what, status: answer.status }).toEqual({ what, status: 400 });
        const { message, param } = messageIn(answer.raw);
        expect({ what, message }).toEqual({
          what,
          message: expect.stringMatching(new RegExp(`^The provider \\S+ did not accept ${RegExp.escape(name)}${what === 'content' ? '' : ' \\(400'}`)),
        });
        if (face === 'chat' || face === 'responses') expect(param).toContain(name);
      }
    });
  });

  test('counts the items of the input as the client does, whatever conversation it continues', async () => {
    const model = 'alone-openai-responses';
    const first = await askFace(server, 'responses', { model, content: 'hi', stream: false, more: { instructions: 'Be kind.' } });
    const { id } = JSON.parse(first.raw) as { readonly id: string };
    const input = [
      { role: 'user', content: 'a' },
      { role: 'user', content: [{ type: 'input_text', text: 'b' }] },
    ];
    for (const [place, own] of [
      ['input[3].content[0]', 'input[1].content[0]'],
      ['input[2]', 'input[0]'],
      ['input[0]', 'input'],
    ] as const) {
      upstream.reset();
      upstream.script(says(400, openai(`Invalid '${place}'.`, { param: place })));
      const more = { instructions: 'Be brief.', previous_response_id: id, input };
      const answer = await askFace(server, 'responses', { model, content: '', stream: false, more });
      expect([answer.status, messageIn(answer.raw).param]).toEqual([400, own]);
      expect((upstream.requests[0]!.json as { readonly input: readonly object[] }).input).toHaveLength(4);
    }
  });

  test('says of no field that its client sent that the gateway added it, though its value says nothing', async () => {
    const image = { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } };
    const results = [
      { role: 'user', parts: [{ text: 'hi' }] },
      { role: 'model', parts: [{ functionCall: { name: 'look', args: {} } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'look', response: { output: 'x' }, parts: [image] } }] },
    ];
    for (const [face, wire, value, own] of [
      ['chat', 'openai-chat', openai('`logit_bias` is not supported with this model'), { logit_bias: {} }],
      ['chat', 'openai-chat', openai('This value is bad.', { param: 'frequency_penalty' }), { frequency_penalty: 0 }],
      ['responses', 'openai-responses', openai("Invalid 'parallel_tool_calls'.", { param: 'parallel_tool_calls' }), { ...listing, parallel_tool_calls: true }],
      ['messages', 'anthropic-messages', claude('invalid_request_error', 'service_tier: This value is bad.'), { service_tier: 'auto' }],
      [
        'gencompat',
        'gemini',
        google(400, 'INVALID_ARGUMENT', 'Unable to submit request because `function_response.parts` is not supported for this model.'),
        { contents: results },
      ],
    ] as const) {
      upstream.reset();
      upstream.script(always(says(400, value)));
      const answer = await askFace(server, face, { model: `alone-${wire}`, content: 'hi', stream: false, more: own });
      expect([answer.status, messageIn(answer.raw).message]).toEqual([
        400,
        expect.stringMatching(/^The provider [\w-]+ did not accept [\w.]+ \(400[\w, ]*\)\. It says: /),
      ]);
    }
  });

  test.each(everyWay)('tells of a field that the gateway added that it is none of the client (%s, streamed: %s)', async (face, stream) => {
    for (const [wire, value] of [
      ['openai-chat', openai('This value is bad.', { param: 'reasoning_effort' })],
      ['openai-responses', openai("Unknown parameter: 'store'.", { param: 'store', code: 'unknown_parameter' })],
      ['anthropic-messages', claude('invalid_request_error', 'thinking: This value is bad.')],
    ] as const) {
      upstream.reset();
      upstream.script(always(says(400, value)));
      const answer = await askFace(server, face, { model: `alone-${wire}`, content: 'hi', stream });
      expect(answer.status).toBe(400);
      expect(messageIn(answer.raw)).toEqual({
        message: expect.stringMatching(/^The provider [\w-]+ did not accept \w+, which the gateway added \(400[\w, ]*\)\. It says: /),
        param: null,
      });
    }
  });

  test.each(everyWay)('is at most its first sentence, masked, also in the log (%s, streamed: %s)', async (face, stream) => {
    const message = `The value of org-abc123 for sk-verysecretkey12345 at https://eu.internal.example/x is bad ${'very '.repeat(100)}bad. And more that nobody reads.`;
    upstream.script(says(400, openai(message)));
    const answer = await ask(face, stream, 'alone-openai-chat');
    const [, said = ''] = messageIn(answer.raw).message.split(' It says: ');
    expect(said.length).toBeLessThanOrEqual(300);
    expect(said).toMatch(/^The value of \[…\] for \[…\] at \[address\] is bad very/);
    expect(answer.raw).not.toMatch(/org-abc|sk-very|internal\.example|nobody reads/);
    expect(await loggedAs(server, answer.headers.get('x-request-id')!)).toMatchObject({ tries: [{ fault: 'invalid', said }] });
  });
});

const messageIn = (raw: string): { readonly message: string; readonly param: string | null } => {
  const { error } = JSON.parse(raw.startsWith('[') ? raw.slice(1, -1) : raw) as { error: { message: string; param?: string | null } };
  return { message: error.message, param: error.param ?? null };
};
