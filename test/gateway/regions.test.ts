import { generateKeyPairSync, createVerify } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  always,
  badKey,
  badRequest,
  cut,
  errorEvent,
  failing,
  hang,
  nobody,
  notFound,
  ok,
  on,
  refusal,
  slowThinker,
  startUpstream,
  times,
  tooMany,
  type Behaviour,
  type Nobody,
  type Upstream,
} from '../support/fakes/upstream/index.ts';
import { chat, startTestServer, type TestServer } from '../support/server.ts';
import { proves } from '../support/proves.ts';

const seven = ['us-central1', 'us-east1', 'us-east4', 'us-east5', 'us-south1', 'us-west1', 'us-west4'];
/** Three orders in which the operator may have listed them. */
const orders: Readonly<Record<string, readonly string[]>> = {
  listed: seven,
  backwards: seven.toReversed(),
  mixed: [3, 0, 6, 2, 5, 1, 4].map((at) => seven[at]!),
};

let upstream: Upstream;
let dead: Nobody;
let server: TestServer;

const provider = (url: string, regions: readonly unknown[], more = '') =>
  `{ dialect: gemini, kind: vertex, project: my-project, baseUrl: "${url}/{region}/v1", credentials: { accessToken: "token-canary" }, regions: ${JSON.stringify(regions)}${more} }`;

beforeAll(async () => {
  upstream = await startUpstream();
  dead = await nobody();
  const lines = Object.entries(orders).map(([name, regions]) => `  ${name}: ${provider(upstream.url, regions)}`);
  const half = seven.map((name, at) => (at < 6 ? { name, baseUrl: dead.url } : name));
  server = await startTestServer({
    yaml: `
providers:
${lines.join('\n')}
  refused: ${provider(upstream.url, half)}
  resident: ${provider(upstream.url, seven, ', residency: { south: [us-south1, us-west1] }')}
models:
${Object.keys(orders)
  .map((name) => `  flash-${name}: { targets: [{ provider: ${name}, model: gemini-2.5-flash }] }`)
  .join('\n')}
  flash-refused: { targets: [{ provider: refused, model: gemini-2.5-flash }] }
  flash-resident: { targets: [{ provider: resident, model: gemini-2.5-flash }], residency: south }
  gemini-2.5-pro: { targets: [{ provider: listed }], tier: pro }
  gemini-2.0-pro: { targets: [{ provider: mixed }], tier: pro }
  flash-weighted: { targets: [{ provider: listed, model: gemini-2.0-flash, weight: 1 }, { provider: backwards, model: gemini-2.0-flash }] }
limits: { holdHeadersSeconds: 5, hangSeconds: { stream: 1, whole: 1 }, firstByteSeconds: 2, streamIdleSeconds: 1 }
routing: { cooldownSeconds: 0, retryBudget: 1 }
`,
  });
});
afterAll(async () => {
  await server.close();
  await upstream.close();
  dead.close();
});
afterEach(() => upstream.reset());

const path = (model: string) => `/server/gencompat/v1beta/models/${model}:generateContent`;
const said = (text: string) => ({ contents: [{ role: 'user', parts: [{ text }] }] });
const regionsAsked = () => upstream.requests.map(({ region }) => region);

async function ask(model: string, text = 'hi', at = server) {
  const answer = await at.ask(path(model), said(text));
  const body = (await answer.json()) as { candidates?: { content: { parts: { text: string }[] } }[]; error?: { status: string } };
  return { status: answer.status, headers: answer.headers, body, attempts: Number(answer.headers.get('x-dragoman-attempts')) };
}

/** Every way in which some of seven can be down: bit n is region n. */
const masks = Array.from({ length: 128 }, (_, mask) => mask);
const downIn = (mask: number) => seven.filter((_, at) => mask & (1 << at));

const ailments: Readonly<Record<string, (at: number) => Behaviour>> = {
  'a rate limit': () => tooMany({ retryAfter: 9 }),
  'no capacity': () => failing(503),
  'a mixture': (at) => [tooMany({ retryAfter: 3 }), failing(503), errorEvent({ status: 429 }), errorEvent({ status: 503 })][at % 4]!,
};

describe('seven regions', () => {
  test.each(Object.keys(orders).flatMap((order) => Object.keys(ailments).map((ailment) => [order, ailment] as const)))(
    proves(
      ['R-01', 'gencompat.failover-rate-limit', 'gencompat.failover-capacity', 'gencompat.regions'],
      ' in the order %s, with %s anywhere: an answer whenever one is up, each asked at most once',
    ),
    async (order, ailment) => {
      for (const mask of masks) {
        upstream.reset();
        const down = downIn(mask);
        upstream.script(...down.map((region, at) => always(on({ region }, ailments[ailment]!(at)))));
        const { status, attempts, headers } = await ask(`flash-${order}`, `mask ${mask}`);
        const before = orders[order]!.findIndex((region) => !down.includes(region));
        const expected = before < 0 ? orders[order]! : orders[order]!.slice(0, before + 1);
        expect(regionsAsked(), `mask ${mask}`).toEqual(expected);
        expect(new Set(upstream.requests.map(({ body }) => body.toString())).size).toBe(1);
        expect(attempts).toBe(expected.length);
        if (before < 0) {
          expect(status, `mask ${mask}`).toBe(ailment === 'no capacity' ? 503 : 429);
          if (ailment !== 'no capacity') expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(9);
        } else expect([status, headers.get('x-dragoman-region')], `mask ${mask}`).toEqual([200, expected.at(-1)]);
      }
    },
    120_000,
  );

  test(proves('gencompat.to-platform', 'are asked at their own addresses of the platform, with the access token of the account'), async () => {
    upstream.script(tooMany());
    await ask('flash-listed');
    expect(upstream.requests.map((request) => [request.path, request.headers['authorization']])).toEqual(
      ['us-central1', 'us-east1'].map((region) => [
        `/${region}/v1/projects/my-project/locations/${region}/publishers/google/models/gemini-2.5-flash:generateContent`,
        'Bearer token-canary',
      ]),
    );
  });

  test(proves(['R-01', 'gencompat.429-rate-limit'], ' all at their limit: 429 with the shortest wait of all'), async () => {
    upstream.script(...seven.map((region, at) => on({ region }, tooMany({ retryAfter: 20 - at }))));
    const { status, headers, body } = await ask('flash-listed');
    expect([status, headers.get('retry-after'), body.error?.status]).toEqual([429, '14', 'RESOURCE_EXHAUSTED']);
  });

  test('six that refuse every connection: the seventh answers', async () => {
    const { status, attempts, headers } = await ask('flash-refused');
    expect([status, attempts, headers.get('x-dragoman-region')]).toEqual([200, 7, 'us-west4']);
  });

  test('one that hangs is replaced by the next', async () => {
    upstream.script(on({ region: 'us-central1' }, hang()));
    const { status, attempts } = await ask('flash-listed');
    expect([status, attempts]).toEqual([200, 2]);
  });

  test.each([
    ['a bad request', badRequest(), 400, 1],
    ['a refused account', badKey(), 502, 1],
    ['another failure, once', times(1, failing(500)), 200, 2],
    ['another failure, again and again', always(failing(500)), 502, 2],
  ])('%s is retried elsewhere only as often as that may help', async (_, behaviour, status, attempts) => {
    upstream.script(behaviour);
    expect(await ask('flash-listed')).toMatchObject({ status, attempts });
  });

  test('after the first content no other region is asked', async () => {
    upstream.script(cut({ afterEvents: 1 }));
    const answer = await server.ask('/server/gencompat/v1beta/models/flash-listed:streamGenerateContent?alt=sse', said('one two three'));
    expect(await answer.text()).toContain('"error"');
    expect(upstream.requests).toHaveLength(1);
  });

  test('a model that is missing in one region is remembered as absent there, and found in the next', async () => {
    upstream.script(always(on({ region: 'us-central1', model: 'gemini-2.0-flash' }, notFound('model'))));
    expect(await ask('flash-weighted')).toMatchObject({ status: 200, attempts: 2 });
    expect(await ask('flash-weighted')).toMatchObject({ status: 200, attempts: 1 });
  });

  test('a model that all regions lack without naming it falls back to the best of its tier', async () => {
    upstream.script(always(on({ model: 'gemini-2.5-pro' }, refusal(404, { message: 'Requested entity was not found.' }))));
    expect(await ask('gemini-2.5-pro')).toMatchObject({ status: 200, attempts: 8 });
    expect(upstream.requests.map(({ model }) => model)).toEqual([...seven.map(() => 'gemini-2.5-pro'), 'gemini-2.0-pro']);
  });

  test('a residency is never left', async () => {
    upstream.script(always(tooMany()));
    expect((await ask('flash-resident')).status).toBe(429);
    expect(regionsAsked()).toEqual(['us-south1', 'us-west1']);
  });

  test(proves('gencompat.answer-format', ' whatever region answers, chat completions too get their own form'), async () => {
    upstream.script(tooMany());
    const answer = await server.ask(chat, { model: 'flash-listed', messages: [{ role: 'user', content: 'hi' }] });
    expect(await answer.json()).toMatchObject({ object: 'chat.completion', choices: [{ finish_reason: 'stop' }] });
    expect(answer.headers.get('x-dragoman-region')).toBe('us-east1');
  });
});

describe('a region in cooldown', () => {
  test('is skipped, shown as such, and used again once it recovers', async () => {
    const own = await startTestServer({
      yaml: `
providers:
  pool: ${provider(upstream.url, seven.slice(0, 2))}
models:
  gemini-2.5-flash: { targets: [{ provider: pool }] }
routing: { cooldownSeconds: 1 }
`,
    });
    const metric = async () =>
      /dragoman_region_ok\{provider="pool",region="us-central1",model="gemini-2.5-flash"\} (\d)/.exec(await (await own.ask('/metrics')).text())?.[1];
    upstream.script(on({ region: 'us-central1' }, tooMany({ retryAfter: 1 })));
    expect(await metric()).toBe('1');
    for (let at = 0; at < 5; at++) expect((await ask('flash', 'hi', own)).status).toBe(200);
    expect(regionsAsked().filter((region) => region === 'us-central1')).toHaveLength(1);
    expect(await metric()).toBe('0');
    const { items } = (await (await own.ask('/server/admin/regions')).json()) as { items: object[] };
    expect(items).toEqual([
      {
        provider: 'pool',
        region: 'us-central1',
        model: 'gemini-2.5-flash',
        state: 'cooling',
        until: expect.stringMatching(/Z$/) as string,
        latencyMs: null,
        successRate: 0.8,
      },
      { provider: 'pool', region: 'us-east1', model: 'gemini-2.5-flash', state: 'ok', until: null, latencyMs: expect.any(Number) as number, successRate: 1 },
    ]);
    const again = (await (await own.ask('/server/admin/regions/reset', {})).json()) as { items: { state: string }[] };
    expect(again.items.map(({ state }) => state)).toEqual(['ok', 'ok']);
    upstream.script(on({ region: 'us-central1' }, tooMany({ retryAfter: 1 })));
    expect((await ask('flash', 'hi', own)).attempts).toBe(2);
    await expect.poll(async () => (await ask('flash', 'hi', own)).headers.get('x-dragoman-region'), { timeout: 30_000 }).toBe('us-central1');
    expect(await metric()).toBe('1');
    await own.close();
  });
});

describe('signing in', () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  let folder: string;
  let office: Server;
  let asked: URLSearchParams[];
  let answer: { status: number; body: unknown };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'dragoman-account-'));
    office = createServer((request, response) => {
      let text = '';
      request.on('data', (piece: Buffer) => (text += piece.toString()));
      request.on('end', () => {
        asked.push(new URLSearchParams(text));
        response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body));
      });
    });
    await new Promise<void>((resolve) => office.listen(0, '127.0.0.1', resolve));
    const account = {
      type: 'service_account',
      client_email: 'us@my-project.example',
      private_key_id: 'kid-1',
      private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
      token_uri: `http://127.0.0.1:${(office.address() as AddressInfo).port}/token`,
    };
    await writeFile(join(folder, 'key.json'), JSON.stringify(account));
  });
  afterAll(async () => {
    office.close();
    await rm(folder, { recursive: true, force: true });
  });

  const withAccount = () =>
    startTestServer({
      yaml: `
providers:
  pool: { dialect: gemini, kind: vertex, project: p, baseUrl: "${upstream.url}/{region}/v1", credentials: { serviceAccountFile: "${folder}/key.json" }, regions: [us-east1, us-east4] }
models:
  gemini-2.5-flash: { targets: [{ provider: pool }] }
routing: { cooldownSeconds: 0 }
`,
    });

  test('a service account fetches one token for all waiting requests, signed with its key', async () => {
    asked = [];
    answer = { status: 200, body: { access_token: 'ya29.fresh', expires_in: 3599, token_type: 'Bearer' } };
    const own = await withAccount();
    const all = await Promise.all(Array.from({ length: 20 }, () => ask('gemini-2.5-flash', 'hi', own)));
    await own.close();
    expect(all.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(new Set(upstream.requests.map(({ key }) => key))).toEqual(new Set(['ya29.fresh']));
    expect(asked).toHaveLength(1);
    expect(asked[0]?.get('grant_type')).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer');
    const [head, claims, signature] = asked[0]!.get('assertion')!.split('.') as [string, string, string];
    expect(createVerify('RSA-SHA256').update(`${head}.${claims}`).verify(publicKey, signature, 'base64url')).toBe(true);
    const { iss, scope, exp, iat } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, unknown>;
    expect([iss, scope, (exp as number) - (iat as number)]).toEqual(['us@my-project.example', 'https://www.googleapis.com/auth/cloud-platform', 3600]);
  });

  test('a rejected token is replaced for the next request', async () => {
    asked = [];
    const own = await withAccount();
    upstream.script(badKey());
    expect((await ask('gemini-2.5-flash', 'hi', own)).status).toBe(502);
    expect((await ask('gemini-2.5-flash', 'hi', own)).status).toBe(200);
    await own.close();
    expect(asked).toHaveLength(2);
  });

  test('a token that worked before and is rejected now is replaced within the request, once', async () => {
    asked = [];
    const own = await withAccount();
    expect((await ask('gemini-2.5-flash', 'hi', own)).status).toBe(200);
    upstream.script(badKey());
    expect((await ask('gemini-2.5-flash', 'hi', own)).status).toBe(200);
    expect([asked.length, upstream.requests.length]).toEqual([2, 3]);
    upstream.script(badKey(), badKey());
    expect((await ask('gemini-2.5-flash', 'hi', own)).status).toBe(502);
    await own.close();
    expect([asked.length, upstream.requests.length]).toEqual([3, 5]);
  });

  test('without a token no region is asked, and the client does not learn the reason', async () => {
    asked = [];
    answer = { status: 401, body: { error: 'invalid_grant', error_description: 'secret detail' } };
    const own = await withAccount();
    const { status, body, attempts } = await ask('gemini-2.5-flash', 'hi', own);
    await own.close();
    expect([status, attempts, upstream.requests.length]).toEqual([502, 1, 0]);
    expect(JSON.stringify(body)).not.toContain('secret');
  });
});

test('with the order `fastest` the fastest region is asked first once all latencies are known', async () => {
  const own = await startTestServer({
    yaml: `
providers:
  pool: ${provider(upstream.url, seven.slice(0, 3), ', order: fastest')}
models:
  gemini-2.5-flash: { targets: [{ provider: pool }] }
`,
  });
  upstream.script(always(on({ region: 'us-east1' }, ok())), always(slowThinker(0.2)));
  for (let at = 0; at < 3; at++) await ask('gemini-2.5-flash', 'hi', own);
  expect(regionsAsked()).toEqual(seven.slice(0, 3));
  for (let at = 0; at < 3; at++) await ask('gemini-2.5-flash', 'hi', own);
  await own.close();
  expect(regionsAsked().slice(3)).toEqual(['us-east1', 'us-east1', 'us-east1']);
});
