/* Texts as sound, in the words of the native interface and of chat completions. */
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { longestStretch, slowness } from '../../support/cpu-time.ts';
import { always, failing, says, startUpstream, type Upstream } from '../../support/fakes/upstream/index.ts';
import { loggedAs, newMember } from '../../support/members.ts';
import { proves } from '../../support/proves.ts';
import { quickest } from '../../support/quickest.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { person, visitorsOf, type Visited } from './visitors.ts';

const speak = '/server/get-text-to-speech';
const standard = '/server/chatcompat/v1';
let server: TestServer;
let withProvider: TestServer;
let upstream: Upstream;
let all: Visited;
beforeAll(async () => {
  upstream = await startUpstream();
  server = await startTestServer();
  withProvider = await startTestServer({ upstream: upstream.url, yaml: '  spoken: { kind: speech, targets: [{ provider: fake, model: up-spoken }] }\n' });
  all = visitorsOf(server);
});
beforeEach(() => upstream.reset());
afterAll(async () => {
  await server.close();
  await withProvider.close();
  await upstream.close();
});

/** Seconds of sound in a WAV file of 16 bits and one channel, by the bytes that are there. */
function seconds(file: Buffer): number {
  expect([file.toString('latin1', 0, 4), file.toString('latin1', 8, 16)]).toEqual(['RIFF', 'WAVEfmt ']);
  return (file.length - 44) / 2 / file.readUInt32LE(24);
}

const soundOf = async (answer: Response): Promise<Buffer> => Buffer.from(await answer.arrayBuffer());

describe('the built-in voice', () => {
  test(proves('server.get-text-to-speech', 'POST /get-text-to-speech answers with sound'), async () => {
    const answer = await server.ask(speak, { text: 'The heron stands in the water.' });
    expect([answer.status, answer.headers.get('content-type'), answer.headers.get('x-dragoman-provider')]).toEqual([200, 'audio/wav', 'built-in']);
    const file = await soundOf(answer);
    expect(seconds(file)).toBeGreaterThan(1);
    expect(file.readUInt32LE(40)).toBe(file.length - 44);
    expect(file.subarray(44).some((byte) => byte > 64)).toBe(true);
  });

  test('speaks every sentence of a longer text, faster or slower, with the voice that is asked for', async () => {
    const three = 'One heron stands here. Two herons stand there. Three herons fly away.';
    const whole = seconds(await soundOf(await server.ask(speak, { text: three })));
    expect(whole).toBeGreaterThan(2 * seconds(await soundOf(await server.ask(speak, { text: 'One heron stands here.' }))));
    const quick = await server.ask(`${standard}/audio/speech`, { model: 'built-in-speech', input: three, voice: 'slt', speed: 2, response_format: 'wav' });
    expect(quick.headers.get('x-dragoman-warnings')).toBeNull();
    expect(seconds(await soundOf(quick))).toBeLessThan(whole * 0.7);
    const [slt, rms] = await Promise.all(['slt', 'rms'].map(async (voice) => soundOf(await server.ask(speak, { text: 'Heron.', voice }))));
    expect(slt!.equals(rms!)).toBe(false);
  });

  test('does not speak the marks of Markdown', async () => {
    const plain = await soundOf(await server.ask(speak, { text: 'Heron\nThe bird is grey.' }));
    const marked = await soundOf(await server.ask(speak, { text: '# **Heron**\n\n> The [bird](https://example.org/a?b=c) is `grey` [1].' }));
    expect(marked.equals(plain)).toBe(true);
  });

  test('answers the standard SDK, and says in the headers what it does otherwise', async () => {
    const client = new OpenAI({ apiKey: server.key, baseURL: server.url + standard, maxRetries: 0 });
    const answer = await client.audio.speech.create({ model: 'built-in-speech', input: 'Good morning.', voice: 'alloy' });
    expect(seconds(Buffer.from(await answer.arrayBuffer()))).toBeGreaterThan(0.5);
    expect(answer.headers.get('x-dragoman-warnings')).toContain('voice: built-in-speech has the voices slt, awb, rms');
    const refused = await server.ask(`${standard}/audio/speech`, { input: 'a', response_format: 'mp3' }, { headers: { 'x-dragoman-strict': 'true' } });
    expect([refused.status, await refused.json()]).toEqual([400, { error: expect.objectContaining({ param: 'response_format' }) as unknown }]);
    const events = await server.ask(`${standard}/audio/speech`, { input: 'a', stream_format: 'sse' });
    expect([events.status, await events.json()]).toEqual([400, { error: expect.objectContaining({ param: 'stream_format' }) as unknown }]);
  });

  test('is in the list of voices, which answers GET too', async () => {
    const voices = ['slt', 'awb', 'rms'].map((voice) => ({ voice, model: 'built-in-speech', provider: 'local', language_code: 'en-US' }));
    for (const method of ['POST', 'GET']) {
      const { status, body } = await all.admin(method, '/server/list-tts-voices');
      expect([status, body]).toEqual([200, { response: voices, count: 3, status: 200 }]);
    }
    expect((await all.nobody('POST', '/server/list-tts-voices')).status).toBe(401);
  });

  test('books its sound at twenty plan tokens a second, and nothing where nothing was spoken', async () => {
    const answer = await server.ask(speak, { text: 'The heron stands in the water, and looks at the fish.', model: 'tts-hd' });
    const length = seconds(await soundOf(answer));
    expect(await loggedAs(server, answer.headers.get('x-request-id')!)).toMatchObject({
      model: 'built-in-speech',
      provider: 'built-in',
      end: 'completed',
      outputTokens: Math.ceil(length * 20),
      costUsd: 0,
    });
    const refused = await server.ask(speak, { text: '鷺' });
    expect(await loggedAs(server, refused.headers.get('x-request-id')!)).toMatchObject({ outputTokens: 0, planTokens: 0 });
  });

  test.each([
    [{}, 'text'],
    [{ text: '' }, 'text'],
    [{ text: '**' }, 'text'],
    [{ text: '鷺' }, 'text'],
    [{ text: 5 }, 'text'],
    [{ text: 'x'.repeat(100_001) }, 'text'],
    [{ text: 'a', model: 'nobody' }, 'model'],
    [{ text: 'a', model: 'built-in' }, 'model'],
    [{ text: 'a', provider: 'google' }, 'provider'],
  ])('%j is refused with 400 and the name of the field', async (fields, field) => {
    const { status, body } = await all.admin('POST', speak, fields);
    expect([status, body['message']]).toEqual([400, expect.stringContaining(field)]);
  });

  test('a plan that is spent is refused with 429', async () => {
    const poor = await newMember(server, { monthlyTokens: 0 });
    const answer = await server.ask(speak, { text: 'a' }, { headers: { 'x-access-tokens': poor.keys[0]! } });
    expect(answer.status).toBe(429);
  });

  test('GET is refused: it would be spoken for whoever links to it', async () => {
    expect((await all.admin('GET', `${speak}?text=a`)).status).toBe(405);
  });

  test('texts with accents, digits and hostile marks are spoken within bounds', async () => {
    for (const text of ['Ærøskøbing, naïve café: 3 €', '-o /tmp/x --help -voice kal', '"; rm -rf / #', '\u0000a\u0000', '9'.repeat(300), '<a '.repeat(100)]) {
      const answer = await server.ask(speak, { text });
      expect([text.slice(0, 20), answer.status]).toEqual([text.slice(0, 20), 200]);
      await soundOf(answer);
    }
  }, 120_000);
});

describe('the event loop', () => {
  test('fifty texts at once do not hold it for 50 ms, and the first sound of one comes within 300 ms', async () => {
    const waits: number[] = [];
    for (let at = 0; at < 5; at++) {
      const begin = performance.now();
      const one = await server.ask(speak, { text: 'Good morning. '.repeat(3) });
      await one.body!.getReader().read();
      waits.push(performance.now() - begin);
    }
    expect(Math.min(...waits)).toBeLessThan(300 * slowness()); // the machine may be busy with other things
    const people = await Promise.all(Array.from({ length: 5 }, () => person(all)));
    const spoken = async () => {
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, at) =>
          fetch(server.url + speak, {
            method: 'POST',
            headers: { 'x-access-tokens': people[at % 5]!.key, 'content-type': 'application/json' },
            body: JSON.stringify({ text: `Number ${at}.` }),
          }).then(async (answer) => (await soundOf(answer)).length),
        ),
      );
      expect(Math.min(...answers)).toBeGreaterThan(1000);
    };
    expect(await quickest(50, () => longestStretch(spoken))).toBeLessThan(50);
  }, 120_000);
});

describe('a provider that speaks', () => {
  test('gets the words without marks and the voice that was asked for, and its sound comes as it is', async () => {
    upstream.script(says(/audio\/speech/, 'audio/mpeg', 'sound'));
    const answer = await withProvider.ask(speak, { text: '# Hello *there*', voice: 'nova' });
    expect([answer.headers.get('content-type'), await answer.text()]).toEqual(['audio/mpeg', 'sound']);
    expect(upstream.requests[0]?.json).toEqual({ model: 'up-spoken', input: 'Hello there', voice: 'nova' });
  });

  test('gets a longer text in pieces that end with sentences, and is paid for each', async () => {
    upstream.script(always(says(/audio\/speech/, 'audio/mpeg', 'mp3,')));
    const text = Array.from({ length: 150 }, (_, at) => `This is sentence number ${at}, which is of middling length.`).join(' ');
    const answer = await withProvider.ask(speak, { text });
    expect(await answer.text()).toBe('mp3,mp3,mp3,');
    const inputs = upstream.requests.map(({ json }) => (json as { input: string }).input);
    expect(inputs.join('')).toBe(text);
    expect(inputs.every((input) => input.length <= 4096 && /\.\s?$/.test(input))).toBe(true);
    expect((await loggedAs(withProvider, answer.headers.get('x-request-id')!)).outputTokens).toBe(Math.ceil((text.length / 15) * 20));
  });

  test('is chosen by its name, and `local` is the built-in voice', async () => {
    upstream.script(says(/audio\/speech/, 'audio/mpeg', 'sound'));
    expect((await withProvider.ask(speak, { text: 'a', provider: 'fake' })).headers.get('content-type')).toBe('audio/mpeg');
    expect((await withProvider.ask(speak, { text: 'a', provider: 'local' })).headers.get('content-type')).toBe('audio/wav');
  });

  test('fails as other calls do', async () => {
    upstream.script(always(failing(500)));
    const answer = await withProvider.ask(speak, { text: 'a' });
    expect([answer.status, await answer.json()]).toEqual([502, expect.objectContaining({ status: 502 })]);
  });
});
