import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { always, cut, failing, ok, says, sliced, startUpstream, type Behaviour, type Upstream } from '../../support/fakes/upstream/index.ts';
import { cpuMillisecondsUntil } from '../../support/cpu-time.ts';
import { startTestServer, providerKey, type TestServer } from '../../support/server.ts';
import { loggedAs } from '../../support/members.ts';

const root = '/server/chatcompat/v1';
let server: TestServer;
let offline: TestServer;
let upstream: Upstream;
let client: OpenAI;

beforeAll(async () => {
  upstream = await startUpstream();
  const more = ['voice', 'whisper-1', 'omni-moderation-latest', 'gpt-image-1'].map(
    (name) => `  ${name}: { targets: [{ provider: fake, model: up-${name} }] }\n`,
  );
  const tried = Object.entries({ one: '[{ provider: fake, model: first }]', two: '[{ provider: fake, model: first }, { provider: fake, model: second }]' }).map(
    ([name, targets]) => `  ${name}: { targets: ${targets} }\n  spoken-${name}: { kind: speech, targets: ${targets} }\n`,
  );
  server = await startTestServer({ upstream: upstream.url, yaml: `${more.join('')}${tried.join('')}routing: { cooldownSeconds: 0 }\n` });
  offline = await startTestServer();
  client = new OpenAI({ apiKey: server.key, baseURL: server.url + root, maxRetries: 0 });
});
beforeEach(() => upstream.reset());
afterAll(async () => {
  await server.close();
  await offline.close();
  await upstream.close();
});

describe('what passes to the provider', () => {
  test('speech: the bytes of the sound come back under their type', async () => {
    const sound = Buffer.from(Array.from({ length: 100_000 }, (_, at) => at % 251));
    upstream.script(says(/audio\/speech/, 'audio/mpeg', sound));
    const answer = await client.audio.speech.create({ model: 'voice', input: 'hello', voice: 'alloy' });
    expect(Buffer.from(await answer.arrayBuffer()).equals(sound)).toBe(true);
    expect(answer.headers.get('content-type')).toBe('audio/mpeg');
    expect(upstream.requests[0]).toMatchObject({ path: '/v1/audio/speech', key: providerKey, json: { model: 'up-voice', input: 'hello', voice: 'alloy' } });
  });

  test('a transcription: the recording arrives whole, under the model of the provider', async () => {
    upstream.script(says(/audio\/transcriptions/, 'application/json', '{"text":"hello"}'));
    const answer = await client.audio.transcriptions.create({ model: 'whisper-1', file: await toFile(Buffer.from('RIFF\0\r\n--x'), 'a.wav'), language: 'en' });
    expect(answer.text).toBe('hello');
    const { body, headers } = upstream.requests[0]!;
    // oxlint-disable-next-line typescript/no-deprecated -- a small one, of our own
    const form = await new Response(body, { headers: { 'content-type': String(headers['content-type']) } }).formData();
    expect([form.get('model'), form.get('language')]).toEqual(['up-whisper-1', 'en']);
    expect(await (form.get('file') as File).text()).toBe('RIFF\0\r\n--x');
  });

  test('a moderation without a model goes to the usual one', async () => {
    upstream.script(says(/moderations/, 'application/json', '{"id":"m","model":"x","results":[]}'));
    await client.moderations.create({ input: ['a', 'b'] });
    expect(upstream.requests[0]?.json).toEqual({ model: 'up-omni-moderation-latest', input: ['a', 'b'] });
  });

  test('a picture, streamed as it comes', async () => {
    upstream.script(says(/images\/generations/, 'text/event-stream', 'event: a\ndata: {"x":1}\n\n'));
    const answer = await server.ask(`${root}/images/generations`, { model: 'gpt-image-1', prompt: 'a cat', stream: true });
    expect(answer.headers.get('content-type')).toBe('text/event-stream');
    expect(await answer.text()).toBe('event: a\ndata: {"x":1}\n\n');
  });

  test('a refusal of the provider is worded by us', async () => {
    upstream.script(always(failing(500)));
    const answer = await server.ask(`${root}/moderations`, { input: 'a' });
    expect(answer.status).toBe(502);
    expect(await answer.json()).toMatchObject({ error: { type: 'server_error', code: 'upstream_error' } });
  });

  test('a plan without tokens refuses each with 429, and the upstream sees nothing', async () => {
    const poor = await startTestServer({
      upstream: upstream.url,
      yaml: `  "*": { targets: [{ provider: fake }] }\nplans: { unlimited: { monthlyTokens: 0 } }\n`,
    });
    const form = new FormData();
    form.set('file', new File(['a'], 'a.wav'));
    try {
      const answers = [
        await poor.ask(`${root}/moderations`, { input: 'a' }),
        await poor.ask(`${root}/audio/speech`, { input: 'a' }),
        await poor.ask(`${root}/images/generations`, { prompt: 'a' }),
        await poor.ask(`${root}/completions`, { model: 'x', prompt: 'a' }),
        await sendForm(poor, form),
      ];
      expect(answers.map(({ status }) => status)).toEqual([429, 429, 429, 429, 429]);
      expect(upstream.requests).toEqual([]);
    } finally {
      await poor.close();
    }
  });

  test('the headers of a whole answer say what is left after it, and pictures that cannot be paid are advised about as pictures', async () => {
    const some = await startTestServer({
      upstream: upstream.url,
      yaml: `  "*": { targets: [{ provider: fake }] }\n  drawn: { targets: [{ provider: fake }], price: { picture: 0.04 } }\nplans: { unlimited: { monthlyTokens: 100000 } }\n`,
    });
    try {
      upstream.script(
        always(
          says(
            /images/,
            'application/json',
            '{"data":[{"url":"https://x.example/a"},{"url":"https://x.example/b"}],"usage":{"input_tokens":5,"output_tokens":700}}',
          ),
        ),
      );
      const said = await some.ask(`${root}/chat/completions`, { model: 'x', messages: [{ role: 'user', content: 'hello' }] });
      const { usage } = (await said.json()) as { usage: { total_tokens: number } };
      expect(said.headers.get('x-ratelimit-remaining-tokens')).toBe(String(100_000 - usage.total_tokens));
      const answer = await some.ask(`${root}/images/generations`, { model: 'drawn', prompt: 'a', n: 2 });
      await answer.text();
      const { costUsd } = await loggedAs(some, answer.headers.get('x-request-id')!);
      expect(costUsd).toBeCloseTo(0.08);
      await some.change(`  "*": { targets: [{ provider: fake }] }\nplans: { unlimited: { monthlyTokens: 1000 } }\n`);
      const refused = await some.ask(`${root}/images/generations`, { prompt: 'a', n: 2 });
      expect([refused.status, await refused.text()]).toEqual([429, expect.stringContaining('ask for fewer or smaller pictures')]);
    } finally {
      await some.close();
    }
  });

  test('what it costs is taken from the plan: as the provider told, or as the text is long', async () => {
    const some = await startTestServer({
      upstream: upstream.url,
      yaml: `  "*": { targets: [{ provider: fake }] }\nplans: { unlimited: { monthlyTokens: 100000 } }\n`,
    });
    try {
      upstream.script(
        says(
          /images/,
          'application/json',
          '{"data":[{"url":"https://x.example/a"}],"usage":{"input_tokens":5,"output_tokens":700,"input_tokens_details":{"text_tokens":5}}}',
        ),
      );
      upstream.script(always(says(/moderations/, 'application/json', '{"results":[]}')));
      const left = async (path: string, body: object) => {
        const answer = await some.ask(root + path, body);
        await answer.text();
        return Number(answer.headers.get('x-ratelimit-remaining-tokens'));
      };
      await left('/images/generations', { prompt: 'a' });
      const first = await left('/moderations', { input: ' word'.repeat(100) });
      const second = await left('/moderations', { input: ' word'.repeat(100) });
      expect(first).toBeLessThanOrEqual(100_000 - 705);
      expect(first - second).toBe(100);
    } finally {
      await some.close();
    }
  });
});

const sendForm = (to: TestServer, body: FormData | string, type?: string) =>
  fetch(`${to.url}${root}/audio/transcriptions`, {
    method: 'POST',
    body,
    headers: { authorization: `Bearer ${to.key}`, ...(type === undefined ? {} : { 'content-type': type }) },
  });

const recording = (fields: Readonly<Record<string, string>>) => {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  form.set('file', new File([Buffer.alloc(8000)], 'a.wav'));
  return form;
};

/** The operations, each with a good answer. */
const asked = {
  pictures: { ask: (model: string) => server.ask(`${root}/images/generations`, { model, prompt: 'a cat' }), good: '{"data":[{"b64_json":"aGk="}]}' },
  moderations: { ask: (model: string) => server.ask(`${root}/moderations`, { model, input: 'a' }), good: '{"results":[{"flagged":false}]}' },
  transcript: { ask: (model: string) => sendForm(server, recording({ model })), good: '{"text":""}' },
  subtitles: { ask: (model: string) => sendForm(server, recording({ model, response_format: 'vtt' })), good: '{"text":"a"}' },
  speech: { ask: (model: string) => server.ask(`${root}/audio/speech`, { model, input: 'hello there', voice: 'alloy' }), good: Buffer.from('ID3 and so on') },
  native: {
    ask: (model: string) => server.ask('/server/get-text-to-speech', { model: `spoken-${model}`, text: 'hello there' }),
    good: Buffer.from('RIFF and so on'),
  },
};
type Operation = keyof typeof asked;
const operations = Object.keys(asked) as readonly Operation[];

/** A failure of the provider: told as such, free of charge, and made good by the next target. */
async function fails(operation: Operation, behaviour: Behaviour): Promise<void> {
  const { ask, good } = asked[operation];
  upstream.script(always(behaviour));
  const failed = await ask('one');
  const told = await failed.text();
  expect([failed.status, told]).toEqual([502, expect.stringContaining(operation === 'native' ? '"status":502' : '"code":"upstream_error"')]);
  expect(await loggedAs(server, failed.headers.get('x-request-id')!)).toMatchObject({ end: 'upstream-failed', status: 502, planTokens: 0 });
  upstream.reset();
  upstream.script(behaviour, says(/./, 'application/json', good));
  const mended = await ask('two');
  expect([mended.status, await mended.text(), mended.headers.get('x-dragoman-attempts')]).toEqual([200, good.toString(), '2']);
}

describe('no answer is passed on or booked', () => {
  describe.each(operations)('%s', (operation) => {
    test.each([
      ['null', 'application/json', 'null'],
      ['half a JSON text', 'application/json', '{"a'],
      ['a list', 'application/json', '[]'],
      ['another object', 'application/json; charset=utf-8', '{"object":"chat.completion","choices":[]}'],
      ['an error', 'application/json', '{"error":{"message":"no"}}'],
      ['a page', 'text/html', '<html>'],
      ['nothing', 'application/json', ''],
    ])('%s', (_name, type, body) => fails(operation, says(/./, type, body)));

    test('less than was announced', () => fails(operation, cut({ afterBytes: 5 }, says(/./, 'application/json', asked[operation].good))));
  });

  test.each<[Operation, string]>([
    ['pictures', '{"created":1,"data":[]}'],
    ['pictures', '{"data":[{}]}'],
    ['pictures', '{"data":[{"url":""}]}'],
    ['pictures', '{"data":[{"url":"https://x.example/a"},null]}'],
    ['pictures', '{"data":[{"error":{"code":"x"}}]}'],
    ['pictures', '{"data":{"url":"https://x.example/a"}}'],
    ['moderations', '{"results":{}}'],
    ['moderations', '{"results":null}'],
    ['transcript', '{"text":null}'],
    ['transcript', '{"text":["a"]}'],
  ])('%s as %s', (operation, body) => fails(operation, says(/./, 'application/json', body)));

  test('subtitles and sounds of no bytes, and events that are none', async () => {
    await fails('subtitles', says(/./, 'text/vtt', ''));
    await fails('speech', says(/./, 'audio/mpeg', ''));
    await fails('speech', says(/./, 'text/event-stream', 'null'));
    await fails('speech', says(/./, 'text/plain', 'OK'));
    await fails('speech', says(/./, 'audio/mpeg', '{\n  "error": {"message": "no"}}'));
  });
});

test.each([
  ['rate_limit_exceeded', 'rate_limit_error', 429],
  ['overloaded', 'server_error', 503],
  ['invalid_api_key', 'authentication_error', 502],
  ['content_policy_violation', 'invalid_request_error', 400],
])('an error %s in the place of an answer has the meaning that it has as a refusal', async (code, type, status) => {
  for (const operation of ['pictures', 'moderations', 'transcript'] as const) {
    upstream.script(says(/./, 'application/json', JSON.stringify({ error: { code, type, message: 'no' } })));
    const failed = await asked[operation].ask('one');
    expect([operation, failed.status]).toEqual([operation, status]);
    expect(await loggedAs(server, failed.headers.get('x-request-id')!)).toMatchObject({ end: 'upstream-failed', status, planTokens: 0 });
  }
});

describe('vendors differ:', () => {
  test('a list of pictures may have failed ones among the others, and megabytes in one text', async () => {
    for (const body of [
      '{"data":[{"error":{"code":"x"}},{"url":"https://x.example/a"}]}',
      `{"data":[{"revised_prompt":"${'a\\n'.repeat(1000)}","url":null,"b64_json":"${'A'.repeat(6_000_000)}"}]}`,
    ]) {
      upstream.script(says(/images/, 'application/json', body));
      expect(await (await asked.pictures.ask('gpt-image-1')).text()).toBe(body);
    }
  });

  test('subtitles may come in JSON, and a stream that was asked for as a whole', async () => {
    upstream.script(says(/transcriptions/, 'text/plain', 'hello\n'), says(/transcriptions/, 'application/json', '{"text":"hello"}'));
    expect(await (await asked.subtitles.ask('whisper-1')).text()).toBe('hello\n');
    expect(await (await sendForm(server, recording({ model: 'whisper-1', stream: 'true' }))).text()).toBe('{"text":"hello"}');
  });

  test('a sound may be called JSON or nothing at all, and its first bytes may come one by one', async () => {
    upstream.script(says(/speech/, 'application/json', Buffer.from('\u00ff\u00fb and so on', 'latin1')), sliced(says(/speech/, '', 'pcm')));
    expect((await (await asked.speech.ask('voice')).arrayBuffer()).byteLength).toBe(12);
    expect(await (await asked.speech.ask('voice')).text()).toBe('pcm');
  });
});

test('a sound that breaks off costs the part of it that came, as far as its length was announced', async () => {
  const sound = Buffer.alloc(10_000, 'x');
  upstream.script(cut({ afterBytes: 2500 }, says(/speech/, 'audio/mpeg', sound)));
  const answer = await server.ask(`${root}/audio/speech`, { model: 'voice', input: 'x'.repeat(1500), voice: 'alloy' });
  await expect(answer.arrayBuffer()).rejects.toThrow();
  const row = await loggedAs(server, answer.headers.get('x-request-id')!);
  expect(row).toMatchObject({ end: 'upstream-cut', status: 502, outputTokens: 500 }); // 375 characters of 15 a second, 20 tokens each
});

describe('refused', () => {
  test.each([
    ['/moderations', { input: '' }, 'input'],
    ['/moderations', {}, 'input'],
    ['/audio/speech', { input: 5 }, 'input'],
    ['/audio/speech', { model: 'a\nb', input: 'a' }, 'model'],
    ['/images/generations', { prompt: 'a', n: 99 }, 'n'],
    ['/completions', { model: 'gpt-4o-mini', prompt: [] }, 'prompt'],
    ['/completions', { model: 'gpt-4o-mini', prompt: 'a', echo: true }, 'echo'],
    ['/completions', { model: 'gpt-4o-mini', prompt: 'a', suffix: 'x' }, 'suffix'],
    ['/completions', { model: 'gpt-4o-mini', prompt: 'a', logprobs: 1 }, 'logprobs'],
    ['/completions', { model: 'gpt-4o-mini', prompt: 'a', best_of: 3 }, 'best_of'],
    ['/completions', { model: 'gpt-4o-mini', prompt: 'a', temperature: 3 }, 'temperature'],
    ['/completions', { prompt: 'a' }, 'model'],
  ])('%s %j with 400, naming the field', async (path, body, param) => {
    const answer = await server.ask(root + path, body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { param } });
    expect(upstream.requests).toEqual([]);
  });

  test.each([
    [[1, 2, 3], 'prompt must be text: prompts of tokens are not read.'],
    [[[1, 2, 3]], 'prompt must be text: prompts of tokens are not read.'],
    [['a', 'b'], 'prompt must be one text: send a request for each.'],
  ])('the prompt %j with 400, which says what is taken', async (prompt, message) => {
    const answer = await server.ask(`${root}/completions`, { model: 'gpt-4o-mini', prompt });
    expect([answer.status, await answer.json()]).toMatchObject([400, { error: { param: 'prompt', message } }]);
    expect(upstream.requests).toEqual([]);
  });

  test('a form that is none with 400, another type with 415, a field given twice with 400', async () => {
    const twice = new FormData();
    twice.set('file', new File(['a'], 'a.wav'));
    twice.append('model', 'a');
    twice.append('model', 'b');
    const text = new FormData();
    text.set('file', 'not a file');
    const asked = [
      await sendForm(server, 'nonsense', 'multipart/form-data; boundary=x'),
      await sendForm(server, 'nonsense', 'multipart/form-data; charset=x'),
      await sendForm(server, '{}', 'application/json'),
      await sendForm(server, twice),
      await sendForm(server, text),
      await sendForm(server, new FormData()),
    ];
    expect(asked.map(({ status }) => status)).toEqual([400, 400, 415, 400, 400, 400]);
    expect(upstream.requests).toEqual([]);
  });

  test('a form with a text of more than 1 MiB with 413 that names the field, before the rest of it is read', async () => {
    const text = `--x\r\nContent-Disposition: form-data; name="prompt"\r\n\r\n${'x '.repeat(8_500_000)}\r\n--x--`;
    const answer = await sendForm(server, text, 'multipart/form-data; boundary=x');
    expect(answer.status).toBe(413);
    expect(await answer.json()).toMatchObject({ error: { message: 'prompt must have at most 1048576 bytes.', param: 'prompt' } });
  });

  test('a form of half a million parts with 400, at once', async () => {
    const part = '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n';
    const spent = await cpuMillisecondsUntil(async () => {
      const answer = await sendForm(server, `${part.repeat(500_000)}--x--`, 'multipart/form-data; boundary=x');
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({ error: { message: 'The form must have at most 100 parts.' } });
    });
    expect(spent).toBeLessThan(2000); // of the client in this thread as well
  });

  test('a form of many parts with 400, also where its type names two boundaries', async () => {
    const boundary = 'b'.repeat(30);
    const part = `--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n`;
    for (const type of [
      `multipart/form-data; x="; boundary=${'c'.repeat(30)}"; boundary=${boundary}`,
      `multipart/form-data; boundary=${boundary}; boundary=${'c'.repeat(30)}`,
    ]) {
      const answer = await sendForm(server, `${part.repeat(101)}--${boundary}--`, type);
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({ error: { message: expect.not.stringContaining('must be given once') as string } });
    }
    expect(upstream.requests).toEqual([]);
  });

  test('a form whose boundary has a backslash with 400, since the parser reads another boundary', async () => {
    const part = '--ab\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n';
    const answer = await sendForm(server, `${part.repeat(101)}--ab--`, 'multipart/form-data; boundary="a\\b"');
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { message: 'Content-Type must name the boundary of the form, of 1 to 200 characters.' } });
  });

  test('with 501, in clear words, where no provider has it', async () => {
    for (const [path, body] of [
      ['/moderations', { input: 'a' }],
      ['/images/generations', { prompt: 'a' }],
    ] as const) {
      const answer = await offline.ask(root + path, body);
      expect(answer.status).toBe(501);
      expect(await answer.json()).toMatchObject({
        error: {
          code: 'unsupported',
          message: `No provider here answers ${path} for this model. Name one that has a target at an OpenAI-compatible provider.`,
        },
      });
    }
    const answer = await offline.ask(`${root}/audio/speech`, { model: 'tts-1', input: 'a' });
    expect(await answer.json()).toMatchObject({
      error: { code: 'unsupported', message: 'No provider here speaks with this model. For the built-in voice, name the model `built-in-speech`.' },
    });
  });

  test('with 404 for a model that does not exist, and with 501 for one that cannot do it', async () => {
    for (const [path, more] of [
      ['/images/generations', { prompt: 'a' }],
      ['/moderations', { input: 'a' }],
      ['/audio/speech', { input: 'a', voice: 'alloy' }],
    ] as const) {
      const unknown = await server.ask(root + path, { model: 'nobody', ...more });
      expect([unknown.status, await unknown.json()]).toMatchObject([404, { error: { param: 'model', code: 'model_not_found' } }]);
      const unable = await server.ask(root + path, { model: 'built-in', ...more });
      expect([unable.status, await unable.json()]).toMatchObject([501, { error: { param: 'model', code: 'unsupported' } }]);
    }
  });

  test('with 404 for a key that may use other models alone, whether there is such a model or not', async () => {
    const made = await offline.ask('/server/mine/keys', { name: 'narrow', models: ['built-in'] });
    const { key } = (await made.json()) as { key: string };
    for (const [path, model] of [
      ['/audio/speech', 'built-in-speech'],
      ['/audio/speech', 'nobody'],
      ['/moderations', 'nobody'],
    ] as const) {
      const answer = await offline.ask(root + path, { model, input: 'a' }, { headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` } });
      expect([answer.status, await answer.json()]).toMatchObject([404, { error: { param: 'model', code: 'model_not_found' } }]);
    }
  });
});

describe('older completions', () => {
  test('are answered by a chat model, whole', async () => {
    const answer = await client.completions.create({ model: 'gpt-4o-mini', prompt: 'hello there' });
    expect(answer).toMatchObject({
      object: 'text_completion',
      model: 'gpt-4o-mini',
      choices: [{ index: 0, text: 'You said: hello there', finish_reason: 'stop', logprobs: null }],
    });
    expect(answer.usage!.total_tokens).toBeGreaterThan(0);
    expect(upstream.requests[0]?.json).toMatchObject({ messages: [{ role: 'user', content: 'hello there' }] });
  });

  test('are streamed, with usage where it was asked for', async () => {
    const stream = await client.completions.create({ model: 'gpt-4o-mini', prompt: 'hello', stream: true, stream_options: { include_usage: true } });
    let text = '';
    let usage = 0;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.text ?? '';
      usage = chunk.usage?.total_tokens ?? usage;
    }
    expect(text).toBe('You said: hello');
    expect(usage).toBeGreaterThan(0);
  });

  test('are answered by the built-in model too', async () => {
    expect(await (await offline.ask(`${root}/completions`, { model: 'built-in', prompt: 'Say exactly: it works' })).json()).toMatchObject({
      choices: [{ text: 'it works' }],
    });
  });

  test('that break off end with an error, not with an end', async () => {
    upstream.script(cut({ afterEvents: 3 }, ok()));
    const text = await (await server.ask(`${root}/completions`, { model: 'gpt-4o-mini', prompt: 'hello there you', stream: true })).text();
    expect(text).toContain('"error"');
    expect(text).not.toContain('[DONE]');
  });
});
