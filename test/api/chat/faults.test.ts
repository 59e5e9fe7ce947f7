import OpenAI from 'openai';
import OpenAI7 from 'openai-7';
import { describe, expect, test } from 'vitest';
import {
  afterDone,
  array,
  badRequest,
  bom,
  bytes,
  closesIdle,
  comments,
  contentType,
  cut,
  cutInCharacter,
  cutInJson,
  doneTwice,
  drop,
  dropReused,
  empty,
  encoded,
  encodedTimes,
  endless,
  errorEvent,
  failing,
  fields,
  giantHeaders,
  gzipBomb,
  hang,
  headersThenHang,
  html,
  informational,
  jsonNull,
  leakyHeaders,
  lineEnds,
  longLine,
  lyingLength,
  malformed,
  manyChoices,
  noContent,
  nobody,
  noDone,
  noFinish,
  notFound,
  notModified,
  ok,
  pace,
  rawJsonTail,
  redirect,
  refusal,
  says,
  secretWord,
  sliced,
  times,
  tooMany,
  truncatedUtf8,
  unterminated,
  withStatus,
  type Behaviour,
} from '../../support/fakes/upstream/index.ts';
import { chat, startTestServer, providerKey } from '../../support/server.ts';
import { loggedAs } from '../../support/members.ts';
import { proves } from '../../support/proves.ts';
import { scriptedServer } from '../../support/scripted-server.ts';

const { upstream, server } = await scriptedServer(({ url }) => ({
  upstream: url,
  yaml: `  gone: { targets: [{ provider: fake }] }
limits: { hangSeconds: { stream: 1, whole: 1 }, firstByteSeconds: 1, streamIdleSeconds: 1 }
routing: { cooldownSeconds: 0, retryBudget: 1 }
`,
}));

const request = { model: 'gpt-4o-mini', messages: [{ role: 'user' as const, content: 'one two three four five six' }] };

const choice = { index: 0, message: { role: 'assistant', content: 'one two three' }, finish_reason: 'stop' };

interface Refusal {
  readonly error: { readonly message: string; readonly type: string; readonly code: string };
}

/** A whole answer as the client gets it. */
async function whole(behaviour: Behaviour) {
  upstream.script(behaviour);
  const answer = await server.ask(chat, request);
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text, refusal: (): Refusal => JSON.parse(text) as Refusal };
}

/** A stream as the client gets it: the JSON texts of its frames, and `[DONE]` if it came. */
async function streamed(behaviour: Behaviour) {
  upstream.script(behaviour);
  const answer = await server.ask(chat, { ...request, stream: true });
  const text = await answer.text();
  const frames = text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: '))
    .map((frame) => frame.slice(6));
  return { status: answer.status, text, frames, said: frames.map(contentOf).join('') };
}

function contentOf(frame: string): string {
  if (frame === '[DONE]') return '';
  return (JSON.parse(frame) as { choices?: { delta: { content?: string } }[] }).choices?.[0]?.delta.content ?? '';
}

describe('a stream that dies after it has spoken', () => {
  const deaths: [string, () => Behaviour][] = [
    ['by FIN', () => cut({ afterEvents: 4, how: 'fin' })],
    ['by RST', () => cut({ afterEvents: 4, how: 'reset' })],
    ['by RST in the middle of a character', () => cutInCharacter()],
    ['by RST in the middle of a JSON text', () => cutInJson({ afterEvents: 4 })],
    ['by its end without a finish reason', () => noFinish()],
    ['by silence', () => headersThenHang({ afterEvents: 4 })],
    ['by an error event', () => pace(5, errorEvent({ afterEvents: 4 }))],
    ['by an error event and [DONE]', () => pace(5, errorEvent({ afterEvents: 4, done: true }))],
    ['by bare JSON', () => pace(5, rawJsonTail({ afterEvents: 4 }))],
  ];

  test.each(deaths)(
    proves(['S-01', 'F-06', 'F-07', 'F-05', 'F-10'], '%s ends in an error frame, without [DONE], and is not tried again'),
    async (_how, behaviour) => {
      const { status, frames } = await streamed(behaviour());
      expect(status).toBe(200);
      const last = JSON.parse(frames.at(-1)!) as Refusal;
      expect(last.error).toMatchObject({ type: 'server_error' });
      expect(frames).not.toContain('[DONE]');
      expect(JSON.stringify(frames)).not.toContain(secretWord);
      for (const frame of frames.slice(0, -1)) expect(JSON.parse(frame)).toHaveProperty('choices');
      expect(upstream.requests).toHaveLength(1);
    },
  );

  for (const [name, Client] of [
    ['openai 6', OpenAI],
    ['openai 7', OpenAI7 as unknown as typeof OpenAI],
  ] as const) {
    test.each(deaths)(`%s is raised by ${name}`, async (_how, behaviour) => {
      const client = new Client({ apiKey: server.key, baseURL: `${server.url}/server/chatcompat/v1` });
      upstream.script(behaviour());
      const read = async () => {
        for await (const _chunk of await client.chat.completions.create({ ...request, stream: true }));
      };
      await expect(read()).rejects.toBeInstanceOf(Client.APIError);
    });
  }
});

describe('a stream that fails before it has spoken', () => {
  test.each<[string, () => Behaviour, number]>([
    ['an error event first', () => errorEvent({ afterEvents: 0, status: 503 }), 503],
    ['an error event after the role alone', () => errorEvent({ afterEvents: 1, status: 503 }), 503],
    ['a cut after the role alone', () => cut({ afterEvents: 1 }), 502],
    ['silence after the headers', () => headersThenHang(), 504],
    ['429', () => tooMany({ retryAfter: 7 }), 429],
  ])(proves(['F-10', 'S-02'], 'by %s is a real status, and no frame is sent'), async (_how, behaviour, status) => {
    const answer = await streamed(behaviour());
    expect(answer.status).toBe(status);
    expect(answer.frames).toEqual([]);
    expect((JSON.parse(answer.text) as Refusal).error.message).toBeTruthy();
  });
});

/** A frame of the provider's, but for what differs from answer to answer. */
const withoutIdentity = (frame: string) => frame.replace(/"id":"[^"]*",/, '').replace(/"created":\d+,/, '');

describe('a stream of odd manners reads like a clean one', () => {
  test.each<[string, () => Behaviour]>([
    ['no [DONE]', noDone],
    ['two [DONE]', doneTwice],
    ['frames after [DONE]', () => afterDone('data: {"choices":[{"index":0,"delta":{"content":"late"}}]}')],
    ['CRLF', () => lineEnds('\r\n')],
    ['CR', () => lineEnds('\r')],
    ['comments', comments],
    ['event lines', fields],
    ['a byte order mark', bom],
    ['one byte a packet', sliced],
    ['a connection that ends without the end of the body', unterminated],
    ['the same, a moment later', () => pace(5, unterminated())],
  ])(proves('F-11', 'with %s'), async (_how, behaviour) => {
    const clean = await streamed(ok());
    const { status, frames, said } = await streamed(behaviour());
    expect(frames.map(withoutIdentity)).toEqual(clean.frames.map(withoutIdentity));
    expect({ status, said }).toEqual({ status: 200, said: 'You said: one two three four five six' });
    expect(frames.filter((frame) => frame === '[DONE]')).toHaveLength(1);
    expect(frames.at(-1)).toBe('[DONE]');
    expect(frames.some((frame) => frame.includes('"choices":[]'))).toBe(false);
  });
});

describe('a whole answer', () => {
  test.each<[string, () => Behaviour]>([
    ['cut by FIN', () => cut({ how: 'fin' })],
    ['cut by RST', () => cut({ how: 'reset' })],
    ['without terminator', unterminated],
    ['shorter than its length says', () => lyingLength()],
    ['of malformed JSON', malformed],
    ['of HTML', html],
    ['of nothing', empty],
    ['of null', jsonNull],
    ['of an array', array],
    ['that is an error', () => errorEvent({ status: 500 })],
    ['204', noContent],
    ['304', notModified],
    ['a redirect', () => redirect('http://169.254.169.254/latest/meta-data')],
    ['behind a thousand 1xx', () => informational(...Array<number>(1000).fill(100))],
    ['encoded twice', () => encoded('gzip', 'br')],
    ['encoded a thousand times', () => encodedTimes(20)],
    ['a bomb', () => gzipBomb(2000)],
    ['with headers without end', () => giantHeaders()],
    ['without end', endless],
  ])(proves(['F-08', 'F-09', 'F-10', 'F-19', 'F-17', 'F-23', 'F-16'], '%s is a 502 that shows nothing of it'), async (_how, behaviour) => {
    const { status, text, refusal: body } = await whole(behaviour());
    expect(status).toBe(502);
    expect(body().error).toMatchObject({ type: 'server_error', code: 'upstream_error' });
    expect(text).not.toContain(secretWord);
    expect(text).not.toContain('127.0.0.1');
  });

  test.each<[string, () => Behaviour]>([
    ['gzip', () => encoded('gzip')],
    ['br', () => encoded('br')],
    ['deflate', () => encoded('deflate')],
    ['zstd', () => encoded('zstd')],
    ['1xx before it', () => informational(103)],
    ['a 100 that nobody asked for', () => informational(100)],
    ['several 1xx of every kind', () => informational(103, 100, 100, 102, 100)],
    ['no content type', () => contentType('')],
    ['the status 201', () => withStatus(201)],
    ['the status 299', () => withStatus(299)],
    ['a byte order mark', () => says(/./, 'application/json', `\uFEFF${JSON.stringify({ id: 'c', choices: [choice] })}`)],
  ])(proves(['F-17', 'F-19'], 'with %s is read'), async (_how, behaviour) => {
    const { status, text } = await whole(behaviour());
    expect(status).toBe(200);
    expect(text).toContain('one two three');
  });

  test('that refuses the request is told in our sentence and the first of its own, masked, and so it stands in the log of its tries', async () => {
    const { status, headers, refusal } = await whole(
      badRequest({ message: "Unsupported value: 'temperature' does not support 0.2 with org-abc123. Only 1 is supported" }),
    );
    const said = "Unsupported value: 'temperature' does not support 0.2 with […].";
    expect(status).toBe(400);
    expect(refusal().error.message).toBe(`The provider fake did not accept temperature, which the gateway added (400, invalid_value). It says: ${said}`);
    const row = await loggedAs(server, headers.get('x-request-id')!);
    expect(row).toMatchObject({ tries: [{ fault: 'invalid', said }] });
  });

  test('that has no content says so with its status', async () => {
    const { refusal } = await whole(noContent());
    expect(refusal().error.message).toBe('The provider fake answered without content (204).');
  });

  test(proves('F-23', 'its headers stay with the provider, but for those we know'), async () => {
    const { headers } = await whole(leakyHeaders());
    expect(JSON.stringify([...headers])).not.toContain(secretWord);
    for (const name of ['set-cookie', 'server', 'via', 'x-powered-by', 'alt-svc', 'access-control-allow-origin', 'strict-transport-security'])
      expect(headers.get(name)).toBeNull();
    expect(headers.get('x-request-id')).toMatch(/^req_\w{22}$/);
  });

  test('a character that is cut in half is replaced, not passed on', async () => {
    const { status, text } = await whole(truncatedUtf8());
    expect(status).toBe(200);
    expect(Buffer.from(text).toString('utf8')).toBe(text);
    expect(text).toContain('Grüße');
    expect(text).not.toContain('🐉');
  });

  test(proves('F-16', '100,000 choices and lines without end do not stop the others'), async () => {
    for (const [giant, stream] of [
      [manyChoices(), false],
      [longLine(), true],
    ] as const) {
      upstream.script(giant);
      const first = server.ask(chat, { ...request, stream });
      const others = await Promise.all(Array.from({ length: 5 }, () => server.ask(chat, request)));
      expect(others.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
      const answer = await first;
      await answer.arrayBuffer();
      if (stream) expect(answer.status).toBe(502);
    }
  });
});

describe('a refusal of the provider', () => {
  test.each<[string, () => Behaviour, number, string]>([
    ['400 is the caller’s', () => refusal(400), 400, 'invalid_request_error'],
    ['422 is the caller’s', () => refusal(422), 400, 'invalid_request_error'],
    ['401 is ours', () => refusal(401), 502, 'server_error'],
    ['402 is ours', () => refusal(402), 502, 'server_error'],
    ['403 is ours', () => refusal(403), 502, 'server_error'],
    ['404 of the address is ours', () => notFound('address'), 502, 'server_error'],
    ['500 is told in its class', () => failing(500), 502, 'server_error'],
    ['503 is told in its class', () => failing(503), 503, 'server_error'],
    ['529 is told in its class', () => failing(529), 503, 'server_error'],
  ])(proves('F-14', '%s, asked once'), async (_what, behaviour, status, type) => {
    const answer = await whole(behaviour());
    expect(answer.status).toBe(status);
    expect(answer.refusal().error.type).toBe(type);
    expect(answer.text).not.toContain(secretWord);
    expect(answer.text).not.toContain(providerKey);
    expect(upstream.requests).toHaveLength(1);
  });

  test('404 of the model is a missing model', async () => {
    upstream.script(notFound('model'));
    const answer = await server.ask(chat, { ...request, model: 'gone' });
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ error: { code: 'model_not_found' } });
  });

  test(
    proves('R-03', '404 of a file that one request names is that request’s, whatever the name of the file says, and the model is there for the next'),
    async () => {
      for (const message of ['No such File object: file-nothing', "No such File object: the model 'gpt-x' does not exist"]) {
        const before = upstream.requests.length;
        const answer = await whole(refusal(404, { message }));
        expect([answer.status, answer.refusal().error.code]).toEqual([404, 'not_found']);
        expect(upstream.requests.length - before).toBe(1);
        expect((await server.ask(chat, request)).status).toBe(200);
      }
    },
  );

  test('404 of the model, told to one caller, keeps no other from asking for it', async () => {
    upstream.script(notFound('model'));
    expect((await server.ask(chat, request)).status).toBe(404);
    expect((await server.ask(chat, request)).status).toBe(200);
  });

  test.each<[string, () => Behaviour, RegExp]>([
    ['seconds', () => tooMany({ retryAfter: 7 }), /^7$/],
    ['a date', () => tooMany({ retryAfter: new Date(Date.now() + 20_000) }), /^(19|20|21)$/],
    ['milliseconds', () => tooMany({ retryAfterMs: 2500 }), /^3$/],
    ['nothing', () => tooMany(), /^1$/],
    ['zero', () => tooMany({ retryAfter: 0 }), /^1$/],
    ['a negative number', () => tooMany({ retryAfter: -1 }), /^1$/],
    ['garbage', () => tooMany({ retryAfter: 'abc' }), /^1$/],
  ])(proves('F-13', '429 with Retry-After of %s is passed on with a sane one'), async (_what, behaviour, expected) => {
    const answer = await whole(behaviour());
    expect(answer.status).toBe(429);
    expect(answer.headers.get('retry-after')).toMatch(expected);
    expect(answer.refusal().error.code).toBe('rate_limit_exceeded');
  });
});

describe('a connection', () => {
  test(proves('F-01', 'that nobody takes is a 503 at once, without the address'), async () => {
    const closed = await nobody();
    const other = await startTestServer({ upstream: closed.url });
    const answer = await other.ask(chat, request, { signal: AbortSignal.timeout(15_000) });
    expect(answer.status).toBe(503);
    expect(await answer.text()).not.toMatch(/127\.0\.0\.1|localhost|ECONN/);
    await other.close();
  });

  test(proves('F-02', 'to a name that does not exist is a 503 within the connect timeout, without the name'), async () => {
    const other = await startTestServer({ upstream: 'http://no-such-host.invalid' });
    const answer = await other.ask(chat, request, { signal: AbortSignal.timeout(30_000) });
    expect(answer.status).toBe(503);
    expect(await answer.text()).not.toMatch(/no-such-host|ENOTFOUND|EAI_AGAIN/);
    await other.close();
  });

  test(proves('F-04', 'that stays silent is a 504'), async () => {
    expect((await whole(hang())).status).toBe(504);
    await upstream.until((requests) => requests[0]?.closedEarlyAt);
  });

  test('that drops before a byte is a 503', async () => {
    expect((await whole(drop())).status).toBe(503);
    expect(upstream.requests).toHaveLength(1);
  });

  test(proves('F-21', 'that was kept alive and is closed as we write costs nobody an error'), async () => {
    for (let round = 0; round < 20; round++) {
      await whole(ok());
      upstream.script(dropReused(round % 2 ? 'fin' : 'reset'));
      expect((await server.ask(chat, request)).status).toBe(200);
      upstream.reset();
    }
    upstream.script(times(50, closesIdle(1)));
    for (let round = 0; round < 50; round++) expect((await server.ask(chat, request)).status).toBe(200);
  });

  test(proves('F-21', 'that was kept alive costs nobody an error either where all others are closed, too'), async () => {
    const statuses = async (count: number) => (await Promise.all(Array.from({ length: count }, () => server.ask(chat, request)))).map(({ status }) => status);
    for (let round = 0; round < 10; round++) {
      upstream.script(times(16, pace(5)));
      expect(await statuses(16)).toEqual(Array(16).fill(200));
      upstream.script(times(40, dropReused()));
      expect(await statuses(8)).toEqual(Array(8).fill(200));
      upstream.reset();
    }
  });

  test.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 9\r\n\r\n{}'],
    ['a length and chunks', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n'],
  ])('with %s, which is not HTTP, is a 502 that says so', async (_name, answer) => {
    const { status, refusal } = await whole(bytes(answer));
    expect([status, refusal().error.message]).toEqual([502, 'The answer of the provider fake is not valid HTTP.']);
  });
});
