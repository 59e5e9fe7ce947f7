import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { always, ok, startUpstream, toolCalls, type Upstream } from '../support/fakes/upstream/index.ts';
import { openSite, outsideOf, publicAddress, type Site } from '../support/fakes/web.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { proves } from '../support/proves.ts';

/** The web search of the responses interface, and of the others, through an engine of the settings. */

const responses = '/server/chatcompat/v1/responses';

let upstream: Upstream;
/** The engine lies inside, where the operator put it. */
let engine: Site;
let web: Site;
let server: TestServer;
let bare: TestServer;

const providers = () => `
providers:
  gpt: { dialect: openai-chat, baseUrl: "${upstream.url}/v1" }
  resp: { dialect: openai-responses, baseUrl: "${upstream.url}/v1" }
  claude: { dialect: anthropic-messages, baseUrl: "${upstream.url}" }
  gemini: { dialect: gemini, baseUrl: "${upstream.url}/v1beta" }
models:
  gpt-x: { targets: [{ provider: gpt }] }
  resp-x: { targets: [{ provider: resp }] }
  claude-x: { targets: [{ provider: claude }] }
  gemini-x: { targets: [{ provider: gemini }] }
  gemini-2.5-flash: { targets: [{ provider: gpt }] }
`;

beforeAll(async () => {
  upstream = await startUpstream();
  engine = await openSite('127.0.0.1');
  web = await openSite('127.0.0.2');
  const outside = outsideOf((host) => (host === 'inner.example' ? ['127.0.0.1'] : [publicAddress]), '127.0.0.2');
  server = await startTestServer({ outside, yaml: `${providers()}search: { engine: searxng, url: "http://127.0.0.1:${engine.port}" }\n` });
  bare = await startTestServer({ yaml: providers() });
});
afterAll(async () => {
  await Promise.all([server, bare].map((one) => one.close()));
  await Promise.all([upstream, engine, web].map((one) => one.close()));
});
afterEach(() => {
  upstream.reset();
  engine.reset();
  web.reset();
});

interface Result {
  readonly url: string;
  readonly title: string;
  readonly content: string;
}

const page = (path: string) => `http://news.example:${web.port}${path}`;
const results = (): readonly Result[] => [
  { url: page('/a'), title: 'The <b>moon</b> today', content: 'What the engine shows of A.' },
  { url: page('/b'), title: 'Tides', content: 'What the engine shows of B.' },
  { url: 'ftp://news.example/x', title: 'No page', content: '' },
];
const finds = (list: readonly Result[] = results()) =>
  engine.answer((_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ results: list })));
const shows = (html: string) =>
  web.answer((_: IncomingMessage, response: ServerResponse) => void response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(html));

const looksFor = (query: string) => toolCalls([{ name: 'web_search', json: JSON.stringify({ query }) }]);
const request = (more: object = {}) => ({ model: 'gpt-x', input: 'How far is the moon?', tools: [{ type: 'web_search' }], ...more });
const sent = (at = 0) => upstream.requests[at]!.json as { readonly [member: string]: unknown; readonly messages: readonly { role: string; content: string }[] };

interface Said {
  readonly id: string;
  readonly status: string;
  readonly error: { readonly message: string; readonly param: string } | null;
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number };
  readonly output: readonly {
    readonly type: string;
    readonly id: string;
    readonly status: string;
    readonly name?: string;
    readonly action?: { readonly query: string };
    readonly content?: readonly { readonly text: string; readonly annotations: readonly Annotation[] }[];
  }[];
}
interface Annotation {
  readonly type: string;
  readonly start_index: number;
  readonly end_index: number;
  readonly url: string;
  readonly title: string;
}

async function asked(body: object, { at = server, headers = {} }: { at?: TestServer; headers?: Record<string, string> } = {}) {
  const answer = await at.ask(responses, body, { headers });
  return {
    status: answer.status,
    id: answer.headers.get('x-request-id')!,
    warnings: answer.headers.get('x-dragoman-warnings'),
    said: (await answer.json()) as Said,
  };
}

describe('the gateway searches', () => {
  test(proves('responses.tool-web-search', 'the model searches, reads the pages, and cites its sources'), async () => {
    finds();
    shows('<html><head><title>x</title></head><body><script>evil()</script><h1>Moon</h1><p>384,400&nbsp;km &amp; more</p></body></html>');
    const text = 'It is 384,400 km away [1]. 🌙 Tides [2, 1] and [9] follow, see ';
    upstream.script(looksFor('distance moon'), ok({ text: `${text}${page('/b')}.` }));
    const { status, said } = await asked(request());
    expect(status).toBe(200);
    expect(new URL(engine.requests[0]!.url!, 'http://x').searchParams.get('q')).toBe('distance moon');
    expect(said.output.map(({ type }) => type)).toEqual(['web_search_call', 'message']);
    expect(said.output[0]).toMatchObject({ status: 'completed', action: { type: 'search', query: 'distance moon' } });
    const { text: shown, annotations } = said.output[1]!.content![0]!;
    const characters = Array.from(shown);
    expect(annotations.map(({ type, start_index: start, end_index: end, url, title }) => [type, characters.slice(start, end).join(''), url, title])).toEqual([
      ['url_citation', '[1]', page('/a'), 'The moon today'],
      ['url_citation', '[2, 1]', page('/b'), 'Tides'],
      ['url_citation', '[2, 1]', page('/a'), 'The moon today'],
      ['url_citation', page('/b'), page('/b'), 'Tides'],
    ]);
    expect(sent()['tools']).toMatchObject([{ type: 'function', function: { name: 'web_search' } }]);
    const told = sent(1).messages.at(-1)!;
    expect(told).toMatchObject({ role: 'tool' });
    expect(told.content).toContain(`[1] The moon today\n${page('/a')}\nMoon\n384,400 km & more`);
    expect(told.content).not.toContain('evil');
    expect(told.content).not.toContain('ftp:');
  });

  test.each([
    ['responses', responses, request()],
    [
      'messages',
      '/server/messages/v1/messages',
      { model: 'gpt-x', max_tokens: 100, tools: [{ type: 'web_search_20250305', name: 'web_search' }], messages: [{ role: 'user', content: 'How far?' }] },
    ],
  ])('what the model thought before the search goes back to it with the result: %s', async (_, path, body) => {
    finds([]);
    upstream.script(ok({ thought: 'Let me look.', text: '', tools: [{ name: 'web_search', json: '{"query":"moon"}' }] }), ok());
    expect((await server.ask(path, body)).status).toBe(200);
    expect(sent(1).messages.at(-2)).toMatchObject({ role: 'assistant', reasoning_content: 'Let me look.' });
  });

  test('a stream has the same content, with events of the search', async () => {
    finds();
    shows('<p>far</p>');
    upstream.script(looksFor('moon'), ok({ text: 'Far [1].' }));
    const text = await (await server.ask(responses, request({ stream: true }))).text();
    const types = Array.from(text.matchAll(/^event: (.*)$/gm), ([, type]) => type!);
    const without = types.filter((type, at) => type !== types[at - 1]);
    expect(without).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.web_search_call.in_progress',
      'response.web_search_call.searching',
      'response.web_search_call.completed',
      'response.output_item.done',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.annotation.added',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    const frames = text
      .split('\n\n')
      .flatMap((frame) => (frame.startsWith('event: ') ? [JSON.parse(frame.slice(frame.indexOf('data: ') + 6)) as Record<string, unknown>] : []));
    expect(frames.map((frame) => frame['sequence_number'])).toEqual(frames.map((_, at) => at));
    expect(frames.find(({ type }) => type === 'response.output_text.annotation.added')).toMatchObject({
      annotation_index: 0,
      annotation: { type: 'url_citation', start_index: 4, end_index: 7, url: page('/a') },
    });
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  test('each round is booked separately, under the same request and a step number, and the answer has the sum of all', async () => {
    finds();
    shows('<p>far</p>');
    upstream.script(looksFor('moon'), ok({ text: 'Far [1].' }));
    const { id, said } = await asked(request());
    type Row = { readonly step: number; readonly inputTokens: number; readonly outputTokens: number; readonly end: string };
    let rows: readonly Row[] = [];
    for (let tries = 0; tries < 2000 && rows.length < 2; tries++) {
      const list = (await (await server.ask('/server/admin/logs?limit=100')).json()) as { items: readonly (Row & { requestId: string })[] };
      rows = list.items.filter(({ requestId }) => requestId === id);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(rows.toSorted((a, b) => a.step - b.step).map(({ step, end }) => [step, end])).toEqual([
      [0, 'tool'],
      [2, 'completed'], // step 1 would be its repair
    ]);
    const total = (name: 'inputTokens' | 'outputTokens') => rows.reduce((sum, row) => sum + row[name], 0);
    expect(said.usage).toMatchObject({ input_tokens: total('inputTokens'), output_tokens: total('outputTokens') });
  });

  test('the next turn continues from it, whether it is stored here or sent back', async () => {
    finds();
    shows('<p>far</p>');
    upstream.script(looksFor('moon'), ok({ text: 'Far [1].' }), always(ok()));
    const { said } = await asked(request());
    const { id } = said as unknown as { id: string };
    expect((await asked({ model: 'gpt-x', previous_response_id: id, input: 'and now' })).status).toBe(200);
    const back = await asked({ model: 'gpt-x', input: [{ role: 'user', content: 'x' }, ...said.output, { role: 'user', content: 'and now' }] });
    expect([back.status, back.warnings]).toEqual([200, null]);
    for (const at of [2, 3]) expect(sent(at).messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    // Providers of the same wire do not know our searches.
    expect((await asked({ model: 'resp-x', input: [{ role: 'user', content: 'x' }, ...said.output] })).status).toBe(200);
    expect(JSON.stringify(upstream.requests[4]!.json)).not.toContain('web_search_call');
  });

  test('max_tool_calls limits the searches that the gateway makes, so that a provider need not know it', async () => {
    finds();
    shows('<p>No matter.</p>');
    upstream.script(looksFor('moon'), looksFor('tide'), ok());
    const { said, warnings } = await asked(request({ max_tool_calls: 1 }), { headers: { 'x-dragoman-strict': 'true' } });
    expect([said.output.map(({ type }) => type), warnings]).toEqual([['web_search_call', 'message'], null]);
    expect(sent(2).messages.at(-1)!.content).toBe('No more searches can be made: answer with what you have.');
  });

  test.each([true, false])('the sources of a search are in its item if the client asks for them, whole, streamed and kept (%s)', async (isWanted) => {
    finds();
    shows('<p>No matter.</p>');
    upstream.script(looksFor('moon'), ok(), looksFor('moon'), ok());
    const body = request(isWanted ? { include: ['web_search_call.action.sources'] } : {});
    const sources = isWanted ? [page('/a'), page('/b')].map((url) => ({ type: 'url', url })) : undefined;
    const { said: whole } = await asked(body);
    expect(whole.output[0]!.action).toEqual({ type: 'search', query: 'moon', queries: ['moon'], ...(sources ? { sources } : {}) });
    const frames = await (await server.ask(responses, { ...body, stream: true })).text();
    expect(frames.includes('"sources":[{"type":"url"')).toBe(isWanted);
    const again = await (await server.ask(`${responses}/${whole.id}?stream=true`, undefined)).text();
    expect(again.split('\n\n').find((frame) => frame.startsWith('event: response.completed'))).toContain(JSON.stringify(whole.output));
  });

  test.each(['auto', 'required'])('a web search that is among the allowed tools is made, and what is not allowed stays so (%s)', async (mode) => {
    finds();
    shows('<p>No matter.</p>');
    upstream.script(looksFor('moon'), ok());
    const look = { type: 'function', name: 'look', parameters: { type: 'object', properties: {} } };
    const choice = { type: 'allowed_tools', mode, tools: [{ type: 'web_search' }] };
    const { said, warnings } = await asked(request({ tools: [{ type: 'web_search' }, look], tool_choice: choice }));
    expect([said.output.map(({ type }) => type), warnings]).toEqual([['web_search_call', 'message'], null]);
    const given = [0, 1].map((at) => [
      sent(at)['tool_choice'],
      (sent(at)['tools'] as readonly { function: { name: string } }[]).map((one) => one.function.name),
    ]);
    expect(given).toEqual([
      [mode, ['web_search']],
      ['auto', ['web_search']],
    ]); // the provider's API has no allowed tools: only they are declared
  });

  test('a function of the client is called by the client, although the model searched before', async () => {
    finds();
    shows('<p>far</p>');
    const tools = [{ type: 'web_search' }, { type: 'function', name: 'web_search', parameters: {} }, { type: 'function', name: 'look', parameters: {} }];
    upstream.script(
      toolCalls([{ name: 'gateway_web_search', json: '{"query":"moon"}' }]),
      toolCalls([
        { name: 'gateway_web_search', json: '{"query":"more"}' },
        { name: 'look', json: '{}' },
      ]),
    );
    const { said } = await asked(request({ tools }));
    expect(said.output.map(({ type, name }) => name ?? type)).toEqual(['web_search_call', 'look']);
    expect(engine.requests).toHaveLength(1);
  });

  test('a forced tool choice applies to the first round, and an endless search is ended', async () => {
    finds();
    shows('<p>far</p>');
    upstream.script(always(looksFor('again')));
    const { status, said } = await asked(request({ tool_choice: { type: 'web_search' } }));
    expect([status, said.status]).toEqual([200, 'completed']);
    expect(sent()['tool_choice']).toEqual({ type: 'function', function: { name: 'web_search' } });
    expect(sent(1)['tool_choice']).toBeUndefined();
    expect(engine.requests).toHaveLength(8);
    expect(upstream.requests).toHaveLength(12);
    expect(said.output.some(({ type }) => type === 'function_call')).toBe(false);
  });

  test.each<[string, Parameters<Site['answer']>[0]]>([
    ['is unreachable', (request) => void request.socket.destroy()],
    ['rejects the request', (_, response) => void response.writeHead(403).end()],
    ['returns invalid JSON', (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('[')],
    ['redirects', (_, response) => void response.writeHead(302, { location: `${upstream.url}/v1/models` }).end()],
  ])('an engine that %s fails the search, not the answer', async (_name, how) => {
    engine.answer(how);
    upstream.script(looksFor('moon'), ok({ text: 'I cannot look [1].' }));
    const { status, said } = await asked(request());
    expect(status).toBe(200);
    expect(said.output[0]).toMatchObject({ type: 'web_search_call', status: 'failed' });
    expect(said.output[1]!.content![0]!.annotations).toEqual([]);
    expect(sent(1).messages.at(-1)!.content).toContain('did not work');
    expect(upstream.requests).toHaveLength(2);
  });

  test('search is provided to the models that the caller chose, not to the requested one', async () => {
    const choosing = (targets: string) => asked(request({ model: 'resp-x' }), { headers: { 'x-dragoman-targets': targets } });
    finds();
    shows('<p>It is far.</p>');
    upstream.script(looksFor('moon'), ok({ text: 'Far [1].' }));
    const { said } = await choosing('gpt-x');
    expect(said.output.map(({ type }) => type)).toEqual(['web_search_call', 'message']);
    expect(engine.requests).toHaveLength(1);
    await choosing('resp-x');
    expect(upstream.requests.at(-1)!.json).toMatchObject({ tools: [{ type: 'web_search' }] });
    expect(engine.requests).toHaveLength(1);
  });

  test(proves('N-03', 'pages are fetched through the guard: an engine cannot lead to internal addresses'), async () => {
    const inner = [`http://127.0.0.1:${engine.port}/secret`, `http://inner.example:${engine.port}/secret`, 'http://169.254.169.254/'];
    finds(inner.map((url) => ({ url, title: 'Inside', content: 'shown' })));
    upstream.script(looksFor('moon'), ok({ text: 'ok' }));
    expect((await asked(request())).status).toBe(200);
    expect(engine.requests.map(({ url }) => url!.split('?')[0])).toEqual(['/search']);
  });

  test('shortened texts are never cut within a character, since providers reject half of one', async () => {
    finds([{ url: page('/a'), title: `${'x'.repeat(199)}🌙`, content: `${'y'.repeat(1999)}🌙` }]);
    web.answer((_, response) => void response.writeHead(404).end());
    upstream.script(looksFor('moon'), ok({ text: 'Far.' }));
    expect((await asked(request())).status).toBe(200);
    const told = sent(1).messages.at(-1)!.content;
    expect(told).toContain('yyyy');
    expect(told.isWellFormed()).toBe(true);
  });

  test('a client that disconnects ends the search, and no further round starts', async () => {
    engine.answer(() => {}); // it never answers
    upstream.script(looksFor('moon'), always(ok()));
    const leaving = new AbortController();
    const asking = server.ask(responses, request(), { signal: leaving.signal }).catch(() => 'left');
    while (engine.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    leaving.abort();
    expect(await asking).toBe('left');
    await new Promise<void>((resolve) => engine.requests[0]!.socket.once('close', () => resolve()));
    expect(upstream.requests).toHaveLength(1);
  });
});

describe('the restrictions of a search', () => {
  const tool = { type: 'web_search', filters: { allowed_domains: ['news.example'] }, external_web_access: false, search_context_size: 'low' };

  test('hosts, the number of searches and closed pages are honoured; the others are named', async () => {
    finds([
      ...results(),
      { url: 'http://news.example.evil.example/', title: 'Evil', content: '' },
      { url: 'http://sub.news.example/', title: 'Sub', content: '' },
    ]);
    upstream.script(looksFor('moon'), ok({ text: 'Far [1].' }));
    const { status, warnings } = await asked(request({ tools: [tool] }));
    expect(status).toBe(200);
    expect(warnings).toContain('tools.web_search.search_context_size');
    expect(new URL(engine.requests[0]!.url!, 'http://x').searchParams.get('q')).toBe('moon site:news.example');
    const { content } = sent(1).messages.at(-1)!;
    expect(content).toContain('What the engine shows of A.');
    expect(content).toContain('http://sub.news.example/');
    expect(content).not.toContain('evil');
    expect(web.hits).toBe(0);
    expect((await asked(request({ tools: [tool] }), { headers: { 'x-dragoman-strict': 'true' } })).status).toBe(400);
  });

  test('a client of the Messages API may limit the searches to one, and blocked hosts are not found', async () => {
    finds();
    upstream.script(looksFor('moon'), looksFor('more'), ok());
    const tools = [{ type: 'web_search_20250305', name: 'web_search', max_uses: 1, blocked_domains: ['news.example/b'] }];
    const body = { model: 'gpt-x', max_tokens: 100, messages: [{ role: 'user', content: 'How far?' }], tools };
    expect((await server.ask('/server/messages/v1/messages', body)).status).toBe(200);
    expect(engine.requests).toHaveLength(1);
    const [first, second] = [1, 2].map((at) => sent(at).messages.at(-1)!.content);
    expect(first).not.toContain('Tides');
    expect(second).toContain('No more searches');
  });

  test('a provider of another API receives the restrictions that it supports', async () => {
    upstream.script(always(ok()));
    const claude = await asked(request({ model: 'claude-x', tools: [tool] }));
    expect((upstream.requests[0]!.json as { tools: unknown }).tools).toEqual([
      { type: 'web_search_20250305', name: 'web_search', allowed_domains: ['news.example'] },
    ]);
    for (const name of ['external_web_access', 'search_context_size']) expect(claude.warnings).toContain(`tools.web_search.${name}:`);
    const gemini = await asked(request({ model: 'gemini-x', tools: [tool] }));
    expect(gemini.warnings).toContain('tools.web_search.allowed_domains:');
    const tools = [{ type: 'web_search_20250305', name: 'web_search', allowed_domains: ['a.example'], max_uses: 2 }];
    const body = { model: 'resp-x', max_tokens: 100, messages: [{ role: 'user', content: 'x' }], tools };
    const answer = await server.ask('/server/messages/v1/messages', body);
    expect(answer.headers.get('x-dragoman-warnings')).toContain('tools.web_search.max_uses:');
    expect((upstream.requests[2]!.json as { tools: unknown }).tools).toEqual([{ type: 'web_search', filters: { allowed_domains: ['a.example'] } }]);
  });
});

describe('engines', () => {
  test.each([
    [
      'brave',
      { web: { results: [{ url: 'http://news.example/a', title: 'A', description: 'Shown <strong>of</strong> A.' }] } },
      (request: IncomingMessage) => {
        expect(request.method).toBe('GET');
        expect(request.url).toMatch(/^\/s\/res\/v1\/web\/search\?/);
        expect(request.headers['x-subscription-token']).toBe('engine-key');
        expect(new URL(request.url!, 'http://x').searchParams.get('q')).toBe('moon');
      },
    ],
    [
      'tavily',
      { results: [{ url: 'http://news.example/a', title: 'A', content: 'Shown of A.', score: 0.5 }] },
      (request: IncomingMessage) => {
        expect(request.method).toBe('POST');
        expect(request.url).toBe('/s/search');
        expect(request.headers.authorization).toBe('Bearer engine-key');
      },
    ],
  ])(
    '%s is queried in its own form, and its results are passed on',
    async (name, found, check) => {
      const outside = outsideOf(() => [publicAddress], '127.0.0.3'); // where nobody listens: the page cannot be read
      const other = await startTestServer({
        outside,
        yaml: `${providers()}search: { engine: ${name}, url: "http://127.0.0.1:${engine.port}/s", apiKey: engine-key }\n`,
      });
      engine.answer((_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(found)));
      upstream.script(looksFor('moon'), ok({ text: 'Far [1].' }));
      try {
        const { said } = await asked(request(), { at: other });
        expect(said.output[1]!.content![0]!.annotations).toMatchObject([{ url: 'http://news.example/a', title: 'A' }]);
        check(engine.requests[0]!);
        expect(sent(1).messages.at(-1)!.content).toContain('Shown of A.');
        expect(JSON.stringify([said, upstream.requests.map(({ json }) => json)])).not.toContain('engine-key');
      } finally {
        await other.close();
      }
    },
    120_000,
  );
});

describe('the choice of the search', () => {
  test('a provider with a search of its own receives the tool, in its own form', async () => {
    upstream.script(always(ok()));
    for (const model of ['resp-x', 'claude-x', 'gemini-x']) expect([model, (await asked(request({ model }), { at: bare })).status]).toEqual([model, 200]);
    expect(upstream.requests.map(({ json }) => (json as { tools: unknown }).tools)).toEqual([
      [{ type: 'web_search' }],
      [{ type: 'web_search_20250305', name: 'web_search' }],
      [{ googleSearch: {} }],
    ]);
    expect((await asked(request({ model: 'resp-x', tool_choice: { type: 'web_search' } }), { at: bare })).status).toBe(200);
    expect(sent(3)['tool_choice']).toEqual({ type: 'web_search' });
  });

  test('without an engine the tool is dropped with a warning, also beside functions that the provider does not accept with it', async () => {
    upstream.script(always(ok()));
    for (const model of ['gpt-x', 'gemini-x']) {
      const { status, warnings } = await asked(request({ model, tools: [{ type: 'web_search' }, { type: 'function', name: 'look', parameters: {} }] }), {
        at: bare,
      });
      expect([model, status]).toEqual([model, 200]);
      expect(warnings).toContain('web_search is left out');
    }
    expect(JSON.stringify(upstream.requests.map(({ json }) => json))).not.toMatch(/web_search|googleSearch/);
  });

  test.each([
    ['tool_choice names it', request({ tool_choice: { type: 'web_search' } }), {}, 'tool_choice'],
    ['tool_choice asks for a tool, and there is no other', request({ tool_choice: 'required' }), {}, 'tool_choice'],
    ['the client is strict', request(), { 'x-dragoman-strict': 'true' }, 'tools'],
  ])('without an engine it is 400 if %s', async (_why, body, headers, param) => {
    const { status, said } = await asked(body, { at: bare, headers });
    expect(status).toBe(400);
    expect(said.error).toMatchObject({ param, message: expect.stringContaining('no search engine is configured') as string });
    expect(upstream.requests).toHaveLength(0);
  });

  test('with an engine a strict client is answered', async () => {
    finds();
    shows('<p>far</p>');
    upstream.script(looksFor('moon'), ok({ text: 'Far [1].' }));
    expect((await asked(request(), { headers: { 'x-dragoman-strict': 'true' } })).status).toBe(200);
  });

  test('for a client that forbids tools nothing is searched', async () => {
    upstream.script(ok());
    expect((await asked(request({ tool_choice: 'none' }))).status).toBe(200);
    expect(engine.requests).toHaveLength(0);
  });
});

describe('other interfaces', () => {
  test('messages have search blocks and citations', async () => {
    finds();
    shows('<p>far</p>');
    const body = {
      model: 'gpt-x',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'How far?' }],
      tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 3 }],
    };
    type Block = { readonly type: string; readonly id?: string };
    upstream.script(looksFor('moon'), ok({ text: 'Far [1].' }), looksFor('moon'), ok({ text: 'Far [1].' }), always(ok()));
    const { content, usage } = (await (await server.ask('/server/messages/v1/messages', body)).json()) as { content: readonly Block[]; usage: object };
    expect(usage).toMatchObject({ server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 } });
    expect(content).toMatchObject([
      { type: 'server_tool_use', name: 'web_search', input: { query: 'moon' } },
      { type: 'web_search_tool_result', tool_use_id: content[0]!.id, content: [{ type: 'web_search_result', url: page('/a') }, { url: page('/b') }] },
      { type: 'text', text: 'Far [1].', citations: [{ type: 'web_search_result_location', url: page('/a'), cited_text: '[1]' }] },
    ]);
    const streamed = await (await server.ask('/server/messages/v1/messages', { ...body, stream: true })).text();
    for (const word of [
      '"server_tool_use"',
      '"web_search_tool_result"',
      '"citations_delta"',
      '"cited_text":"[1]"',
      '"server_tool_use":{"web_fetch_requests":0,"web_search_requests":1}',
    ])
      expect(streamed).toContain(word);
    const back = { ...body, tools: [], messages: [...body.messages, { role: 'assistant', content }, { role: 'user', content: 'and?' }] };
    const again = await server.ask('/server/messages/v1/messages', { ...back, model: 'claude-x' });
    expect([again.status, again.headers.get('x-dragoman-warnings')]).toEqual([200, null]);
    expect((upstream.requests[4]!.json as { messages: readonly unknown[] }).messages[1]).toEqual({ role: 'assistant', content: 'Far [1].' });
  });

  test('searches that failed are not counted for a client of the Messages API, and an answer without any counts none', async () => {
    engine.answer((_, response) => void response.writeHead(403).end());
    upstream.script(looksFor('moon'), ok({ text: 'I do not know.' }), ok({ text: 'Far.' }));
    const body = {
      model: 'gpt-x',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'How far?' }],
      tools: [{ type: 'web_search_20250305', name: 'web_search' }],
    };
    for (let round = 0; round < 2; round++) {
      const answer = await server.ask('/server/messages/v1/messages', body);
      expect(((await answer.json()) as { usage: object }).usage).not.toHaveProperty('server_tool_use');
    }
  });

  test.each([':generateContent', ':streamGenerateContent?alt=sse'])('content generation has grounding metadata (%s)', async (verb) => {
    finds();
    shows('<p>far</p>');
    upstream.script(looksFor('moon'), ok({ text: '🌙 is far [1].' }));
    const contents = [{ role: 'user', parts: [{ text: 'How far?' }] }];
    const answer = await server.ask(`/server/gencompat/v1beta/models/gemini-2.5-flash${verb}`, { contents, tools: [{ googleSearch: {} }] });
    const text = await answer.text();
    expect(answer.status).toBe(200);
    const last = JSON.parse(
      verb.endsWith('sse')
        ? text
            .trim()
            .split(/\r?\n\r?\n/)
            .at(-1)!
            .replace(/^data: /, '')
        : text,
    ) as { candidates: readonly object[] };
    expect(last.candidates[0]).toMatchObject({
      finishReason: 'STOP',
      groundingMetadata: {
        webSearchQueries: ['moon'],
        groundingChunks: [{ web: { uri: page('/a'), title: 'The moon today' } }],
        groundingSupports: [{ segment: { startIndex: 12, endIndex: 15, text: '[1]' }, groundingChunkIndices: [0] }],
      },
    });
  });
});
