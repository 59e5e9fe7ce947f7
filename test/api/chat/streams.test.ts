import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { altered, always, headersThenHang, hang, ok, pace, sliced, type Behaviour } from '../../support/fakes/upstream/index.ts';
import { chat, startTestServer } from '../../support/server.ts';
import { proves } from '../../support/proves.ts';
import { quickest } from '../../support/quickest.ts';
import { scriptedServer } from '../../support/scripted-server.ts';

const { upstream, server } = await scriptedServer(({ url }) => ({
  upstream: url,
  yaml: 'limits: { holdHeadersSeconds: 1 }\nrouting: { cooldownSeconds: 0 }\n',
}));

const request = (content: string, stream: boolean) => ({ model: 'gpt-4o-mini', messages: [{ role: 'user', content }], stream });

/** Milliseconds from the moment the client leaves until the upstream is closed, at best. */
const closedAfterLeaving = (behaviour: () => Behaviour, stream: boolean, reading: boolean): Promise<number> =>
  quickest(100, async () => {
    upstream.reset();
    upstream.script(behaviour());
    const leaving = new AbortController();
    const asked = server.ask(chat, request('one two three four five', stream), { signal: leaving.signal });
    asked.catch(() => undefined);
    await upstream.arrived(0);
    if (reading) await (await asked).body!.getReader().read();
    const leftAt = performance.now();
    leaving.abort();
    const took = (await upstream.until((requests) => requests[0]?.closedEarlyAt)) - leftAt;
    expect(upstream.requests).toHaveLength(1);
    return took;
  });

describe('a client that leaves', () => {
  test(proves('S-05', 'before the headers of a stream closes the upstream within 100 ms'), async () => {
    expect(await closedAfterLeaving(hang, true, false)).toBeLessThan(100);
  });

  test(proves('S-05', 'before a whole answer closes the upstream within 100 ms'), async () => {
    expect(await closedAfterLeaving(hang, false, false)).toBeLessThan(100);
  });

  test(proves('S-03', 'in the middle of a stream closes the upstream within 100 ms, and nothing is tried again'), async () => {
    expect(await closedAfterLeaving(() => headersThenHang({ afterEvents: 4 }), true, true)).toBeLessThan(100);
  });

  test(proves('S-09', 'at a random moment never shows its words to anybody else'), async () => {
    upstream.script(always(pace(1)));
    const storm = Array.from({ length: 100 }, async (_, at) => {
      const canary = `canary${String(at).padStart(4, '0')}`;
      const leaving = new AbortController();
      const answer = await server.ask(chat, request(`${canary} ${canary} ${canary} ${canary}`, true), { signal: leaving.signal });
      const timer = at % 2 === 0 ? setTimeout(() => leaving.abort(), (at * 7) % 40) : undefined;
      const text = await answer.text().catch(() => '');
      clearTimeout(timer);
      const foreign = [...text.matchAll(/canary\d{4}/g)].filter(([word]) => word !== canary);
      expect(foreign).toEqual([]);
      return text.includes(canary);
    });
    expect((await Promise.all(storm)).filter(Boolean).length).toBeGreaterThanOrEqual(50);
  });
});

describe('a model that thinks', () => {
  test('for longer than the hold: the headers and a comment go out, the answer follows', async () => {
    const headersCame = Promise.withResolvers<void>();
    const thinking = altered('thinking', ok(), (answer) => ({
      ...answer,
      body: (async function* () {
        await headersCame.promise;
        yield* answer.body;
      })(),
    }));
    upstream.script(thinking);
    const startedAt = performance.now();
    const answer = await server.ask(chat, request('take your time', true));
    expect(performance.now() - startedAt).toBeGreaterThan(900);
    headersCame.resolve();
    expect(answer.headers.get('x-request-id')).toBeTruthy();
    expect(answer.headers.get('x-dragoman-provider')).toBeNull();
    const text = await answer.text();
    expect(text.startsWith(': ')).toBe(true);
    expect(text).toContain('take');
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  test('for less: the headers say who answered', async () => {
    upstream.script(ok());
    const answer = await server.ask(chat, request('quick', true));
    await answer.text();
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'private, no-store',
      'x-accel-buffering': 'no',
      'x-dragoman-provider': 'fake',
      'x-dragoman-attempts': '1',
    });
  });
});

test(proves('S-10', 'the openai SDK reads hundreds of streams of one-byte packets without an error'), async () => {
  upstream.script(always(sliced()));
  const client = new OpenAI({ apiKey: server.key, baseURL: `${server.url}/server/chatcompat/v1`, maxRetries: 0 });
  const read = async (words: string) => {
    let text = '';
    for await (const chunk of await client.chat.completions.create({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: words }], stream: true }))
      text += chunk.choices[0]?.delta.content ?? '';
    return text;
  };
  for (let round = 0; round < 10; round++) {
    const words = Array.from({ length: 20 }, (_, at) => `Größe ${round}-${at} 🐉`);
    expect(await Promise.all(words.map(read))).toEqual(words.map((one) => `You said: ${one}`));
  }
});

test('what goes upstream asks for usage, and nothing the client did not send', async () => {
  upstream.script(ok());
  await (await server.ask(chat, { ...request('hello', true), vendor_field: { deep: [1, 2] } })).text();
  expect(upstream.requests[0]?.json).toEqual({ ...request('hello', true), vendor_field: { deep: [1, 2] }, stream_options: { include_usage: true } });
});

test('a model whose name is not its name upstream is asked for by the upstream name', async () => {
  const other = await startTestServer({ upstream: upstream.url, yaml: '  renamed: { targets: [{ provider: fake, model: gpt-upstream }] }\n' });
  upstream.script(always(ok()));
  for (const stream of [true, false]) await (await other.ask(chat, { ...request('hello', stream), model: 'renamed' })).text();
  expect(upstream.requests.map(({ model }) => model)).toEqual(['gpt-upstream', 'gpt-upstream']);
  await other.close();
});
