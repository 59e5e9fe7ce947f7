import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  always,
  badKey,
  badRequest,
  body,
  cut,
  failing,
  forbidden,
  hang,
  nobody,
  notFound,
  ok,
  on,
  pace,
  startUpstream,
  tooMany,
  type Behaviour,
  type Nobody,
  type Upstream,
} from '../support/fakes/upstream/index.ts';
import { chat, startTestServer, type TestServer } from '../support/server.ts';
import { proves } from '../support/proves.ts';

/* Regions that fail in every way, with the settings as they are delivered where nothing else is said. */
const seven = ['us-central1', 'us-east1', 'us-east4', 'us-east5', 'us-south1', 'us-west1', 'us-west4'];
const root = '/server/gencompat/v1beta/models';
const said = (text: string) => ({ contents: [{ role: 'user', parts: [{ text }] }] });

let upstream: Upstream;
let dead: Nobody;
let open: TestServer[] = [];
/** For tests that leave nothing behind. */
let steady: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  dead = await nobody();
  steady = await serverOf(seven, 'routing: { cooldownSeconds: 0 }\n');
  open = [];
});
afterAll(async () => {
  await steady.close();
  await upstream.close();
  dead.close();
});
afterEach(async () => {
  await Promise.all(open.map((server) => server.close()));
  open = [];
  upstream.reset();
});

/** A server whose models `gemini-2.5-flash`, `gemini-2.0-flash` and `gemini-2.5-pro` can be asked in some regions. */
async function serverOf(regions: readonly unknown[], more = ''): Promise<TestServer> {
  const server = await startTestServer({
    yaml: `
providers:
  pool: { dialect: gemini, kind: vertex, project: p, baseUrl: "${upstream.url}/{region}/v1", credentials: { accessToken: t }, regions: ${JSON.stringify(regions)} }
models:
  gemini-2.5-flash: { targets: [{ provider: pool }] }
  gemini-2.0-flash: { targets: [{ provider: pool }] }
  gemini-2.5-pro: { targets: [{ provider: pool }] }
${more}`,
  });
  open.push(server);
  return server;
}

interface Body {
  readonly candidates?: readonly { readonly content: { readonly parts: readonly { readonly text: string }[] } }[];
  readonly modelVersion?: string;
  readonly promptFeedback?: object;
}

async function ask(server: TestServer, { model = 'gemini-2.5-flash', text = 'hi' } = {}) {
  const answer = await server.ask(`${root}/${model}:generateContent`, said(text));
  const attempts = Number(answer.headers.get('x-dragoman-attempts'));
  return { status: answer.status, attempts, region: answer.headers.get('x-dragoman-region'), body: (await answer.json()) as Body };
}
const regionsAsked = () => upstream.requests.map(({ region }) => region);

test(
  proves('R-02', 'whichever regions fail, and however: the answer comes if one is up, each is asked at most once, and a hang costs one timeout'),
  async () => {
    const hangSeconds = 0.2;
    const ways = ['busy', 'failing', 'hanging', 'refused', 'failing', 'busy', 'hanging'] as const;
    const behaviours = { busy: tooMany(), failing: failing(503), hanging: hang() };
    const server = await serverOf(
      seven.map((name, at) => (ways[at] === 'refused' ? { name, baseUrl: dead.url } : name)),
      `limits: { hangSeconds: { stream: ${hangSeconds}, whole: ${hangSeconds} }, firstByteSeconds: 1 }\nrouting: { cooldownSeconds: 0, retryBudget: 1 }\n`,
    );
    for (let mask = 0; mask < 128; mask++) {
      const isDown = (at: number) => (mask & (1 << at)) !== 0;
      if (!isDown(ways.indexOf('refused'))) continue; // nobody is ever there
      upstream.reset();
      for (const [at, way] of ways.entries()) if (way !== 'refused' && isDown(at)) upstream.script(always(on({ region: seven[at]! }, behaviours[way])));
      const first = seven.findIndex((_, at) => !isDown(at));
      const tried = first < 0 ? seven : seven.slice(0, first + 1);
      const hangs = tried.filter((_, at) => isDown(at) && ways[at] === 'hanging').length;
      const begun = performance.now();
      const { status, attempts } = await ask(server);
      expect([mask, status, attempts]).toEqual([mask, first < 0 ? 429 : 200, tried.length]);
      expect(regionsAsked()).toEqual(tried.filter((_, at) => ways[at] !== 'refused'));
      // the last one is waited for as long as a first byte may take
      expect(performance.now() - begun).toBeLessThan(1000 * (hangSeconds * hangs + 3));
    }
  },
  120_000,
);

describe('exactly one attempt', () => {
  test.each([
    ['a bad request', badRequest(), 400],
    ['a refused account', badKey(), 502],
    ['an account that may not', forbidden(), 502],
    ['an address that is not there', notFound(), 502],
    ['a prompt that is blocked', body('{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":3,"totalTokenCount":3}}'), 200],
    ['an answer that is blocked', body('{"candidates":[{"content":{"role":"model","parts":[]},"finishReason":"SAFETY","index":0}]}'), 200],
  ])(proves('R-03', '%s is not tried elsewhere'), async (_, behaviour, status) => {
    upstream.script(behaviour);
    expect(await ask(steady)).toMatchObject({ status, attempts: 1, region: 'us-central1' });
    expect(regionsAsked()).toEqual(['us-central1']);
  });

  test.each([
    ['FIN', cut({ afterEvents: 1 })],
    ['RST', cut({ afterEvents: 1, how: 'reset' })],
  ])(proves('R-04', 'a stream that breaks off (%s) after its first words ends with an error, and no second region is asked'), async (_, behaviour) => {
    upstream.script(behaviour);
    const answer = await steady.ask(`${root}/gemini-2.5-flash:streamGenerateContent?alt=sse`, said('one two three'));
    const frames = (await answer.text()).split('\r\n\r\n').filter((frame) => frame.trim() !== '');
    expect(frames[0]).toContain('"text"');
    expect(JSON.parse(frames.at(-1)!.slice('data: '.length))).toMatchObject({ error: { code: 502, status: 'INTERNAL' } });
    expect(frames.join('')).not.toContain('finishReason');
    expect(regionsAsked()).toEqual(['us-central1']);
  });
});

test(
  proves('R-05', 'a region that is always busy is asked once per cooldown, and the others answer everything'),
  async () => {
    const server = await serverOf(seven);
    upstream.script(always(on({ region: 'us-central1' }, tooMany({ retryAfter: 2 }))));
    await ask(server);
    const begun = performance.now();
    const answers: Promise<{ readonly status: number }>[] = [];
    for (let at = 0; at < 250; at++) {
      await until(begun + at * 20); // 50 a second
      answers.push(ask(server));
    }
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200]));
    const cooldowns = (performance.now() - begun) / 2000;
    expect(regionsAsked().filter((region) => region === 'us-central1').length).toBeLessThanOrEqual(1 + Math.ceil(cooldowns));
    expect(regionsAsked().filter((region) => region === 'us-central1').length).toBeGreaterThan(1);
  },
  120_000,
);

test('if half of all answers are 503, a request takes two attempts, not seven', async () => {
  const server = await serverOf(seven);
  upstream.script(always(coin(ok(), failing(503))));
  const begun = performance.now();
  const answers: Promise<{ readonly status: number }>[] = [];
  for (let at = 0; at < 600; at++) {
    await until(begun + at * 5); // 200 a second
    answers.push(ask(server));
  }
  const good = (await Promise.all(answers)).filter(({ status }) => status === 200).length;
  expect(good).toBeGreaterThan(0.9 * answers.length);
  expect(upstream.requests.length).toBeLessThan(2.4 * answers.length);
}, 120_000);

test(
  proves('R-09', '500 concurrent requests, some regions down: each gets its own answer, and the rows of each region match the requests it received'),
  async () => {
    const server = await serverOf(seven, 'routing: { cooldownSeconds: 0, retryBudget: 1 }\n');
    const down = ['us-central1', 'us-east4', 'us-east5'];
    upstream.script(...down.map((region, at) => always(on({ region }, at % 2 ? failing(503) : tooMany()))));
    const answers = await Promise.all(
      Array.from({ length: 500 }, async (_, at) => {
        const answer = await server.ask(`${root}/gemini-2.5-flash:generateContent`, said(`canary-${at}-`));
        return { id: answer.headers.get('x-request-id')!, status: answer.status, text: await answer.text() };
      }),
    );
    for (const [at, { status, text }] of answers.entries()) {
      expect(status).toBe(200);
      expect(text.match(/canary-\d+-/g)).toEqual([`canary-${at}-`]);
    }
    const triesOf = async (id: string) => {
      const answer = await server.ask(`/server/admin/logs/${id}`);
      const { tries } = (await answer.json()) as { readonly tries?: readonly { readonly region: string }[] };
      return tries?.map(({ region }) => region);
    };
    const booked: string[] = [];
    for (const { id } of answers) {
      let tries = await triesOf(id);
      await expect.poll(async () => (tries ??= await triesOf(id)), { timeout: 30_000 }).toBeTruthy();
      booked.push(...tries!);
    }
    const count = (regions: readonly (string | undefined)[]) =>
      Object.fromEntries(seven.map((region) => [region, regions.filter((one) => one === region).length]));
    expect(count(booked)).toEqual(count(regionsAsked()));
  },
  120_000,
);

describe('a model that is missing', () => {
  test(proves('R-10', 'in some regions is answered in another; if missing in all, by the next of its tier, and modelVersion names it'), async () => {
    const server = await serverOf(seven.slice(0, 3));
    upstream.script(...seven.slice(0, 2).map((region) => always(on({ region, model: 'gemini-2.0-flash' }, notFound('model')))));
    const some = await ask(server, { model: 'gemini-2.0-flash' });
    expect([some.status, some.region, some.body.modelVersion]).toEqual([200, 'us-east4', 'gemini-2.0-flash']);
    upstream.script(always(on({ region: 'us-east4', model: 'gemini-2.0-flash' }, notFound('model'))));
    const none = await ask(server, { model: 'publishers/google/models/gemini-2.0-flash' });
    expect([none.status, none.body.modelVersion]).toEqual([200, 'gemini-2.5-flash']);
  });

  test(proves('R-10', 'is never replaced by one of another tier'), async () => {
    const server = await serverOf(seven.slice(0, 3));
    upstream.script(always(on({ model: 'gemini-2.5-pro' }, notFound('model'))));
    for (const model of ['pro', 'gemini-2.5-pro', 'gemini-1.5-pro']) expect((await ask(server, { model })).status).toBe(404);
    expect(new Set(upstream.requests.map(({ model }) => model))).toEqual(new Set(['gemini-2.5-pro']));
  });
});

test(
  proves(
    'R-13',
    '1,000 callers that leave, before the head or in the middle of a stream, touch neither the health of a region nor the answer of another caller',
  ),
  async () => {
    const server = await serverOf(seven.slice(0, 1));
    const stream = (text: string, init: RequestInit = {}) => server.ask(`${root}/gemini-2.5-flash:streamGenerateContent?alt=sse`, said(text), init);
    const words = 'word '.repeat(100).trim();
    upstream.script(pace(50));
    const staying = stream(words).then((answer) => answer.text());
    await upstream.arrived(0);
    for (let round = 0; round < 4; round++) {
      const before = upstream.requests.length;
      upstream.script(...Array.from({ length: 250 }, (_, at) => (at % 2 ? hang() : pace(1000))));
      const leaving = new AbortController();
      const all = Array.from({ length: 250 }, () =>
        stream(words, { signal: leaving.signal }).then(
          (answer) => answer.text(),
          (error: unknown) => error,
        ),
      );
      await upstream.until(
        (requests) =>
          requests.length === before + 250 &&
          requests.slice(before).every(({ bodyAt, behaviour, piecesSent }) => bodyAt && (behaviour !== 'pace' || piecesSent > 0)),
        120_000,
      );
      leaving.abort();
      await Promise.allSettled(all);
      await upstream.until((requests) => requests.slice(before).every(({ closedAt }) => closedAt), 30_000);
    }
    const { items } = (await (await server.ask('/server/admin/regions')).json()) as { items: { model: string; state: string; successRate: number }[] };
    expect(items.find(({ model }) => model === 'gemini-2.5-flash')).toMatchObject({ state: 'ok', successRate: 1 });
    expect(await ask(server)).toMatchObject({ status: 200, attempts: 1 });
    expect(await staying).toContain('"finishReason":"STOP"');
  },
  120_000,
);

test.each(['gencompat', 'chatcompat'])(proves('R-14', 'a model that repeats the same text 300 times is forwarded 300 times, by %s'), async (face) => {
  upstream.script(ok({ text: 'again '.repeat(300) }));
  const answer = await (face === 'gencompat'
    ? steady.ask(`${root}/gemini-2.5-flash:streamGenerateContent?alt=sse`, said('go on'))
    : steady.ask(chat, { model: 'gemini-2.5-flash', stream: true, messages: [{ role: 'user', content: 'go on' }] }));
  const text = await answer.text();
  expect(text.match(face === 'gencompat' ? /"text":"again "/g : /"content":"again "/g)).toHaveLength(300);
  expect(text).toMatch(/"STOP"|"stop"/);
});

const until = (time: number) => new Promise((resolve) => setTimeout(resolve, Math.max(0, time - performance.now())));

/** One or the other, as if by chance, and every time the same. */
function coin(heads: Behaviour, tails: Behaviour): Behaviour {
  let seed = 1;
  return { name: 'coin', answer: (exchange) => ((seed = (seed * 48_271) % 2_147_483_647) % 2 ? heads : tails).answer(exchange) };
}
