import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startUpstream, type Upstream } from '../support/fakes/upstream/index.ts';
import { openSite, outsideOf, png, publicAddress, sendPng, type Site } from '../support/fakes/web.ts';
import { chat, startTestServer, type TestServer } from '../support/server.ts';
import { proves } from '../support/proves.ts';

/** Addresses that clients choose: images by address, for providers that are given the content. Everything goes through the public interface. */

let upstream: Upstream;
/** Lies inside, where nobody may be led. */
let canary: Site;
/** Same port as the canary, so that one name can lead to either. */
let evil: Site;
let server: TestServer;
let names: Record<string, () => readonly string[]>;
let outside: ReturnType<typeof outsideOf>;

beforeAll(async () => {
  upstream = await startUpstream();
  canary = await openSite('127.0.0.1');
  evil = await openSite('127.0.0.2', canary.port);
  outside = outsideOf((host) => names[host]?.() ?? [publicAddress], '127.0.0.2');
  server = await startTestServer({
    outside,
    yaml: `
providers:
  gemini: { dialect: gemini, baseUrl: "${upstream.url}/v1beta", apiKeys: [k] }
  claude: { dialect: anthropic-messages, baseUrl: "${upstream.url}", apiKeys: [k] }
  local: { dialect: openai-chat, baseUrl: "${upstream.url}/v1", mediaUrls: fetched }
  items: { dialect: openai-responses, baseUrl: "${upstream.url}/v1", mediaUrls: fetched }
  open: { dialect: openai-chat, baseUrl: "${upstream.url}/v1" }
models:
  gem: { targets: [{ provider: gemini }] }
  claude-x: { targets: [{ provider: claude }] }
  llava: { targets: [{ provider: local }] }
  gpt: { targets: [{ provider: open }] }
  screens: { targets: [{ provider: items }] }
  either: { targets: [{ provider: local }, { provider: open }] }
`,
  });
});
afterAll(async () => {
  await server.close();
  await Promise.all([upstream, canary, evil].map((one) => one.close()));
});
afterEach(() => {
  names = {};
  upstream.reset();
  canary.reset();
  evil.reset();
  outside.asked.length = outside.dialled.length = 0;
});
names = {};

const image = (url: string) => ({ type: 'image_url', image_url: { url } });
const seen = (model: string, ...urls: readonly string[]) => ({
  model,
  messages: [{ role: 'user', content: [{ type: 'text', text: 'what is it' }, ...urls.map(image)] }],
});

async function look(url: string, model = 'gem') {
  const answer = await server.ask(chat, seen(model, url));
  const { error } = (await answer.json()) as { error?: { message: string } };
  return { status: answer.status, message: error?.message };
}

/** What every refusal says, whatever the reason. */
const uniform = (url: string) =>
  `messages[0].content[1]: the image at ${url.slice(0, 200)} cannot be fetched, or has another media type. Send its content as base64.`;
const at = (host: string, path = '/x.png') => `http://${host}:${canary.port}${path}`;

describe('image URLs', () => {
  test('a provider of the content generation API receives the content of an image URL', async () => {
    expect((await look(at('pictures.example'))).status).toBe(200);
    expect(JSON.stringify(upstream.requests[0]!.json)).toContain(JSON.stringify({ inlineData: { mimeType: 'image/png', data: png.toString('base64') } }));
    expect(evil.requests[0]!.headers).toMatchObject({ host: `pictures.example:${canary.port}`, 'accept-encoding': 'identity' });
    for (const name of ['authorization', 'cookie', 'x-goog-api-key']) expect(evil.requests[0]!.headers[name]).toBeUndefined();
  });

  test('a provider that is configured to accept no URLs receives the content, even in the same dialect', async () => {
    expect((await look(at('pictures.example'), 'llava')).status).toBe(200);
    expect(JSON.stringify(upstream.requests[0]!.json)).toContain(`data:image/png;base64,${png.toString('base64')}`);
  });

  test.each(['gpt', 'claude-x'])('a provider that opens URLs receives the URL (%s)', async (model) => {
    expect((await look(at('pictures.example'), model)).status).toBe(200);
    expect(JSON.stringify(upstream.requests[0]!.json)).toContain(at('pictures.example'));
    expect(evil.hits).toBe(0);
  });

  test('a provider that is configured to accept no URLs is sent none, in whatever part of the dialect', async () => {
    const body = (model: string, part: object) => ({ model, messages: [{ role: 'user', content: [{ type: 'text', text: 'what is it' }, part] }] });
    const part = (type: string, inner: object | string) => ({ type, [type]: inner });
    for (const url of [at('127.0.0.1'), at('pictures.example'), 'file:///etc/passwd', 's3://bucket/a.mp4'])
      for (const one of [part('video_url', { url }), part('document_url', url), part('audio_url', { inner: { url } }), part('video', [url])]) {
        const answer = await server.ask(chat, body('llava', one));
        expect([one, answer.status, await answer.json()]).toMatchObject([one, 400, { error: { message: expect.stringContaining(one.type) as string } }]);
      }
    for (const url of [`${at('127.0.0.1')}#a b`, at('127.0.0\n.1'), at('a b@127.0.0.1'), 'file:///etc/a b', ' http:/127.0.0.1/a b'])
      expect([url, (await server.ask(chat, body('llava', part('video_url', { url })))).status]).toEqual([url, 400]);
    const asText = await server.ask(chat, body('llava', part('image_url', at('127.0.0.1'))));
    expect([asText.status, upstream.requests.length, canary.hits, evil.hits]).toEqual([400, 0, 0, 0]);
    for (const [model, one] of [
      ['llava', part('video_url', { url: 'data:video/mp4;base64,AAAA' })],
      ['llava', { type: 'thinking', thinking: [{ type: 'text', text: 'https://pictures.example/' }] }],
      ['llava', part('remark', 'https://pictures.example says: a cat')],
      ['either', part('video_url', { url: at('pictures.example') })],
      ['gpt', part('video_url', { url: at('pictures.example') })],
    ] as const) {
      expect((await server.ask(chat, body(model, one))).status).toBe(200);
      expect(JSON.stringify(upstream.requests.at(-1)!.json)).toContain(JSON.stringify(one));
    }
  });

  test.each<readonly [string, (data: string) => object]>([
    [chat, (data) => ({ messages: [{ role: 'user', content: [{ type: 'file', file: { file_data: data } }] }] })],
    [chat, (data) => ({ messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data, format: 'wav' } }] }] })],
    ['/server/chatcompat/v1/responses', (data) => ({ input: [{ role: 'user', content: [{ type: 'input_file', file_data: data }] }] })],
    ['/server/chatcompat/v1/responses', (data) => ({ input: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data, format: 'wav' } }] }] })],
    [
      '/server/messages/v1/messages',
      (data) => ({
        max_tokens: 10,
        messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data } }] }],
      }),
    ],
    ['/server/gencompat/v1beta/models/llava:generateContent', (data) => ({ contents: [{ parts: [{ inlineData: { mimeType: 'audio/wav', data } }] }] })],
  ])('an address in the place of base64 is not passed on (%s)', async (path, body) => {
    for (const data of [at('127.0.0.1'), ` ${at('127.0.0.1')}`, 'file:///etc/passwd', 's3://bucket/a.pdf']) {
      const { status } = await server.ask(path, { ...(path.includes('gencompat') ? {} : { model: 'llava' }), ...body(data) });
      expect([data, status]).toEqual([data, 400]);
    }
    expect([upstream.requests.length, canary.hits]).toEqual([0, 0]);
    const { status } = await server.ask(path, { ...(path.includes('gencompat') ? {} : { model: 'llava' }), ...body('AAAA') });
    expect(status).toBe(200);
  });

  test('a provider of the Responses API that accepts no URLs is sent none in items either', async () => {
    const output = (image_url: string) => ({
      model: 'screens',
      input: [
        { type: 'computer_call', id: 'cu_1', call_id: 'c', status: 'completed', pending_safety_checks: [], action: { type: 'screenshot' } },
        { type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', image_url } },
      ],
    });
    const path = '/server/chatcompat/v1/responses';
    const answer = await server.ask(path, output('http://169.254.169.254/latest'));
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('computer_call_output')]);
    expect(upstream.requests).toHaveLength(0);
    expect((await server.ask(path, output('data:image/png;base64,AAAA'))).status).toBe(200);
    expect(JSON.stringify(upstream.requests[0]!.json)).toContain('data:image/png;base64,AAAA');
  });

  test('what the model said before may begin with an address: nothing opens it', async () => {
    const thought = { type: 'thinking', thinking: 'https://pictures.example/ is a site' };
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [thought, { type: 'text', text: 'yes' }] },
      { role: 'user', content: 'and?' },
    ];
    expect((await server.ask(chat, { model: 'llava', messages })).status).toBe(200);
    expect(JSON.stringify(upstream.requests[0]!.json)).toContain(JSON.stringify(thought));
  });

  test.each([
    [chat, 'messages[0].content[0].image_url.url', (url: string) => ({ messages: [{ role: 'user', content: [image(url)] }] })],
    [chat, 'messages[0].content[0].image_url', (url: string) => ({ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: url }] }] })],
    [
      '/server/chatcompat/v1/responses',
      'input[0].content[0].file_url',
      (url: string) => ({ input: [{ role: 'user', content: [{ type: 'input_file', file_url: url }] }] }),
    ],
    [
      '/server/messages/v1/messages',
      'messages[0].content[0].source.url',
      (url: string) => ({ max_tokens: 10, messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url } }] }] }),
    ],
    [
      '/server/messages/v1/messages',
      'messages[0].content[0].source.url',
      (url: string) => ({ max_tokens: 10, messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'url', url } }] }] }),
    ],
    [
      '/server/gencompat/v1beta/models/gpt:generateContent',
      'contents[0].parts[0].fileData.fileUri',
      (url: string) => ({ contents: [{ parts: [{ fileData: { mimeType: 'image/png', fileUri: url } }] }] }),
    ],
  ])('a provider is asked to open no file of its own (%s, %s)', async (path, field, body) => {
    for (const url of ['file:///etc/passwd', 'FILE:/etc/passwd', '/etc/passwd', 'ftp://pictures.example/x.png', 'javascript:alert(1)']) {
      const answer = await server.ask(path, { ...(path.includes('gencompat') ? {} : { model: 'gpt' }), ...body(url) });
      const refusal = JSON.stringify(await answer.json());
      expect([url, answer.status, refusal]).toEqual([url, 400, expect.stringContaining(`${field} must `)]);
    }
    expect(upstream.requests).toHaveLength(0);
  });

  test('an image in a tool result, and one that occurs twice, is fetched once', async () => {
    const url = at('pictures.example');
    const body = {
      model: 'gem',
      max_tokens: 10,
      messages: [
        { role: 'user', content: [{ type: 'image', source: { type: 'url', url } }] },
        { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'look', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'image', source: { type: 'url', url } }] }] },
      ],
    };
    expect((await server.ask('/server/messages/v1/messages', body)).status).toBe(200);
    expect(JSON.stringify(upstream.requests[0]!.json).split(png.toString('base64'))).toHaveLength(3);
    expect(evil.requests).toHaveLength(1);
  });

  test("the provider's own files, and videos that it can open, are not fetched", async () => {
    const own = `${upstream.url}/v1beta/files/abc`;
    const contents = [{ role: 'user', parts: [own, 'https://youtu.be/x'].map((fileUri) => ({ fileData: { fileUri } })) }];
    expect((await server.ask('/server/gencompat/v1beta/models/gem:generateContent', { contents })).status).toBe(200);
    expect(upstream.requests).toHaveLength(1);
    for (const url of [own, 'https://youtu.be/x']) expect(JSON.stringify(upstream.requests[0]!.json)).toContain(`"fileUri":"${url}"`);
  });

  test('more than 64 URLs are refused before any is fetched', async () => {
    const urls = Array.from({ length: 65 }, (_, number) => at('pictures.example', `/${number}.png`));
    expect((await server.ask(chat, seen('gem', ...urls))).status).toBe(400);
    expect(evil.hits).toBe(0);
  });
});

describe('internal addresses', () => {
  const spellings = [
    '127.0.0.1', '127.1', '127.0.1', '127.000.000.001', '0177.0.0.1', '0177.0.0.01', '0x7f.0.0.1', '0x7f.1', '0x7f000001', '2130706433', '017700000001',
    '127.0.0.1.', '127.1.', '0', '0.0.0.0', '0x0', '00000000', 'localhost', 'LOCALHOST', 'localhost.', 'x.localhost', '127.255.255.254', '127.0.0.2',
    '１２７.０.０.１', '127。0。0。1', '127．0．0．1', '①②⑦.⓪.⓪.①', '%31%32%37.0.0.1', '127.0.0.%31', '[::1]', '[0:0:0:0:0:0:0:1]', '[0000::0001]', '[::]',
    '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::ffff:0:127.0.0.1]', '[::127.0.0.1]', '[::7f00:1]', '[64:ff9b::127.0.0.1]', '[64:ff9b:1::7f00:1]',
    '[2002:7f00:1::]', '[2001:0:7f00:1::]', '[fe80::1]', '[fe80::1%25lo]', '[fc00::1]', '[fd00:ec2::254]', '[ff02::1]', '10.0.0.1', '172.16.0.1',
    '192.168.0.1', '100.64.0.1', '169.254.169.254', '198.18.0.1', '224.0.0.1', '255.255.255.255', '240.0.0.1', 'user@127.0.0.1', 'user:word@pictures.example',
    '127.0.0.1\t', '127.0\n.0.1', ' 127.0.0.1',
  ]; // prettier-ignore

  test(proves(['N-02', 'N-03'], 'no spelling of an internal address is reached, and all are refused with the same message'), async () => {
    names = { localhost: () => ['127.0.0.1'], 'localhost.': () => ['127.0.0.1'], 'x.localhost': () => ['::1', '127.0.0.1'] };
    expect(spellings.length).toBeGreaterThanOrEqual(48);
    for (const spelling of spellings) {
      const url = at(spelling);
      const { status, message } = await look(url);
      expect([spelling, status, message]).toEqual([spelling, 400, uniform(url)]);
    }
    expect([canary.hits, evil.hits]).toEqual([0, 0]);
    expect(outside.dialled).toEqual([]);
    expect(upstream.requests).toHaveLength(0);
  });

  test(proves('N-06', 'the checked address is the dialled one, however it is written'), async () => {
    const { port } = canary;
    const tricks = [
      `http://a@127.0.0.1:${port}@pictures.example/`, `http://127.0.0.1:${port}\\@pictures.example/`, `http:///127.0.0.1:${port}/`, `http:127.0.0.1:${port}/`,
      `http:/127.0.0.1:${port}/`, `http://pictures.example#@127.0.0.1:${port}/`, `http://pictures.example:${port}#@127.0.0.1/`, `http:\\\\127.0.0.1:${port}/`,
      `http://pictures.example?@127.0.0.1:${port}/`, `HTTP://127.0.0.1:${port}/`, `http://127.0.0.1:${port}:80/`, `http://[::1]:${port}`, 'https://', 'http://',
      `http://127.0.0.1%00.pictures.example:${port}/`, `http://127.0.0.1%2f@pictures.example:${port}/`, `http://pictures.example:${port}@127.0.0.1:${port}/`,
    ]; // prettier-ignore
    for (const url of tricks) {
      const { status } = await look(url);
      expect([url, [200, 400].includes(status)]).toEqual([url, true]);
    }
    expect(canary.hits).toBe(0);
    for (const request of evil.requests) expect(request.headers.host).toBe(`pictures.example:${port}`);
  });

  test(proves('N-09', 'own and metadata addresses are refused, and an exception applies to one host'), async () => {
    const own = new URL(server.url);
    const refused = [
      `${server.url}/metrics`, `http://127.0.0.1:${own.port}/healthz`, `http://169.254.169.254/latest/meta-data/`, 'http://168.63.129.16/', 'http://100.100.100.200/',
      'http://[fd00:ec2::254]/', 'http://metadata.example/', 'http://127.0.0.1:5432/', 'http://127.0.0.1:6379/',
    ]; // prettier-ignore
    names = { 'metadata.example': () => ['169.254.169.254'] };
    for (const url of refused) expect(await look(url)).toEqual({ status: 400, message: uniform(url) });
    expect(outside.dialled).toEqual([]);
    expect(upstream.requests).toHaveLength(0);
    for (const origin of ['http://*:80', 'http://*', '*', 'http://127.0.0.*:80'])
      await expect(startTestServer({ yaml: `outbound: { allow: ["${origin}"] }\n` })).rejects.toThrow(/outbound\.allow/);
  });

  test('an exception applies only to its scheme, host and port, and never if a name leads to metadata', async () => {
    const excepted = await startTestServer({
      outside,
      yaml: `
outbound: { allow: ["http://127.0.0.1:${canary.port}", "http://inner.example:${canary.port}"] }
providers:
  gemini: { dialect: gemini, baseUrl: "${upstream.url}/v1beta", apiKeys: [k] }
models:
  gem: { targets: [{ provider: gemini }] }
`,
    });
    const status = async (url: string) => (await excepted.ask(chat, seen('gem', url))).status;
    names = { 'inner.example': () => ['127.0.0.1'], 'other.example': () => ['127.0.0.1'] };
    try {
      expect(await status(at('127.0.0.1'))).toBe(200);
      expect(await status(at('inner.example'))).toBe(200);
      expect(canary.hits).toBe(2);
      names['inner.example'] = () => ['169.254.169.254'];
      for (const url of [at('other.example'), at('inner.example'), at('127.0.0.2'), `https://127.0.0.1:${canary.port}/`, `${server.url}/x`])
        expect([url, await status(url)]).toEqual([url, 400]);
      expect([canary.hits, evil.hits]).toEqual([2, 0]);
    } finally {
      await excepted.close();
    }
  }, 120_000);

  test(
    proves('N-05', 'a name is resolved once, and the result is dialled: rebinding a thousand times leads nowhere'),
    async () => {
      let turn = 0;
      names = { 'rebind.example': () => (turn++ % 2 === 0 ? [publicAddress] : ['127.0.0.1']) };
      const asked: Promise<{ status: number }>[] = [];
      for (let round = 0; round < 1000; round++) {
        asked.push(look(at('rebind.example', `/${round}.png`)));
        if (asked.length % 20 === 0) await Promise.all(asked);
      }
      const statuses = (await Promise.all(asked)).map(({ status }) => status);
      expect(statuses.filter((status) => status === 200)).toHaveLength(500);
      expect(outside.asked).toHaveLength(1000);
      expect(canary.hits).toBe(0);
      const { host } = evil.requests[0]!.headers;
      expect(host).toBe(`rebind.example:${canary.port}`);
    },
    120_000,
  );

  test('a name of dozens of addresses is fetched, and one of thousands is not: each of them would be checked', async () => {
    const many = (count: number) => [publicAddress, ...Array.from({ length: count - 1 }, (_, at) => `8.8.${at >> 8}.${at & 255}`)];
    names = { 'dozens.example': () => many(64), 'thousands.example': () => many(4000) };
    expect((await look(at('dozens.example'))).status).toBe(200);
    const url = at('thousands.example');
    expect(await look(url)).toEqual({ status: 400, message: uniform(url) });
    expect(evil.hits).toBe(1);
  });

  test.each([
    ['one of them is inside', [publicAddress, '127.0.0.1']],
    ['the other kind is inside', [publicAddress, '::1']],
    ['it is IPv4 in disguise', ['64:ff9b::7f00:1']],
    ['it is mapped', ['::ffff:127.0.0.1']],
    ['there are none', []],
    ['it is none', ['not an address']],
  ])(proves('N-05', 'a name of which %s is refused'), async (_why, addresses) => {
    names = { 'mixed.example': () => addresses };
    expect(await look(at('mixed.example'))).toEqual({ status: 400, message: uniform(at('mixed.example')) });
    expect([canary.hits, evil.hits]).toEqual([0, 0]);
  });
});

describe('redirects', () => {
  const inside = () => [
    at('127.0.0.1'), at('[::ffff:127.0.0.1]'), at('2130706433'), at('inner.example'), 'http://169.254.169.254/', upstream.url, `${server.url}/healthz`, 'file:///etc/passwd',
    'gopher://127.0.0.1:6379/', 'data:image/png;base64,AAAA', 'ftp://pictures.example/', `//127.0.0.1:${canary.port}/`, `http://user@pictures.example:${canary.port}/`, '', 'http://',
  ]; // prettier-ignore

  test.each([301, 302, 303, 307, 308])(proves('N-04', 'a %d to an internal address is refused at that hop'), async (status) => {
    names = { 'inner.example': () => ['127.0.0.1'] };
    for (const location of inside()) {
      evil.answer((request, response) => {
        if (request.url === '/x.png') response.writeHead(status, { location }).end();
        else sendPng(request, response);
      });
      expect([location, await look(at('pictures.example'))]).toEqual([location, { status: 400, message: uniform(at('pictures.example')) }]);
    }
    expect(canary.hits).toBe(0);
    expect(upstream.requests).toHaveLength(0);
  });

  test(proves('N-04', 'a short chain is followed, a long one and a loop are not'), async () => {
    evil.answer((request, response) => {
      const left = Number(/\d+/.exec(request.url!)?.[0]);
      if (left === 0) sendPng(request, response);
      else response.writeHead(302, { location: `/${left - 1}.png`, 'set-cookie': 'a=b' }).end();
    });
    expect((await look(at('pictures.example', '/5.png'))).status).toBe(200);
    expect(evil.requests.every(({ headers }) => headers.cookie === undefined)).toBe(true);
    evil.reset();
    evil.answer((_request, response) => void response.writeHead(302, { location: '/again' }).end());
    expect((await look(at('pictures.example', '/20.png'))).status).toBe(400);
    expect(evil.requests).toHaveLength(6);
  });
});

describe('responses', () => {
  const mebibyte = Buffer.alloc(1_048_576, 'a');

  test.each<[string, Parameters<Site['answer']>[0]]>([
    ['says that it is too large', (_, response) => void response.writeHead(200, { 'content-type': 'image/png', 'content-length': 10 ** 10 }).end()],
    [
      'never ends',
      (_, response) => {
        response.writeHead(200, { 'content-type': 'image/png' });
        const more = () => {
          while (!response.destroyed && response.write(mebibyte));
        };
        response.on('drain', more);
        more();
      },
    ],
    [
      'is a bomb',
      (_, response) => void response.writeHead(200, { 'content-type': 'image/png', 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(200_000_000))),
    ],
    ['is of another type', (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end(png)],
    ['is no image', (_, response) => void response.writeHead(200, { 'content-type': 'image/png' }).end('<svg/>')],
    ['is empty', (_, response) => void response.writeHead(200, { 'content-type': 'image/png' }).end()],
    ['is not there', (_, response) => void response.writeHead(404, { 'content-type': 'image/png' }).end(png)],
    ['is a secret', (_, response) => void response.writeHead(401, { 'www-authenticate': 'Basic' }).end()],
    ['is cut', (_, response) => void response.writeHead(200, { 'content-type': 'image/png', 'content-length': 5000 }).write(png, () => response.destroy())],
    ['is no HTTP', (request) => void request.socket.end('SSH-2.0-OpenSSH\r\n')],
  ])(proves('N-08', 'an answer that %s is rejected'), async (_name, how) => {
    evil.answer(how);
    expect(await look(at('pictures.example'))).toEqual({ status: 400, message: uniform(at('pictures.example')) });
    expect(upstream.requests).toHaveLength(0);
  });

  test(
    proves('N-08', 'a host that sends a byte per second is dropped after ten seconds, and one user has at most four fetches at a time'),
    async () => {
      let open = 0;
      let most = 0;
      evil.answer((_, response) => {
        most = Math.max(most, ++open);
        response.writeHead(200, { 'content-type': 'image/png' });
        const timer = setInterval(() => response.write('a'), 1000);
        response.on('close', () => {
          open--;
          clearInterval(timer);
        });
      });
      const began = performance.now();
      const asked = await Promise.all(Array.from({ length: 100 }, (_, number) => look(at('pictures.example', `/${number}.png`))));
      expect(asked.filter(({ status }) => status === 400)).toHaveLength(68); // 4 that are asked, and 64 that wait
      expect(asked.filter(({ status }) => status === 429)).toHaveLength(32);
      expect(most).toBe(4);
      expect(performance.now() - began).toBeLessThan(20_000);
      evil.reset();
      expect((await look(at('pictures.example'))).status).toBe(200);
    },
    120_000,
  );
});
