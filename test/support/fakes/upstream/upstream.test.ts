import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import OpenAI from 'openai';
import { Agent, request as send } from 'undici';
import { brotliDecompressSync, createGunzip, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib';
import { connectRaw, type Raw } from '../raw.ts';
import * as fake from './index.ts';

let upstream: fake.Upstream;
const open: { close(): unknown }[] = [];

beforeEach(async () => {
  upstream = await fake.startUpstream();
});
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
  await upstream.close();
});

const chat = '/v1/chat/completions';
const asking = (more: object = {}) => JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'the canary 17' }], ...more });

interface Asking {
  readonly stream?: boolean;
  readonly more?: object;
  readonly path?: string;
  readonly headers?: string;
}

/** Sends one chat request over a connection of its own, or over `raw`. */
async function ask({ stream = false, more = {}, path = chat, headers = '' }: Asking = {}, raw?: Raw): Promise<Raw> {
  const line = raw ?? (await connectRaw(upstream.url));
  open.push(line);
  const body = asking({ ...(stream ? { stream, stream_options: { include_usage: true } } : {}), ...more });
  line.send(`POST ${path} HTTP/1.1\r\nhost: upstream\r\nauthorization: Bearer sk-1\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  return line;
}

const answer = async (asking: Asking = {}) => (await ask(asking)).answer();
const scripted = (behaviour: fake.Behaviour, asking: Asking = {}) => {
  upstream.script(behaviour);
  return answer(asking);
};
const streamed = async (behaviour: fake.Behaviour) => (await scripted(behaviour, { stream: true })).text;
const data = (text: string) =>
  text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: {'))
    .map((frame) => JSON.parse(frame.slice(6)) as OpenAI.ChatCompletionChunk);
const spoken = (text: string) =>
  data(text)
    .map((chunk) => chunk.choices[0]?.delta.content ?? '')
    .join('');

describe('the scripted upstream without a script', () => {
  test('answers well and echoes the user', async () => {
    const { status, text } = await answer();
    expect(status).toBe(200);
    expect(JSON.parse(text)).toMatchObject({
      object: 'chat.completion',
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'You said: the canary 17' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 },
    });
  });

  test('streams well, with usage if it was asked for', async () => {
    const text = await streamed(fake.ok());
    expect(spoken(text)).toBe('You said: the canary 17');
    expect(data(text).at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 5 } });
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect((await answer({ more: { stream: true } })).text).not.toContain('usage');
  });

  test('respects the maximum of tokens and the number of choices', async () => {
    const { choices, usage } = JSON.parse((await answer({ more: { max_tokens: 2, n: 3 } })).text) as OpenAI.ChatCompletion;
    expect(choices.map(({ index, message, finish_reason }) => [index, message.content, finish_reason])).toEqual(
      [0, 1, 2].map((at) => [at, 'You said: ', 'length']),
    );
    expect(usage?.completion_tokens).toBe(6);
  });

  test('answers 404 at another address', async () => {
    expect((await answer({ path: '/v1/else' })).status).toBe(404);
  });

  test('is understood by the SDK of the real provider', async () => {
    const client = new OpenAI({ baseURL: `${upstream.url}/v1`, apiKey: 'sk-sdk', maxRetries: 0 });
    const messages = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hello there' }] }];
    expect((await client.chat.completions.create({ model: 'm', messages })).choices[0]?.message.content).toBe('You said: hello there');
    const stream = client.chat.completions.stream({ model: 'm', messages });
    expect(await stream.finalContent()).toBe('You said: hello there');
    upstream.script(fake.badKey());
    await expect(client.chat.completions.create({ model: 'm', messages })).rejects.toMatchObject({ status: 401, code: 'invalid_api_key' });
    expect(upstream.requests.map(({ key }) => key)).toEqual(['sk-sdk', 'sk-sdk', 'sk-sdk']);
  });
});

describe('the scripted upstream records a request', () => {
  test('exactly as it came', async () => {
    await answer({ path: `${chat}?api-version=1%2F2`, headers: 'X-Odd: One\r\n' });
    expect(upstream.requests[0]).toMatchObject({
      id: 0,
      method: 'POST',
      path: `${chat}?api-version=1%2F2`,
      model: 'm',
      key: 'sk-1',
      reused: false,
      behaviour: 'ok',
      json: JSON.parse(asking()),
    });
    expect(upstream.requests[0]?.headers['x-odd']).toBe('One');
    expect(upstream.requests[0]?.rawHeaders).toContain('X-Odd');
    expect(upstream.requests[0]?.body.toString()).toBe(asking());
  });

  test('with the connection it came on', async () => {
    const raw = await ask();
    await raw.answer();
    await ask({}, raw);
    await raw.answer();
    await answer();
    expect(upstream.requests.map(({ connection, reused }) => [connection, reused])).toEqual([
      [0, false],
      [0, true],
      [1, false],
    ]);
    expect(upstream.connections).toBe(2);
  });

  test.each(['close', 'reset', 'halfClose'] as const)('with the moment its caller left: %s in the middle of a stream', async (how) => {
    upstream.script(fake.headersThenHang({ afterEvents: 2 }));
    const raw = await ask({ stream: true });
    await raw.until('You');
    const left = performance.now();
    raw[how]();
    const { closedEarlyAt, answeredAt, piecesSent } = await upstream.closed(0);
    expect(closedEarlyAt! - left).toBeLessThan(1000);
    expect(closedEarlyAt).toBeGreaterThanOrEqual(left);
    expect({ answeredAt, piecesSent }).toEqual({ answeredAt: undefined, piecesSent: 2 });
  });

  test('before the headers too', async () => {
    upstream.script(fake.hang());
    const raw = await ask();
    await upstream.arrived(0);
    raw.close();
    expect((await upstream.closed(0)).closedEarlyAt).toBeDefined();
  });

  test('and while it is still sending', async () => {
    const raw = await connectRaw(upstream.url);
    raw.send(`POST ${chat} HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{"model"`);
    await upstream.until(([first]) => first?.bodyBytes === 8);
    raw.reset();
    expect(await upstream.closed(0)).toMatchObject({ bodyAt: undefined, json: undefined, closedEarlyAt: expect.any(Number) });
    expect(upstream.mishaps).toEqual([]);
  });

  test('without calling it an early leave when the caller leaves after the answer or is cut off', async () => {
    const raw = await ask();
    await raw.answer();
    raw.close();
    expect((await upstream.closed(0)).closedEarlyAt).toBeUndefined();
    upstream.script(fake.cut({ afterEvents: 1, how: 'reset' }));
    await (await ask({ stream: true })).ended();
    expect(await upstream.closed(1)).toMatchObject({ closedEarlyAt: undefined, answeredAt: expect.any(Number) });
  });

  test('as a mishap if it is not HTTP', async () => {
    const raw = await connectRaw(upstream.url);
    open.push(raw);
    raw.send(`POST ${chat} HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`);
    await raw.ended();
    expect(upstream.mishaps).toHaveLength(1);
  });
});

describe('a script', () => {
  const status = async (asking?: Asking) => (await answer(asking)).status;

  test('is followed in order, then come good answers', async () => {
    upstream.script(fake.failing(), fake.times(2, fake.tooMany()));
    expect(upstream.pending).toEqual(['refusal 500', 'refusal 429']);
    expect([await status(), await status(), await status(), await status()]).toEqual([500, 429, 429, 200]);
    expect(upstream.pending).toEqual([]);
  });

  test.each<[string, Parameters<typeof fake.on>[0], Asking]>([
    ['model', { model: 'other' }, { more: { model: 'other' } }],
    ['path', { path: '/azure' }, { path: '/azure/chat/completions?api-version=1' }],
    ['pattern of a path', { path: /version=1/u }, { path: '/azure/chat/completions?api-version=1' }],
    ['region', { region: 'us-east1' }, { path: '/v1/projects/p/locations/us-east1/x/chat/completions' }],
    ['key', { key: 'sk-2' }, { headers: 'x-api-key: sk-2\r\n', path: '/v1/chat/completions' }],
    ['label in x-fake', { fake: 'b' }, { headers: 'x-fake: b\r\n' }],
  ])('may speak of one %s only', async (what, like, fitting) => {
    upstream.script(fake.always(fake.on(like, fake.failing(503))));
    expect(await status()).toBe(200);
    const raw = await connectRaw(upstream.url);
    open.push(raw);
    if (what === 'key') raw.send(`POST ${chat} HTTP/1.1\r\nhost: a\r\n${fitting.headers}content-length: 2\r\n\r\n{}`);
    else await ask(fitting, raw);
    expect((await raw.answer()).status).toBe(503);
    expect(upstream.pending).toEqual([]);
  });

  test('that fails is recorded as a mishap and does not hang', async () => {
    upstream.script({ name: 'wrong', answer: () => Promise.reject(new Error('so wrong')) });
    await (await ask()).ended();
    expect(upstream.mishaps).toEqual(['wrong: Error: so wrong']);
  });

  test('is cleared by reset', async () => {
    upstream.script(fake.failing());
    await answer();
    upstream.script(fake.failing());
    upstream.reset();
    expect(await status()).toBe(200);
    expect(upstream.requests).toHaveLength(1);
  });
});

test('until() fails with the events so far', async () => {
  await answer();
  await expect(upstream.until((all) => all.length === 2, 20)).rejects.toThrow(
    /Not within 20 ms\. #0 POST \/v1\/chat\/completions m on connection 0: ok, answered/u,
  );
});

describe('down', () => {
  test('cuts connections and refuses new ones until it is up again', async () => {
    upstream.script(fake.hang());
    const raw = await ask();
    await upstream.arrived(0);
    await upstream.down();
    await raw.ended();
    expect(upstream.requests[0]?.closedEarlyAt).toBeUndefined();
    await expect(connectRaw(upstream.url)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await upstream.up();
    expect((await answer()).status).toBe(200);
  });

  test('the address of nobody() never accepts a connection', async () => {
    const no = await fake.nobody();
    open.push(no);
    for (let round = 0; round < 20; round++) await expect(connectRaw(no.url)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });
});

describe('a good stream with odd manners', () => {
  const clean = 'You said: the canary 17';

  test.each<[string, fake.Behaviour, (text: string) => void]>([
    ['no [DONE]', fake.noDone(), (text) => expect(text).not.toContain('[DONE]')],
    ['[DONE] twice', fake.doneTwice(), (text) => expect(text.match(/\[DONE\]/gu)).toHaveLength(2)],
    ['data after [DONE]', fake.afterDone('data: {"choices":[]}'), (text) => expect(text.endsWith('data: [DONE]\n\ndata: {"choices":[]}\n\n')).toBe(true)],
    ['no finish reason', fake.noFinish(), (text) => expect(text).not.toContain('"finish_reason":"')],
    ['comments', fake.comments(), (text) => expect(text.startsWith(': keep-alive\n\ndata: {')).toBe(true)],
    ['fields', fake.fields(), (text) => expect(text.startsWith('event: message\nid: 1\nretry: 10\ndata: {')).toBe(true)],
    ['a BOM', fake.bom(), (text) => expect(text.startsWith('\uFEFFdata: {')).toBe(true)],
    [
      'thoughts',
      fake.thinking('let me see'),
      (text) =>
        expect(
          data(text)
            .map(({ choices: [one] }) => (one?.delta as { reasoning_content?: string })?.reasoning_content ?? '')
            .join(''),
        ).toBe('let me see'),
    ],
  ])('%s', async (_what, behaviour, seen) => {
    const text = await streamed(behaviour);
    seen(text);
    expect(spoken(text.replaceAll(/^(\uFEFF|event: .*\nid: .*\nretry: .*\n)/gmu, ''))).toBe(clean);
  });

  test.each(['\r\n', '\r'] as const)('line ends %j', async (end) => {
    const text = await streamed(fake.lineEnds(end));
    expect(text.includes(`${end}${end}data: `)).toBe(true);
    expect(text.replaceAll(end, '')).not.toMatch(/[\r\n]/u);
    expect(spoken(text.replaceAll(end, '\n'))).toBe(clean);
  });

  test('one byte a packet', async () => {
    const text = fake.ok({ text: 'Grüße 🐉' });
    upstream.script(fake.sliced(text));
    const raw = await ask({ stream: true });
    expect(spoken((await raw.answer()).text)).toBe('Grüße 🐉');
    const framed = raw.received.length - raw.received.indexOf('\r\n\r\n') - 4;
    expect(framed).toBe('1\r\nx\r\n'.length * upstream.requests[0]!.bytesSent + '0\r\n\r\n'.length);
  });

  test.each<[NonNullable<fake.Saying['usage']>, unknown[]]>([
    ['missing', []],
    ['null', [null]],
    ['twice', [5, 5]],
    ['with-finish', [5]],
    [{ input: -3, output: -5 }, [-5]],
    [{ input: '3', output: 'five' }, ['five']],
    [{ input: 1e308, output: 1e308, total: null }, [1e308]],
  ])('usage %j', async (usage, said) => {
    const chunks = data(await streamed(fake.usage(usage)));
    const told = chunks.filter((chunk) => 'usage' in chunk && (chunk.usage || chunk.choices[0]?.finish_reason));
    expect(told.map((chunk) => (chunk.usage ? chunk.usage.completion_tokens : chunk.usage)).filter((one) => one !== undefined)).toEqual(
      usage === 'twice' || typeof usage === 'object' ? [null, ...said] : said,
    );
    const { usage: whole } = JSON.parse((await scripted(fake.usage(usage))).text) as { usage?: { completion_tokens: unknown } | null };
    expect(whole ? whole.completion_tokens : whole).toEqual(said[0]);
  });

  test.each(['pieces', 'whole', 'interleaved', 'no-index', 'name-again', 'object'] as const)('tool calls as %s', async (shape) => {
    const json = '{"city":"Zürich"}';
    const calls = [
      { name: 'weather', json },
      { name: 'time', json: '{}' },
    ];
    const chunks = data(await streamed(fake.toolCalls(calls, shape)));
    const heard: { name: string; json: string }[] = [];
    let last = -1;
    for (const piece of chunks.flatMap(({ choices: [one] }) => one?.delta.tool_calls ?? [])) {
      last = piece.index ?? (piece.function?.name ? last + 1 : last);
      const call = (heard[last] ??= { name: '', json: '' });
      call.name += piece.function?.name ?? '';
      const text: unknown = piece.function?.arguments;
      call.json += typeof text === 'string' ? text : JSON.stringify(text);
    }
    expect(heard).toEqual(calls);
    expect(chunks.findLast(({ choices }) => choices.length)?.choices[0]?.finish_reason).toBe('tool_calls');
    const { choices } = JSON.parse((await scripted(fake.toolCalls(calls, shape))).text) as OpenAI.ChatCompletion;
    expect(choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { content: null, tool_calls: [{ function: { name: 'weather' } }, { function: { name: 'time' } }] },
    });
  });

  test('the SDK of the real provider puts tool calls together', async () => {
    const client = new OpenAI({ baseURL: `${upstream.url}/v1`, apiKey: 'k', maxRetries: 0 });
    for (const shape of ['pieces', 'whole', 'interleaved'] as const) {
      upstream.script(
        fake.toolCalls(
          [
            { name: 'a', json: '{"x":"12345678"}' },
            { name: 'b', json: '{}' },
          ],
          shape,
        ),
      );
      const { choices } = await client.chat.completions.stream({ model: 'm', messages: [{ role: 'user', content: 'x' }] }).finalChatCompletion();
      expect(choices[0]?.message.tool_calls).toMatchObject([
        { function: { name: 'a', arguments: '{"x":"12345678"}' } },
        { function: { name: 'b', arguments: '{}' } },
      ]);
    }
  });

  test('a recording is replayed as it is', async () => {
    expect(await streamed(fake.replay(['{"a": 1}', '{"b":2}']))).toBe('data: {"a": 1}\n\ndata: {"b":2}\n\ndata: [DONE]\n\n');
    expect(await streamed(fake.replay(['1'], { last: false, paceMs: 1 }))).toBe('data: 1\n\n');
  });
});

describe('time is the clock that was given', () => {
  /** A clock on which everything takes no time and is written down. */
  const slept: number[] = [];
  const clock = { sleep: async (milliseconds: number) => void slept.push(milliseconds) };
  beforeEach(async () => {
    await upstream.close();
    slept.length = 0;
    upstream = await fake.startUpstream({ clock });
  });

  test('a slow thinker sends its headers, thinks, and speaks', async () => {
    expect(spoken(await streamed(fake.slowThinker(90)))).toBe('You said: the canary 17');
    expect(slept).toEqual([90_000]);
  });

  test('a drip is so many bytes a second', async () => {
    const { text } = await scripted(fake.drip(100));
    expect(JSON.parse(text)).toMatchObject({ object: 'chat.completion' });
    expect(slept).toEqual(Array.from({ length: Math.ceil(text.length / 100) - 1 }, () => 1000));
  });

  test('a pace is so many milliseconds between events', async () => {
    const text = await streamed(fake.pace(250, fake.ok({ text: 'a b' })));
    expect(slept).toEqual(Array.from({ length: text.match(/data: /gu)!.length - 1 }, () => 250));
  });
});

test('on the real clock a caller who leaves ends the thinking', async () => {
  upstream.script(fake.slowThinker(3600));
  const raw = await ask({ stream: true });
  await raw.until('\r\n\r\n');
  raw.close();
  expect(await upstream.closed(0)).toMatchObject({ piecesSent: 0, closedEarlyAt: expect.any(Number) });
});

describe('a refusal', () => {
  test.each([
    [400, fake.badRequest()],
    [401, fake.badKey()],
    [402, fake.unpaid()],
    [403, fake.forbidden()],
    [404, fake.notFound()],
    [422, fake.unprocessable()],
    [429, fake.tooMany()],
    [500, fake.failing()],
    [502, fake.failing(502)],
    [503, fake.failing(503)],
    [504, fake.failing(504)],
    [529, fake.failing(529)],
  ])('%i is worded as the provider does, with what must not leave the server', async (status, behaviour) => {
    const refused = await scripted(behaviour);
    expect(refused.status).toBe(status);
    expect(JSON.parse(refused.text)).toMatchObject({
      error: { message: expect.stringContaining(fake.secretWord) as string, type: expect.any(String) as string, param: null },
    });
  });

  test('404 names the model or does not', async () => {
    expect((await scripted(fake.notFound('model'))).text).toContain('The model `m` does not exist');
    expect((await scripted(fake.notFound('address'))).text).not.toContain('model');
  });

  test.each<[Parameters<typeof fake.tooMany>[0] & object, string | undefined]>([
    [{}, undefined],
    [{ retryAfter: 3 }, '3'],
    [{ retryAfter: 86_400e3 }, '86400000'],
    [{ retryAfter: -1 }, '-1'],
    [{ retryAfter: 'abc' }, 'abc'],
    [{ retryAfter: new Date(0) }, 'Thu, 01 Jan 1970 00:00:00 GMT'],
  ])('429 with %j', async (words, header) => {
    expect((await scripted(fake.tooMany(words))).header('retry-after')).toBe(header);
  });

  test('429 with retry-after-ms and other words', async () => {
    const refused = await scripted(fake.tooMany({ retryAfterMs: 20, type: 'insufficient_quota', code: 'insufficient_quota' }));
    expect(refused.header('retry-after-ms')).toBe('20');
    expect(refused.text).toContain('"code":"insufficient_quota"');
  });

  test('may come inside a stream, at once or later, or as the body of a 200', async () => {
    const frames = (text: string) =>
      text.split('\n\n').map((frame) => (frame.includes('"error"') ? 'error' : frame.includes('[DONE]') ? 'done' : frame ? 'event' : 'end'));
    expect(frames(await streamed(fake.errorEvent()))).toEqual(['error', 'end']);
    expect(frames(await streamed(fake.errorEvent({ afterEvents: 2, done: true })))).toEqual(['event', 'event', 'error', 'done', 'end']);
    expect(await scripted(fake.errorEvent({ status: 429 }))).toMatchObject({ status: 200, text: expect.stringContaining('rate_limit_exceeded') as string });
  });

  test('or as bare JSON', async () => {
    const text = await streamed(fake.rawJsonTail());
    expect(JSON.parse(text.slice(text.indexOf('\n\n')))).toMatchObject({ error: {} });
  });

  test('may come before the body is read, and closes', async () => {
    upstream.script(fake.early(413));
    const raw = await connectRaw(upstream.url);
    open.push(raw);
    raw.send(`POST ${chat} HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n{`);
    expect((await raw.answer()).status).toBe(413);
    await raw.ended();
    expect(upstream.requests[0]?.bodyAt).toBeUndefined();
  });
});

describe('a 200 that is none', () => {
  test.each<[string, fake.Behaviour, string | RegExp, string]>([
    ['html', fake.html(), /^<!doctype html>/u, 'text/html'],
    ['nothing', fake.empty(), '', 'application/json'],
    ['null', fake.jsonNull(), 'null', 'application/json'],
    ['an array', fake.array(), /^\[/u, 'application/json'],
    ['malformed', fake.malformed(), /half$/u, 'application/json'],
    ['any body', fake.body('x', 'text/plain'), 'x', 'text/plain'],
  ])('%s', async (_what, behaviour, text, type) => {
    const { status, ...got } = await scripted(behaviour);
    expect([status, got.header('content-type')]).toEqual([200, type]);
    expect(got.text).toMatch(text);
  });

  test('another content type, or none, over a good body', async () => {
    expect((await scripted(fake.contentType('text/html'))).header('content-type')).toBe('text/html');
    const none = await scripted(fake.contentType(''), { stream: true });
    expect(none.header('content-type')).toBeUndefined();
    expect(spoken(none.text)).toBe('You said: the canary 17');
  });

  test('204, 304, redirects, 1xx', async () => {
    expect((await scripted(fake.noContent())).status).toBe(204);
    expect((await scripted(fake.notModified())).status).toBe(304);
    for (const status of [301, 302, 303, 307, 308] as const) {
      const moved = await scripted(fake.redirect('http://127.0.0.2:1/', status));
      expect([moved.status, moved.header('location')]).toEqual([status, 'http://127.0.0.2:1/']);
    }
    expect(await scripted(fake.informational(102, 103))).toMatchObject({ status: 200, informational: [102, 103] });
  });

  test('headers that leak, that are giant, that break the head', async () => {
    const leaky = await scripted(fake.leakyHeaders());
    expect(leaky.headers.filter(([name]) => name === 'set-cookie')).toHaveLength(2);
    expect(leaky.header('server')).toBe(fake.secretWord);
    expect((await scripted(fake.giantHeaders(1 << 20))).header('x-giant')).toHaveLength(1 << 20);
    expect(await scripted(fake.withHeaders({ 'x-a': '1' }, fake.failing(503)))).toMatchObject({
      status: 503,
      headers: expect.arrayContaining([['x-a', '1']]) as unknown,
    });
    expect(await scripted(fake.bytes('HTTP/1.1 299 Odd\r\n\r\nodd'))).toMatchObject({ status: 299, reason: 'Odd', text: 'odd' });
    upstream.script(fake.brokenHead());
    await (await ask()).until('b\rset-cookie');
  });
});

describe('an answer that breaks off', () => {
  const begin = (behaviour: fake.Behaviour, stream: boolean) => {
    upstream.script(behaviour);
    return ask({ stream });
  };

  test.each(['fin', 'reset'] as const)('after so many events, by %s', async (how) => {
    const raw = await begin(fake.cut({ afterEvents: 3, how }), true);
    expect(await raw.ended()).toBe(how);
    const text = raw.received.toString();
    expect(text.match(/data: /gu)).toHaveLength(3);
    expect(text.endsWith('0\r\n\r\n')).toBe(false);
  });

  test('after so many bytes', async () => {
    const raw = await begin(fake.cut({ afterBytes: 10 }), true);
    await raw.ended();
    expect(raw.received.toString().endsWith('\r\n\r\na\r\ndata: {"id\r\n')).toBe(true);
  });

  test('in the middle of what is not streamed', async () => {
    const raw = await begin(fake.cut(), false);
    expect(await raw.ended()).toBe('fin');
    const [head, half] = raw.received.toString().split('\r\n\r\n') as [string, string];
    expect(half.length * 2).toBeCloseTo(Number(/content-length: (\d+)/u.exec(head)?.[1]), -1);
  });

  test('in the middle of a character', async () => {
    for (const stream of [true, false]) {
      const raw = await begin(fake.cutInCharacter(), stream);
      expect(await raw.ended()).toBe('reset');
      expect(raw.received.includes(Buffer.from('🐉').subarray(0, 2))).toBe(true);
      expect(raw.received.includes('🐉')).toBe(false);
    }
  });

  test('in the middle of a JSON text', async () => {
    const raw = await begin(fake.cutInJson({ afterEvents: 1 }), true);
    expect(await raw.ended()).toBe('reset');
    const frames = raw.received.toString().split('data: ').slice(1);
    expect(frames).toHaveLength(2);
    expect(frames[1]).not.toContain('\n\n');
  });

  test('without its terminator, or shorter than it says', async () => {
    for (const behaviour of [fake.unterminated(), fake.lyingLength()]) {
      const raw = await begin(behaviour, false);
      expect(await raw.ended()).toBe('fin');
      expect(raw.received.toString()).toMatch(/"service_tier":"default"\}\s*$/u);
      await expect(raw.answer()).rejects.toThrow('before the end');
    }
  });

  test('in half a character, though properly ended', async () => {
    const { body } = await scripted(fake.truncatedUtf8());
    expect(() => new TextDecoder('utf-8', { fatal: true }).decode(body)).toThrow();
  });

  test('before it begins: a hang, a drop, silence after headers', async () => {
    const hung = await begin(fake.hang(), false);
    await upstream.arrived(0);
    expect(hung.bytesRead).toBe(0);
    for (const how of ['fin', 'reset'] as const) {
      const dropped = await begin(fake.drop(how), false);
      expect(await dropped.ended()).toBe(how);
      expect(dropped.bytesRead).toBe(0);
    }
    const silent = await begin(fake.headersThenHang(), true);
    await silent.until('\r\n\r\n');
    expect(silent.received.includes('data')).toBe(false);
  });
});

describe('a kept-alive connection', () => {
  const post = async (dispatcher: Agent) => {
    const { statusCode, body } = await send(`${upstream.url}${chat}`, { method: 'POST', body: asking(), dispatcher });
    await body.dump();
    return statusCode;
  };

  test.each(['fin', 'reset'] as const)('may close as the next request is written: %s', async (how) => {
    const agent = new Agent({ connections: 1 });
    open.push(agent);
    expect(await post(agent)).toBe(200);
    upstream.script(fake.dropReused(how));
    await expect(post(agent)).rejects.toMatchObject({ code: expect.stringMatching(/UND_ERR_SOCKET|ECONNRESET/u) as string });
    upstream.script(fake.dropReused(how));
    expect(await post(agent)).toBe(200);
    expect(upstream.requests.map(({ reused }) => reused)).toEqual([false, true, false]);
  });

  test('may close while it is idle', async () => {
    upstream.script(fake.closesIdle(5));
    const raw = await ask();
    expect((await raw.answer()).header('connection')).toBe('keep-alive');
    expect(await raw.ended()).toBe('fin');
  });
});

describe('an encoded answer', () => {
  const decoders = { gzip: gunzipSync, deflate: inflateSync, br: brotliDecompressSync, zstd: zstdDecompressSync };

  test.each(['gzip', 'deflate', 'br', 'zstd'] as const)('%s', async (name) => {
    const encoded = await scripted(fake.encoded(name), { stream: true });
    expect(encoded.header('content-encoding')).toBe(name);
    expect(spoken(decoders[name](encoded.body).toString())).toBe('You said: the canary 17');
  });

  test('twice, and a thousand times', async () => {
    const twice = await scripted(fake.encoded('gzip', 'br'));
    expect(twice.header('content-encoding')).toBe('gzip, br');
    expect(JSON.parse(gunzipSync(brotliDecompressSync(twice.body)).toString())).toMatchObject({ model: 'm' });
    const chain = await scripted(fake.encodedTimes(1000));
    expect(chain.header('content-encoding')?.split(', ')).toHaveLength(1000);
    expect(gunzipSync(gunzipSync(chain.body))[0]).toBe(0x1f);
  });

  test('as a bomb swells a thousandfold', async () => {
    const { body } = await scripted(fake.gzipBomb(100));
    expect(body.length).toBeLessThan(200_000);
    let size = 0;
    const gunzip = createGunzip().on('error', () => {}); // the checksum
    gunzip.on('data', (piece: Buffer) => (size += piece.length));
    gunzip.end(body);
    await new Promise((resolve) => void gunzip.on('close', resolve));
    expect(size).toBeGreaterThan(99 << 20);
  });
});

describe('a giant answer', () => {
  test.each([true, false])('without an end stops when the caller leaves, and waits while he does not read; streamed: %s', async (stream) => {
    upstream.script(fake.endless());
    const raw = await ask({ stream });
    await raw.until(stream ? 'more ' : 'aaaa');
    raw.pause();
    let before = -1;
    await expect.poll(() => [before, (before = upstream.requests[0]!.bytesSent)].reduce((a, b) => b - a), { interval: 100 }).toBe(0);
    raw.close();
    expect((await upstream.closed(0)).closedEarlyAt).toBeDefined();
  });

  test('a long line has no end of line', async () => {
    const text = await streamed(fake.longLine(1e6));
    expect(text.length).toBeGreaterThan(1e6);
    expect(text).not.toContain('\n');
  });

  test('a million small events', async () => {
    upstream.script(fake.manyEvents(1e6));
    const { body } = await send(`${upstream.url}${chat}`, { method: 'POST', body: asking({ stream: true }) });
    let events = 0;
    let end = '';
    for await (const piece of body) {
      end = `${end}${String(piece)}`;
      events += end.split('\n\n').length - 1;
      end = end.slice(end.lastIndexOf('\n\n') + 2);
    }
    expect(events).toBeGreaterThan(1e6);
  });

  test('many choices', async () => {
    expect((JSON.parse((await scripted(fake.manyChoices(1000))).text) as OpenAI.ChatCompletion).choices).toHaveLength(1000);
    expect(data(await streamed(fake.manyChoices(1000))).length).toBeGreaterThan(1000);
  });

  test('deep JSON', async () => {
    const depth = (value: unknown): number => (Array.isArray(value) ? 1 + depth(value[0]) : 0);
    expect(depth((JSON.parse((await scripted(fake.deepJson(1000))).text) as { more: unknown }).more)).toBe(1000);
    const text = await streamed(fake.deepJson(1000));
    expect(text).toContain('['.repeat(1000));
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  });
});
