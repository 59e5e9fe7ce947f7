/* Questions in the words of the native interface: fields, shapes, forms and streams. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { proves } from '../../support/proves.ts';
import { cut, startUpstream } from '../../support/fakes/upstream/index.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { person, visitorsOf, type Person, type Visited } from './visitors.ts';

let server: TestServer;
let all: Visited;
let ada: Person;
beforeAll(async () => {
  server = await startTestServer();
  all = visitorsOf(server);
  ada = await person(all);
});
afterAll(() => server.close());

const uuid = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/) as string;
const timestamp = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/) as string;

const completion = (message: string) => ({
  response: 'OK',
  message,
  uuid,
  type: 'completion',
  references: '',
  embedding_down: false,
  vectors_down: false,
  added_obj: null,
  tool_calls: null,
  tool_calls_unified: [],
  tool_responses: [],
  usage: null,
  provenance: { model: 'built-in', datasets: 'none', persona: { id: 1, version: null }, agents: [], timestamp },
  citations: [],
  sources: [],
  error: null,
  status: 200,
});

const heron = 'Say exactly: heron';

interface Named {
  readonly model: string;
}

describe('a question', () => {
  test(
    proves(['server.query', 'server.query-message', 'service.server-root', 'auth.native-header'], 'is answered as one object, by a key or by a token'),
    async () => {
      const answer = await ada.ask('POST', '/server/query', { message: heron });
      expect([answer.status, answer.body]).toEqual([200, completion('heron')]);
      expect(answer.headers.get('x-ratelimit-limit-requests')).toBeTruthy();
      expect((await all.nobody('POST', '/server/query', { message: heron })).status).toBe(401);
      expect((await ada.ask('GET', '/server/query')).status).toBe(405);
    },
  );

  test('is the last one of a conversation, of which blank turns of the model are left out', async () => {
    const message = [
      { user: 'me', message: 'My name is Ada.' },
      { user: 'gpt', message: '\n\n' },
      { user: 'system', message: 'Be brief.' },
      { user: 'me', message: heron, id: 7 },
    ];
    expect((await ada.ask('POST', '/server/query', { message })).body['message']).toBe('heron');
  });

  test('that names no model of its own, as `auto` and `openai_gpt`, has the usual one, or the chat model to which the settings give that name', async () => {
    const upstream = await startUpstream();
    const own = await startTestServer({
      upstream: upstream.url,
      yaml: `  mine: { targets: [{ provider: fake, model: mine }], aliases: [openai_gpt] }
  auto: { kind: embedding, targets: [{ provider: fake, model: vectors }] }
  vectors: { kind: embedding, targets: [{ provider: fake, model: vectors }], aliases: [default] }
`,
    });
    try {
      const { admin } = visitorsOf(own);
      const servedFor = async (path: string, model: string) => ((await admin('POST', path, { message: heron, model })).body['provenance'] as Named).model;
      const served = (model: string) => Promise.all(['/server/query', '/server/follow-up-questions'].map((path) => servedFor(path, model)));
      expect([await served('openai_gpt'), await served('auto'), await served('default')]).toEqual([
        ['mine', 'mine'],
        ['gpt-4o-mini', 'gpt-4o-mini'],
        ['gpt-4o-mini', 'gpt-4o-mini'],
      ]);
    } finally {
      await own.close();
      await upstream.close();
    }
  });

  test('has figures of its usage where they are wanted, under every name that clients read', async () => {
    const { body } = await ada.ask('POST', '/server/query', { message: heron, usage: true, system_prompt: '' });
    const usage = body['usage'] as Record<string, number>;
    const tokens = { prompt_tokens: usage['prompt_tokens'], completion_tokens: usage['completion_tokens'], total_tokens: usage['total_tokens'] };
    expect(usage).toEqual({ ...tokens, model_tokens: tokens, plan_tokens: usage['total_tokens'], asksage_tokens: usage['total_tokens'] });
    expect(tokens.total_tokens).toBe(tokens.prompt_tokens! + tokens.completion_tokens!);
    const longer = await ada.ask('POST', '/server/query', { message: heron, usage: true });
    expect((longer.body['usage'] as Record<string, number>)['prompt_tokens']).toBeGreaterThan(tokens.prompt_tokens!);
  });

  test(
    proves('server.query-persona', 'is answered by the persona that an integer names; what is no integer is the default, and another’s is 404'),
    async () => {
      const made = await ada.ask('POST', '/server/mine/personas', { name: 'Echo', prompt: 'Always say exactly: ahoy' });
      const id = made.body['id'] as number;
      for (const persona of [id, String(id)]) {
        const { body } = await ada.ask('POST', '/server/query', { message: 'What about the weather in Nuuk tomorrow?', persona });
        expect([body['message'], body['provenance']]).toEqual(['ahoy', expect.objectContaining({ persona: { id, version: null } })]);
      }
      for (const persona of ['default', 'Echo', 1.5, '', null, undefined, true, {}, [7], 'x'.repeat(300)])
        expect((await ada.ask('POST', '/server/query', { message: heron, persona })).body['provenance']).toMatchObject({ persona: { id: 1 } });
      for (const persona of [0, -1, 9999, 1e300, '-1', '9'.repeat(40)]) {
        const answer = await ada.ask('POST', '/server/query', { message: heron, persona });
        expect([persona, answer.status, answer.body['error']]).toEqual([persona, 404, 'There is no such persona.']);
      }
      const bob = await person(all);
      expect((await bob.ask('POST', '/server/query', { message: heron, persona: id })).status).toBe(404);
    },
  );

  test('with system_prompt has that in place of the persona’s', async () => {
    const { body } = await ada.ask('POST', '/server/query', { message: 'What about the weather in Nuuk?', system_prompt: 'Always say exactly: ahoy' });
    expect(body['message']).toBe('ahoy');
  });

  test(proves('server.query-model', 'is answered by the model that it names; an unknown one is 400, and some names mean the default'), async () => {
    for (const model of ['built-in', 'auto', 'openai_gpt', '', null])
      expect((await ada.ask('POST', '/server/query', { message: heron, model })).body['message']).toBe('heron');
    for (const model of ['nobody', 'built-in-embedding']) {
      const answer = await ada.ask('POST', '/server/query', { message: heron, model });
      expect([answer.status, answer.body['error']]).toEqual([400, expect.stringMatching(/^The model `/)]);
    }
    const narrow = await person(all, {}, { models: ['other'] });
    expect((await narrow.ask('POST', '/server/query', { message: heron, model: 'built-in' })).status).toBe(400);
  });

  test('may have tools called, and the calls are given in both forms', async () => {
    const tool = (name: string) => ({
      type: 'function',
      function: { name, description: 'x', parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } },
    });
    const tools = [tool('get_weather'), tool('get_time')];
    const ask = (more: object) => ada.ask('POST', '/server/query', { message: 'What is it like? city: Nuuk', tools, ...more });
    const { body } = await ask({ tool_choice: { type: 'function', function: { name: 'get_time' } } });
    expect(body['tool_calls']).toEqual([{ id: expect.any(String) as string, type: 'function', function: { name: 'get_time', arguments: '{"city":"Nuuk"}' } }]);
    const [{ id }] = body['tool_calls'] as [{ id: string }];
    expect(body['tool_calls_unified']).toEqual([{ id, name: 'get_time', arguments: { city: 'Nuuk' } }]);
    expect((await ask({ tool_choice: 'required' })).body['tool_calls']).toHaveLength(1);
    expect((await ask({ tool_choice: 'none' })).body['tool_calls']).toBeNull();
  });

  test('over the quota is 429 with the words of the limit', async () => {
    await all.admin('PUT', '/server/admin/plans/tiny', { monthlyTokens: 1 });
    const poor = await person(all, { plan: 'tiny' });
    const answer = await poor.ask('POST', '/server/query', { message: heron });
    expect([answer.status, answer.body['status'], answer.headers.get('x-should-retry')]).toEqual([429, 429, 'false']);
    expect(answer.headers.get('retry-after')).toBeTruthy();
  });
});

test.each([
  [{}, 'message is required'],
  [{ message: '' }, 'message must'],
  [{ message: '  ' }, 'message must'],
  [{ message: 7 }, 'message must'],
  [{ message: [] }, 'message must'],
  [{ message: [{ user: 'gpt', message: 'x' }] }, 'message must'],
  [{ message: [{ user: 'me' }] }, 'message\\[0\\].message is required'],
  [{ message: [{ user: 'tool', message: 'x' }] }, 'message\\[0\\].user must'],
  [{ message: 'x', temperature: 3 }, 'temperature must be between 0 and 2'],
  [{ message: 'x', temperature: -0.1 }, 'temperature must'],
  [{ message: 'x', temperature: 'warm' }, 'temperature must'],
  [{ message: 'x', limit_references: -1 }, 'limit_references must'],
  [{ message: 'x', limit_references: 1.5 }, 'limit_references must'],
  [{ message: 'x', live: 7 }, 'live must be between 0 and 2'],
  [{ message: 'x', live: -1 }, 'live must'],
  [{ message: 'x', model: 7 }, 'model must'],
  [{ message: 'x', dataset: 7 }, 'dataset must'],
  [{ message: 'x', dataset: [7] }, 'dataset\\[0\\] must'],
  [{ message: 'x', dataset: Array.from({ length: 1000 }, (_, at) => `d${at}`) }, 'dataset must'],
  [{ message: 'x', streaming: 'perhaps' }, 'streaming must'],
  [{ message: 'x', usage: 3 }, 'usage must'],
  [{ message: 'x', timezone: 'Mars/Olympus' }, 'timezone must'],
  [{ message: 'x', reasoning_effort: 'extreme' }, 'reasoning_effort must'],
  [{ message: 'x', mode: 'dance' }, 'mode must'],
  [{ message: 'x', tools: [{ type: 'web' }] }, 'tools\\[0\\]'],
  [{ message: 'x', tools: [{ type: 'function', function: {} }] }, 'tools\\[0\\].function.name is required'],
  [{ message: 'x', tool_choice: 'sometimes' }, 'tool_choice must'],
  [{ message: 'x', tool_choice: 'required' }, 'tool_choice is only'],
  [{ message: 'x', tool_choice: { type: 'function', function: { name: 'gone' } } }, 'tool_choice names'],
])('%j is refused with 400 naming the field', async (body, says) => {
  for (const path of ['/server/query', '/server/query_stream']) {
    const answer = await ada.ask('POST', path, body);
    expect([answer.status, answer.body['error']]).toEqual([400, expect.stringMatching(new RegExp(`^${says}`))]);
    expect(answer.body).toMatchObject({ status: 400, response: answer.body['error'], message: answer.body['error'] });
  }
});

test(
  proves(
    ['server.query-dataset', 'server.query-limit-references'],
    'datasets are a list, names with commas, all or none; one that is not there is 404, also where nothing is looked up',
  ),
  async () => {
    const ask = async (more: object) => {
      const { status, body } = await ada.ask('POST', '/server/query', { message: heron, ...more });
      return status === 200 ? (body['provenance'] as { datasets: string }).datasets : [status, body['error']];
    };
    for (const dataset of [undefined, null, '', 'none', 'None', 'null', [], ['none'], ['None']]) expect(await ask({ dataset })).toBe('none');
    for (const dataset of ['all', 'All', ['all']]) expect(await ask({ dataset })).toBe('all');
    for (const dataset of ['a,b', ['a', 'b'], 'a, b']) {
      expect(await ask({ dataset })).toEqual([404, 'There is no dataset a.']);
      expect(await ask({ dataset, limit_references: 0 })).toEqual([404, 'There is no dataset a.']);
    }
    const { dataset } = (await ada.ask('POST', '/user/add-dataset', { dataset: 'herons' })).body;
    expect([await ask({ dataset }), await ask({ dataset, limit_references: 0 })]).toEqual([dataset, 'none']);
    const { dataset: withCommas } = (await ada.ask('POST', '/user/add-dataset', { dataset: 'herons, storks,cranes' })).body;
    expect(await ask({ dataset: withCommas })).toBe(withCommas);
    expect(await ask({ dataset: `${String(withCommas)} , ${String(dataset)}` })).toBe(`${String(withCommas)},${String(dataset)}`);
    expect(await ask({ dataset: `${String(dataset)},user_custom_1_gone` })).toEqual([404, 'There is no dataset user_custom_1_gone.']);
  },
);

test(proves('server.query-temperature', 'temperature goes to the model, and so do the choices in headers'), async () => {
  const warm = await ada.ask('POST', '/server/query', { message: heron, temperature: 1.5 });
  expect(warm.headers.get('x-dragoman-warnings')).toMatch(/temperature/);
  expect((await ada.ask('POST', '/server/query', { message: heron })).headers.get('x-dragoman-warnings')).toBeNull();
  const strict = await ada.ask('POST', '/server/query', { message: heron, temperature: 1.5 }, { headers: { 'x-dragoman-strict': 'true' } });
  expect([strict.status, strict.body['error']]).toEqual([400, expect.stringMatching(/temperature/)]);
  const neither = await ada.ask('POST', '/server/query', { message: heron }, { headers: { 'x-dragoman-strict': 'yes' } });
  expect([neither.status, neither.body['error']]).toEqual([400, 'x-dragoman-strict must be true or false.']);
  const chosen = await ada.ask('POST', '/server/query', { message: heron, model: 'x' }, { headers: { 'x-dragoman-targets': 'built-in' } });
  expect(chosen.body['message']).toBe('heron');
});

test.each([
  ['query', { message: heron, skip_search: true }, 'skip_search'],
  ['query_stream', { message: heron, Temperature: 1 }, 'Temperature'],
  ['query', new URLSearchParams({ message: heron, video_options: '{}' }), 'video_options'],
  ['follow-up-questions', { message: heron, persona: 1 }, 'persona'],
  ['query-plugin', { message: heron, plugin_name: 'rewrite', conversation_type: 'x' }, 'conversation_type'],
  ['execute-plugin', { plugin_name: 'rewrite', plugin_values: { text: heron }, message: 'x' }, 'message'],
  ['execute-agent', { agent_id: 1, message: heron, temperature: 1 }, 'temperature'],
  ['get-text-to-speech', { text: 'a', speed: 2 }, 'speed'],
  ['train', { content: 'a', dataset: 'x' }, 'dataset'],
])('/%s refuses a strict client what it would ignore of %j', async (path, body, field) => {
  const isForm = body instanceof URLSearchParams;
  const headers = { 'x-dragoman-strict': 'true', ...(isForm ? { 'content-type': 'application/x-www-form-urlencoded' } : {}) };
  const { status, body: answer } = await ada.ask('POST', `/server/${path}`, isForm ? String(body) : body, { headers });
  expect([status, answer['error']]).toEqual([400, `${field} is ignored here.`]);
});

test('a strict client may send what is heeded or null, and another client anything', async () => {
  const heeded = {
    message: heron,
    model: 'built-in',
    app_name: 'x',
    tools: null,
    skip_search: null,
    other: null,
    persona: 'default',
    dataset: 'none',
    limit_references: 0,
    live: 0,
  };
  expect((await ada.ask('POST', '/server/query', heeded, { headers: { 'x-dragoman-strict': 'true' } })).status).toBe(200);
  expect((await ada.ask('POST', '/server/query', { message: heron, skip_search: true, other: 1 })).status).toBe(200);
});

test.each([
  [{ live: 1 }, 'live'],
  [{ live: 2, streaming: true }, 'live'],
  [{ enabled_mcp_tools: ['9_none'] }, 'enabled_mcp_tools'],
  [{ enabled_mcp_tools: ['none'], mode: 'deep_agent' }, 'enabled_mcp_tools'],
  [{ live: 1, mode: 'deep_agent' }, 'live'],
  [{ live: 1, limit_references: 0 }, 'live'],
  [{ dataset: 'all', limit_references: 0 }, 'dataset'],
  [{ live: 2, limit_references: 0, mode: 'deep_agent' }, 'live'],
  [{ deep_agent_id: 5 }, 'deep_agent_id'],
  [{ prior_deep_agent_ids: [5] }, 'prior_deep_agent_ids'],
  [{ persona: 'Legal' }, 'persona'],
  [{ persona: 'Legal', mode: 'deep_agent' }, 'persona'],
  [{ usage: true, mode: 'deep_agent' }, 'usage'],
  [{ tool_choice: 'required', mode: 'deep_agent' }, 'tool_choice'],
])('a strict client is refused what cannot be done here: %j', async (fields, field) => {
  const asked = { message: heron, model: 'built-in', ...fields };
  const { status, body } = await ada.ask('POST', '/server/query', asked, { headers: { 'x-dragoman-strict': 'true' } });
  expect([status, body['error']]).toEqual([400, expect.stringMatching(`^Not every field of the request can be heeded: ${field}: `)]);
  const answer = await ada.ask('POST', '/server/query', asked);
  expect([answer.status, answer.headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringMatching(new RegExp(`^${field}: `))]);
});

test(proves('server.query-live', 'without a search engine a live question is answered, and a warning says so'), async () => {
  for (const live of [1, 2]) {
    const answer = await ada.ask('POST', '/server/query', { message: heron, live });
    expect([answer.body['message'], answer.headers.get('x-dragoman-warnings')]).toEqual(['heron', expect.stringMatching(/^live: no search engine/)]);
  }
  expect((await ada.ask('POST', '/server/query', { message: heron, live: 1, limit_references: 0 })).headers.get('x-dragoman-warnings')).not.toContain(
    'search engine',
  );
});

describe('as the official client sends it', () => {
  const post = async (body: URLSearchParams | FormData, path = '/server/query') => {
    const answer = await fetch(server.url + path, { method: 'POST', headers: { 'x-access-tokens': ada.key }, body });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };
  const fields: readonly (readonly [string, string])[] = [
    ['message', heron],
    ['persona', 'default'],
    ['dataset', 'all'],
    ['temperature', '0.0'],
    ['model', 'openai_gpt'],
    ['live', '0'],
    ['streaming', 'False'],
    ['usage', 'True'],
  ];

  test('a urlencoded form, a multipart form and JSON of one question have one answer', async () => {
    const multipart = new FormData();
    for (const [name, value] of fields) multipart.append(name, value);
    const json = { message: heron, persona: 'default', dataset: 'all', temperature: 0, model: 'openai_gpt', live: 0, streaming: false, usage: true };
    const expected = (await ada.ask('POST', '/server/query', json)).body;
    expect(expected).toMatchObject({ message: 'heron', usage: { plan_tokens: expect.any(Number) as number }, provenance: { datasets: 'all' } });
    for (const form of [new URLSearchParams(fields.map(([name, value]) => [name, value])), multipart])
      expect((await post(form)).body).toEqual({ ...expected, uuid, provenance: { ...(expected['provenance'] as object), timestamp } });
  });

  test('a list, tools and a choice are JSON texts, and a dataset comes more than once', async () => {
    const tools = [
      { type: 'function', function: { name: 'get_time', parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } } },
    ];
    const answer = await post(
      new URLSearchParams({
        message: JSON.stringify([{ user: 'me', message: 'city: Nuuk' }]),
        tools: JSON.stringify(tools),
        tool_choice: '{"type":"function","function":{"name":"get_time"}}',
      }),
    );
    expect(answer.body['tool_calls']).toMatchObject([{ function: { name: 'get_time', arguments: '{"city":"Nuuk"}' } }]);
    const time = { message: 'city: Nuuk', tools: JSON.stringify(tools), tool_choice: '"required"', limit_references: 'null' };
    const multipart = new FormData();
    for (const [name, value] of Object.entries(time)) multipart.append(name, value);
    const calls = [{ function: { name: 'get_time', arguments: '{"city":"Nuuk"}' } }];
    for (const { status, body } of [await post(new URLSearchParams(time)), await post(multipart), await ada.ask('POST', '/server/query', time)])
      expect([status, body]).toMatchObject([200, { tool_calls: calls }]);
    const nulls = { message: heron, tools: 'null', tool_choice: 'null', enabled_mcp_tools: 'null' };
    expect((await ada.ask('POST', '/server/query', nulls)).body).toMatchObject({ status: 200, message: 'heron' });
    const unknown = await ada.ask('POST', '/server/query', { message: heron, tool_choice: '"some"' });
    expect([unknown.status, unknown.body['error']]).toEqual([400, expect.stringMatching(/^tool_choice /)]);
    const two = new URLSearchParams([
      ...fields.filter(([name]) => name !== 'dataset').map(([name, value]) => [name, value]),
      ['dataset', 'none'],
      ['dataset', 'b'],
      ['limit_references', '0'],
    ]);
    expect((await post(two)).body['error']).toBe('There is no dataset b.');
    const plain = await post(new URLSearchParams({ message: 'Say exactly: [heron' }));
    expect(plain.body['message']).toBe('[heron');
  });

  test('a field of a form that is wrong is named', async () => {
    expect((await post(new URLSearchParams({ message: 'x', temperature: '3' }))).body['error']).toMatch(/^temperature must be between/);
    expect((await post(new URLSearchParams({ message: 'x', live: '7' }))).body['error']).toMatch(/^live must/);
    expect((await post(new URLSearchParams({ message: 'x', limit_references: '-1' }))).body['error']).toMatch(/^limit_references must/);
  });

  test('query_with_file wants a file that is not empty', async () => {
    const form = new FormData();
    form.append('message', heron);
    expect((await post(form, '/server/query_with_file')).body).toMatchObject({ status: 400, error: expect.stringMatching(/^file is required/) as string });
    form.append('file', new File([], 'empty.txt'));
    expect((await post(form, '/server/query_with_file')).body).toMatchObject({ status: 422, error: 'file empty.txt is empty.' });
  });

  test(proves('server.query-with-file', 'a question is answered from its files, at query_with_file and at query'), { timeout: 120_000 }, async () => {
    for (const path of ['/server/query_with_file', '/server/query']) {
      const form = new FormData();
      form.append('message', 'Which bird nests on the old lighthouse?');
      form.append('file', new File(['The harbour is deep.\n\nThe cormorant nests on the old lighthouse.\n'], 'birds.txt'));
      form.append('file', new File(['# Boats\n\nThe ferry leaves at nine.\n'], 'boats.md'));
      const { status, body } = await post(form, path);
      expect([status, body['message']]).toEqual([200, expect.stringMatching(/cormorant nests on the old lighthouse/)]);
      expect(body['citations']).toEqual([]);
    }
    const bad = new FormData();
    bad.append('message', 'x');
    bad.append('file', new File([new Uint8Array([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])], 'a.pdf'));
    const { status, body } = await post(bad, '/server/query_with_file');
    expect([status, body['error']]).toEqual([415, expect.stringMatching(/^file a\.pdf: /)]);
  });
});

describe('a stream', () => {
  const separator = '@|@sep@|@';
  const stream = async (body: object, { path = '/server/query', headers = {} }: { readonly path?: string; readonly headers?: Record<string, string> } = {}) => {
    const answer = await fetch(server.url + path, {
      method: 'POST',
      headers: { 'x-access-tokens': ada.key, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    return { status: answer.status, type: answer.headers.get('content-type'), text: await answer.text() };
  };

  test.each([
    ['/server/query', { streaming: true }],
    ['/server/query_stream', {}],
    ['/server/query_stream', { streaming: false }],
  ])('of %s with %j is objects with delimiters between them, the last one whole', async (path, more) => {
    const { type, text } = await stream({ message: 'Say exactly: the heron stands', ...more }, { path });
    expect(type).toBe('text/plain; charset=utf-8');
    const frames = text.split(separator).map((frame) => JSON.parse(frame) as Record<string, unknown>);
    expect(frames.at(-1)).toEqual(completion('the heron stands'));
    const before = frames.slice(0, -1);
    expect(before.length).toBeGreaterThan(0);
    for (const frame of before) {
      expect(frame).toEqual({ ...completion(frame['message'] as string), type: 'yield', uuid: frames.at(-1)!['uuid'], provenance: null });
      expect('the heron stands'.startsWith(frame['message'] as string)).toBe(true);
    }
  });

  test.each([`a${separator}b`, '@|@sep@|@sep@|@', '@|@sep@|@sep@|@sep@|@ and @|@sep@|@@|@sep@|@'])(
    'has delimiters within the answer in another form: %s',
    async (answer) => {
      const { text } = await stream({ message: `Say exactly: ${answer}`, streaming: true });
      const read = (frame: string) => (JSON.parse(frame.replaceAll('@|@@sep@@|@', separator)) as { message: string }).message;
      const messages = text.split(separator).map(read);
      expect(messages.at(-1)).toBe(answer);
      for (const message of messages) expect(answer.startsWith(message)).toBe(true);
    },
  );

  test('is server-sent events where they are accepted: pieces, and the whole at the end', async () => {
    for (const more of [{ streaming: true }, {}]) {
      const { type, text } = await stream({ message: 'Say exactly: the heron stands', ...more }, { headers: { accept: 'text/event-stream' } });
      expect(type).toBe('text/event-stream; charset=utf-8');
      const frames = text
        .split('\n\n')
        .filter((frame) => frame !== '')
        .map((frame) => JSON.parse(frame.replace(/^data: /, '')) as Record<string, unknown>);
      expect(frames.at(-1)).toEqual(completion('the heron stands'));
      expect(frames.slice(0, -1).map(({ type: kind }) => kind)).toEqual(frames.slice(1).map(() => 'yield'));
      expect(
        frames
          .slice(0, -1)
          .map(({ delta }) => delta)
          .join(''),
      ).toBe('the heron stands');
    }
    const whole = await stream({ message: heron, streaming: false }, { headers: { accept: 'text/event-stream' } });
    expect(whole.type).toMatch(/^application\/json/);
  });

  test('that cannot begin is a refusal with its status', async () => {
    expect((await stream({ message: heron, model: 'nobody', streaming: true })).status).toBe(400);
    expect((await stream({ message: heron, persona: 999, streaming: true })).status).toBe(404);
  });
});

test(
  proves(
    ['server.follow-up-questions', 'server.follow-up-message', 'server.follow-up-model', 'server.follow-up-dataset', 'server.follow-up-dataset-none'],
    'follow-up questions are three, one a line with its number, and a list beside them',
  ),
  async () => {
    const message = [
      { user: 'me', message: 'Where do herons nest?' },
      { user: 'gpt', message: 'In trees near the water.' },
    ];
    const { status, body } = await ada.ask('POST', '/server/follow-up-questions', { message, model: 'built-in', dataset: 'none' });
    const questions = body['questions'] as string[];
    expect([status, questions.length, new Set(questions).size]).toEqual([200, 3, 3]);
    expect(body).toEqual({ ...completion(questions.map((one, at) => `${at + 1}. ${one}`).join('\n')), questions });
    expect(questions.join(' ')).toMatch(/heron/);
    expect((await ada.ask('POST', '/server/follow-up-questions', { message: 'Where do herons nest?' })).body['questions']).toHaveLength(3);
    expect((await ada.ask('POST', '/server/follow-up-questions', { message, dataset: 'gone' })).status).toBe(404);
    expect((await ada.ask('POST', '/server/follow-up-questions', { message, model: 'nobody' })).status).toBe(400);
    expect((await ada.ask('POST', '/server/follow-up-questions', {})).body['error']).toMatch(/^message is required/);
    expect((await ada.ask('POST', '/server/follow_up_questions', { message })).body['questions']).toHaveLength(3);
    const logs = async () => (await ada.ask('POST', '/user/get-user-logs', { limit: 1, before_id: null })).body['response'];
    await expect.poll(logs, { timeout: 30_000 }).toMatchObject([{ prompt: 'Where do herons nest?' }]);
  },
);

test('a plugin that is not there is 404, and a question that names none is refused', async () => {
  expect((await ada.ask('POST', '/server/query-plugin', { message: 'x' })).body['error']).toMatch(/^plugin_name is required/);
  for (const fields of [{ message: 'x', plugin_name: 'gone' }, { message: '[[gone]] x' }])
    expect((await ada.ask('POST', '/server/query-plugin', fields)).status).toBe(404);
});

test('a stream that fails ends with an object of the same members as the others, which says why', async () => {
  const upstream = await startUpstream();
  const other = await startTestServer({ upstream: upstream.url });
  try {
    for (const [headers, framesIn] of [
      [{}, (text: string) => text.split('@|@sep@|@')],
      [{ accept: 'text/event-stream' }, (text: string) => text.split('\n\n').flatMap((frame) => (frame === '' ? [] : [frame.slice(6)]))],
    ] as const) {
      upstream.script(cut({ afterEvents: 3, how: 'reset' }));
      const answer = await other.ask('/server/query', { message: 'The heron stands.', model: 'gpt-4o-mini', streaming: true }, { headers });
      const last = JSON.parse(framesIn(await answer.text()).at(-1)!) as Record<string, unknown>;
      const why = expect.stringMatching(/in the middle of its answer/) as string;
      expect(last).toEqual({
        ...completion(''),
        provenance: null,
        status: 502,
        response: why,
        message: last['response'],
        error: last['response'],
        error_ref: answer.headers.get('x-request-id'),
      });
    }
  } finally {
    await other.close();
    await upstream.close();
  }
});

test('with compat.leadingNewlines an answer begins with two line breaks, in streams too', async () => {
  const other = await startTestServer({ yaml: 'compat: { leadingNewlines: true, vendorNames: false }' });
  try {
    const ask = async (more: object) => (await other.ask('/server/query', { message: heron, usage: true, ...more })).text();
    const whole = JSON.parse(await ask({})) as { message: string; usage: object };
    expect(whole.message).toBe('\n\nheron');
    expect(whole.usage).not.toHaveProperty('asksage_tokens');
    const events = await other.ask('/server/query', { message: 'Say exactly: the heron stands' }, { headers: { accept: 'text/event-stream' } });
    const pieces = (await events.text()).split('\n\n').flatMap((frame) => (frame === '' ? [] : [JSON.parse(frame.slice(6)) as Record<string, string>]));
    expect(pieces.map(({ delta = '' }) => delta).join('')).toBe('\n\nthe heron stands');
    expect(pieces.at(-1)!['message']).toBe('\n\nthe heron stands');
    for (const frame of (await ask({ streaming: true })).split('@|@sep@|@')) expect((JSON.parse(frame) as { message: string }).message).toMatch(/^\n\nheron$/);
  } finally {
    await other.close();
  }
});
