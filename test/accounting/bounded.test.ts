/* What many calls at once may cost together where none of them names a maximum. */
import { afterAll, afterEach, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { onServer } from '../support/databases.ts';
import { booked, tally, twoMachines } from './exactness.ts';
import { always, on, refusal, says, startUpstream, talkative, type Upstream } from '../support/fakes/upstream/index.ts';
import { startCluster } from '../support/cluster.ts';
import { startTestServer, providerYaml, type TestServer } from '../support/server.ts';
import { loggedBy, newMember, type Member, type Served } from '../support/members.ts';
import { proves } from '../support/proves.ts';

const address = inject('postgres');
const server = onServer(address ?? '');
const minute = 60_000;
const step = 2048;
const plan = 200_000;
/** Output tokens of the models that have a limit. */
const most = 12_000;

const yaml = `  talker: { targets: [{ provider: fake }], limits: { output: ${most} }, price: { input: 1, output: 1 } }
  unknown: { targets: [{ provider: fake }], price: { input: 1, output: 1 } }
  small: { targets: [{ provider: fake, model: small-up }], limits: { output: ${most} }, larger: talker }
  guarded: { targets: [{ provider: fake }], limits: { output: ${most} } }
  judge: { targets: [{ provider: fake, model: judge-up }], limits: { output: ${most} } }
  gpt-image-1: { targets: [{ provider: fake }], price: { input: 1, output: 1 } }
  voice: { targets: [{ provider: fake }] }
  whisper-1: { targets: [{ provider: fake }] }
guard: { checks: [{ name: judge, when: [before], kind: moderation, model: judge, action: flag, models: [guarded], onFailure: allow }] }
`;

const root = '/server/chatcompat/v1';
const messages = [{ role: 'user', content: 'hello' }];

/** A request without a maximum to each interface that lets it out, by its path. */
const faces: readonly (readonly [string, (model: string, more?: object) => readonly [path: string, body: object]])[] = [
  ['chat', (model, more) => [`${root}/chat/completions`, { model, messages, ...more }]],
  ['completions', (model, more) => [`${root}/completions`, { model, prompt: 'hello', ...more }]],
  ['responses', (model, more) => [`${root}/responses`, { model, input: 'hello', ...more }]],
  ['gencompat', (model, more) => [`/server/gencompat/v1beta/models/${model}:generateContent`, { contents: [{ parts: [{ text: 'hello' }] }], ...more }]],
];
const [[, chat]] = faces as [(typeof faces)[number]];

const post = ({ url }: Served, { keys }: Member, [path, body]: readonly [string, object | FormData]) =>
  fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${keys[0]}`, ...(body instanceof FormData ? {} : { 'content-type': 'application/json' }) },
    body: body instanceof FormData ? body : JSON.stringify(body),
  });

/** An upstream that answers when all calls have come to it or were refused. */
interface Talking {
  readonly upstream: Upstream;
  readonly gate: PromiseWithResolvers<void>;
}

/** The steps of checks are numbered from here. */
const firstCheck = 1_000_000_000;

/** Asked before or besides the model that answers. */
const others = new Set(['judge-up', 'small-up']);

/** This many of a request at once, over all servers. @returns how many had each status, and what is booked of them */
async function atOnce(servers: readonly Served[], member: Member, many: number, request: readonly [string, object | FormData], talking?: Talking) {
  let came = 0;
  const asked = Array.from({ length: many }, async (_, at) => {
    const answer = await post(servers[at % servers.length]!, member, request);
    came++;
    return answer;
  });
  if (talking) {
    await expect
      .poll(() => came + talking.upstream.requests.filter(({ model }) => !others.has(model)).length, { timeout: 30_000 })
      .toBeGreaterThanOrEqual(many);
    talking.gate.resolve();
  }
  const answers = await Promise.all(asked);
  const refusals = new Set<string>();
  for (const answer of answers) {
    if (answer.status === 429) refusals.add(/"(insufficient_quota|rate_limit_exceeded|RESOURCE_EXHAUSTED)"/.exec(await answer.clone().text())?.[1] ?? '');
    if (answer.status === 429 && talking) expect(answer.headers.get('retry-after')).toBe('1');
  }
  const counts = await tally(answers.map((answer) => Promise.resolve(answer)));
  const answered = async () => (await loggedBy(servers[0]!, member.id)).filter((row) => row.planTokens > 0 && row.step < firstCheck).length;
  await expect.poll(answered, { timeout: 30_000 }).toBe(counts[200] ?? 0);
  const rows = await loggedBy(servers[0]!, member.id);
  return { counts, refusals, rows, planTokens: rows.reduce((sum, row) => sum + row.planTokens, 0) };
}

describe('one process, embedded', () => {
  let upstream: Upstream;
  let server: TestServer;
  beforeAll(async () => {
    upstream = await startUpstream();
    server = await startTestServer({ upstream: upstream.url, yaml });
  });
  afterEach(() => upstream.reset());
  afterAll(async () => {
    await server.close();
    await upstream.close();
  });

  const talks = (tokens = most): Talking => {
    const gate = Promise.withResolvers<void>();
    upstream.script(always(on({ model: 'judge-up' }, talkative(10))), always(talkative(tokens, gate.promise)));
    return { upstream, gate };
  };

  test.each(faces)(
    proves('Q-02', '120 concurrent whole answers without a maximum stay within the plan, however many tokens their provider generates: %s'),
    async (_, request) => {
      const member = await newMember(server, { monthlyTokens: plan });
      const { counts, refusals, rows, planTokens } = await atOnce([server], member, 120, request('talker'), talks());
      expect(planTokens).toBeLessThanOrEqual(plan + rows.length * step);
      expect(planTokens).toBeGreaterThan(plan / 2);
      expect(counts[200]).toBeGreaterThan(10);
      expect((counts[200] ?? 0) + (counts[429] ?? 0)).toBe(120);
      expect(refusals).not.toContain('insufficient_quota');
    },
    2 * minute,
  );

  test(
    proves('Q-02', 'the same holds if the output limit of the model is unknown, and with several candidates'),
    async () => {
      const member = await newMember(server, { monthlyTokens: plan });
      const { planTokens, rows, counts } = await atOnce([server], member, 120, chat('unknown', { n: 2 }), talks(1_000_000));
      expect(planTokens).toBeLessThanOrEqual(plan + rows.length * step);
      expect(counts[200]).toBeGreaterThan(4);
    },
    2 * minute,
  );

  test(
    proves('Q-02', 'the same holds for a plan in US dollars'),
    async () => {
      const member = await newMember(server, { monthlyUsd: plan / 1e6 });
      const { planTokens, rows, refusals } = await atOnce([server], member, 120, chat('talker'), talks());
      expect(planTokens).toBeLessThanOrEqual(plan + rows.length * step); // each costs a millionth of a dollar
      expect(planTokens).toBeGreaterThan(plan / 2);
      expect([...refusals]).toEqual(['rate_limit_exceeded']);
    },
    2 * minute,
  );

  test(
    proves('Q-02', 'the same holds if a larger model takes over'),
    async () => {
      upstream.script(always(on({ model: 'small-up' }, refusal(400, { code: 'context_length_exceeded', message: 'The context length is exceeded.' }))));
      const member = await newMember(server, { monthlyTokens: plan });
      const { planTokens, counts } = await atOnce([server], member, 60, chat('small'), talks());
      expect(planTokens).toBeLessThanOrEqual(plan + 60 * step);
      expect(counts[200]).toBeGreaterThan(5);
    },
    2 * minute,
  );

  test(
    proves('Q-02', 'the same holds if a moderation model is asked about each of them first'),
    async () => {
      const member = await newMember(server, { monthlyTokens: plan });
      const { planTokens, rows } = await atOnce([server], member, 60, chat('guarded'), talks());
      expect(rows.some((row) => row.step > 0)).toBe(true);
      expect(planTokens).toBeLessThanOrEqual(plan + rows.length * step);
    },
    2 * minute,
  );

  test(
    proves('Q-02', 'the reservation for pictures depends on their number: many at once stay within the plan'),
    async () => {
      upstream.script(always(says(/images/, 'application/json', '{"data":[{"url":"https://x.example/a"}],"usage":{"input_tokens":5,"output_tokens":24960}}')));
      const member = await newMember(server, { monthlyTokens: plan });
      const { planTokens, rows, counts } = await atOnce([server], member, 40, [`${root}/images/generations`, { prompt: 'a cat', n: 4, quality: 'high' }]);
      expect(planTokens).toBeLessThanOrEqual(plan + rows.length * step);
      expect(counts[200]).toBeGreaterThan(5);
      const dollars = await newMember(server, { monthlyUsd: plan / 1e6 });
      const priced = await atOnce([server], dollars, 40, [`${root}/images/generations`, { prompt: 'a cat', n: 4 }]);
      expect(priced.planTokens).toBeLessThanOrEqual(plan + priced.rows.length * step);
    },
    2 * minute,
  );

  test(
    proves('Q-02', 'the reservation for speech and transcriptions depends on the size of the input'),
    async () => {
      upstream.script(always(says(/audio/, 'application/json', '{"text":"…","usage":{"input_tokens":3000,"output_tokens":900}}')));
      const form = new FormData();
      form.set('file', new Blob([new Uint8Array(400_000)]), 'a.mp3');
      const recorded = await newMember(server, { monthlyTokens: 20_000 });
      const transcribed = await atOnce([server], recorded, 60, [`${root}/audio/transcriptions`, form]);
      expect(transcribed.planTokens).toBeLessThanOrEqual(20_000 + transcribed.rows.length * step);
      upstream.reset();
      upstream.script(always(says(/audio/, 'text/event-stream', 'data: {"usage":{"input_tokens":1000,"output_tokens":7000}}\n\n')));
      const speaking = await newMember(server, { monthlyTokens: 40_000 });
      const spoken = await atOnce([server], speaking, 60, [
        `${root}/audio/speech`,
        { model: 'voice', input: 'word '.repeat(1000), voice: 'alloy', stream_format: 'sse' },
      ]);
      expect(spoken.planTokens).toBeLessThanOrEqual(40_000 + spoken.rows.length * step);
      expect(spoken.counts[200]).toBeGreaterThan(1);
    },
    2 * minute,
  );

  test('a single call without a maximum may use the output limit of its model, or the remaining quota', async () => {
    upstream.script(always(talkative(100)));
    const sent = async (member: Member, model: string, more: object = {}) => {
      const at = upstream.requests.length;
      const answer = await post(server, member, chat(model, more));
      await answer.arrayBuffer();
      return { ...(upstream.requests[at]!.json as Record<string, unknown>), warnings: answer.headers.get('x-dragoman-warnings') };
    };
    const free = await newMember(server);
    const counted = await newMember(server, { requestsPerMinute: 100, concurrentStreams: 5 });
    const rich = await newMember(server, { monthlyTokens: plan });
    const poor = await newMember(server, { monthlyTokens: 1500 });
    for (const [member, model] of [
      [free, 'talker'],
      [free, 'unknown'],
      [counted, 'unknown'],
      [rich, 'talker'],
    ] as const)
      expect(await sent(member, model)).toEqual({ model, messages, warnings: null });
    const bounded = await sent(rich, 'unknown');
    expect(bounded).toMatchObject({ max_tokens: 4 * step });
    expect(bounded.warnings).toContain('max_tokens');
    const short = (await sent(poor, 'talker')) as { max_tokens?: number };
    expect(short.max_tokens).toBeGreaterThan(1400);
    expect(short.max_tokens).toBeLessThan(1500);
    const thinking = (await sent(poor, 'talker', { stream: true, reasoning_effort: 'high' })) as { max_tokens?: number };
    expect(thinking.max_tokens).toBeLessThan(1500); // as nobody sees how much is thought
    expect(await sent(poor, 'talker', { stream: true })).not.toHaveProperty('max_tokens');
    expect(await sent(poor, 'talker', { max_tokens: 7 })).toEqual({ model: 'talker', messages, max_tokens: 7, warnings: null });
  });
});

describe.skipIf(!address)('on PostgreSQL', () => {
  const talk = async (): Promise<Talking> => {
    const upstream = await startUpstream();
    onTestFinished(upstream.close);
    const gate = Promise.withResolvers<void>();
    upstream.script(always(talkative(most, gate.promise)));
    return { upstream, gate };
  };

  const within = async (servers: readonly Served[], talking: Talking) => {
    const member = await newMember(servers[0]!, { monthlyTokens: plan });
    const { planTokens, rows, counts, refusals } = await atOnce(servers, member, 120, chat('talker'), talking);
    expect(planTokens).toBeLessThanOrEqual(plan + rows.length * step);
    expect(planTokens).toBeGreaterThan(plan / 3);
    expect(counts[200]).toBeGreaterThan(8);
    expect([...refusals]).toEqual(['rate_limit_exceeded']);
    await booked(servers[0]!, member.id, { requests: rows.length, planTokens });
  };

  test(
    proves('Q-02', 'two workers: whole answers without a maximum stay within the plan'),
    async () => {
      const talking = await talk();
      await within([await startCluster(await server.place(), providerYaml(talking.upstream.url) + yaml)], talking);
    },
    2 * minute,
  );

  test(
    proves('Q-02', 'two machines: whole answers without a maximum stay within the plan'),
    async () => {
      const talking = await talk();
      await within(await twoMachines(await server.place(), providerYaml(talking.upstream.url) + yaml), talking);
    },
    2 * minute,
  );
});
