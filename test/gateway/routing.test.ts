import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { always, bytes, errorEvent, failing, on, refusal, tooMany } from '../support/fakes/upstream/index.ts';
import { askFace, faces } from '../support/all-faces.ts';
import { chat } from '../support/server.ts';
import { administrate, askWith, newMember } from '../support/members.ts';
import { scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  one: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [sk-one] }
  two: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [sk-two] }
  responses: { dialect: openai-responses, baseUrl: "${url}/v1", apiKeys: [sk-responses] }
  claude: { dialect: anthropic-messages, baseUrl: "${url}", apiKeys: [sk-claude] }
  gemini: { dialect: gemini, baseUrl: "${url}/v1beta", apiKeys: [sk-gemini] }
models:
  small: { targets: [{ provider: one, model: small-1 }], larger: big, price: { input: 1, output: 2 } }
  small-responses: { targets: [{ provider: responses, model: small-2 }], larger: big }
  small-claude: { targets: [{ provider: claude, model: small-3 }], larger: big }
  small-gemini: { targets: [{ provider: gemini, model: small-4 }], larger: big }
  big: { targets: [{ provider: two, model: big-1 }], larger: huge, price: { input: 10, output: 20 }, aliases: [grand] }
  huge: { targets: [{ provider: claude, model: huge-1 }] }
  secret: { targets: [{ provider: two, model: secret-1 }] }
  spread: { targets: [{ provider: one, model: spread, weight: 1 }, { provider: two, model: spread, weight: 1 }] }
  twin: { targets: [{ provider: one, model: small-1 }], larger: small }
  both: { targets: [{ provider: one, model: small-1 }, { provider: two, model: both-1 }] }
  vectors: { kind: embedding, targets: [{ provider: one, model: vectors-1 }] }
  others: { kind: embedding, targets: [{ provider: two, model: vectors-2 }] }
routing: { cooldownSeconds: 0, retryBudget: 1 }
`,
}));

const said = (content: string, more: object = {}) => ({ model: 'small', messages: [{ role: 'user', content }], ...more });

async function ask(body: object, headers: Record<string, string> = {}, path = chat) {
  const answer = await server.ask(path, body, { headers });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text, json: text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : undefined };
}

const asked = () => upstream.requests.map(({ model, json }) => model || (json as { model?: string }).model);
const tooLong = (model: string) =>
  on({ model }, refusal(400, { code: 'context_length_exceeded', message: "This model's maximum context length is 8192 tokens." }));

interface Logged {
  readonly requestId: string;
  readonly model: string;
  readonly servedModel: string;
  readonly costUsd: number | null;
  readonly tags?: Record<string, string>;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly end: string;
  readonly attempts: number;
  readonly steps?: readonly Logged[];
}

/** The books reach the database a moment later. */
async function logged(requestId: string, steps = 1): Promise<Logged> {
  for (;;) {
    const found = await administrate<Logged>(server, 'GET', `/logs/${requestId}`).catch(() => undefined);
    if (found && 1 + (found.steps?.length ?? 0) >= steps) return found;
    await sleep(20);
  }
}

describe('a conversation that is too long for a model', () => {
  test.each([
    ['small', 'small-1', { code: 'context_length_exceeded', message: "This model's maximum context length is 8192 tokens." }],
    ['small', 'small-1', { code: null, message: 'Prompt contains 9000 tokens, too large for model with 8192 maximum context length' }],
    ['small-responses', 'small-2', { code: 'context_length_exceeded', message: 'Your input exceeds the context window of this model.' }],
    ['small-claude', 'small-3', { message: 'prompt is too long: 210000 tokens > 200000 maximum' }],
    ['small-claude', 'small-3', { message: 'input length and `max_tokens` exceed context limit: 199900 + 8192 > 200000' }],
    ['small', 'small-1', { code: null, message: 'Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)' }],
    ['small-claude', 'small-3', { message: 'Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)' }],
    ['small', 'small-1', { code: 'model_max_prompt_tokens_exceeded', message: 'prompt token count of 140000 exceeds the limit of 128000' }],
    ['small-gemini', 'small-4', { message: 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).' }],
  ])('is answered by the larger model of the settings, and the answer names it: %s', async (model, upstreamName, words) => {
    upstream.script(on({ model: upstreamName }, refusal(400, words)));
    const { status, headers, json } = await ask(said('a long story', { model }));
    expect(status).toBe(200);
    expect(asked()).toEqual([upstreamName, 'big-1']);
    expect(json).toMatchObject({ model: 'big-1' });
    expect(headers.get('x-dragoman-warnings')).toBe(`model: the conversation exceeds the context of ${model}, so big answers instead`);
    expect(headers.get('x-dragoman-provider')).toBe('two');
    expect(headers.get('x-dragoman-attempts')).toBe('2');
  });

  test('is answered so in a stream too, whose bytes are forwarded unparsed', async () => {
    upstream.script(tooLong('small-1'));
    const { status, headers, text } = await ask(said('a long story', { stream: true }));
    expect(status).toBe(200);
    expect(headers.get('x-dragoman-warnings')).toContain('big answers instead');
    expect(text).toContain('"model":"big-1"');
    expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true);
    expect((upstream.requests[1]!.json as { model: string }).model).toBe('big-1');
  });

  test('is answered so even if a stream begins and fails with its first event', async () => {
    upstream.script(on({ model: 'small-1' }, errorEvent({ status: 400, type: 'invalid_request_error', code: 'context_length_exceeded', message: 'too long' })));
    const { status, text } = await ask(said('a long story', { stream: true }));
    expect(status).toBe(200);
    expect(asked()).toEqual(['small-1', 'big-1']);
    expect(text).toContain('"model":"big-1"');
  });

  test('moves on to the next larger one, and each is booked separately, at its own price', async () => {
    upstream.script(tooLong('small-1'), on({ model: 'big-1' }, refusal(400, { code: 'context_length_exceeded' })));
    const { status, headers } = await ask(said('a very long story'));
    expect(status).toBe(200);
    expect(asked()).toEqual(['small-1', 'big-1', 'huge-1']);
    const id = headers.get('x-request-id')!;
    expect(await logged(id, 3)).toMatchObject({
      model: 'small',
      costUsd: 0,
      end: 'upstream-failed',
      steps: [
        { model: 'small', costUsd: 0 },
        { model: 'small', servedModel: 'huge-1', costUsd: null, end: 'completed' },
      ],
    });
  });

  test('is refused as before if the largest is too small, if the caller may not use the larger one, or if the caller is strict', async () => {
    upstream.script(always(tooLong('small-1')), always(tooLong('big-1')), on({ model: 'huge-1' }, refusal(400, { message: 'prompt is too long' })));
    const refused = { status: 400, json: { error: { code: 'context_length_exceeded' } } };
    expect(await ask(said('a story'))).toMatchObject(refused);
    expect(asked()).toEqual(['small-1', 'big-1', 'huge-1']);
    upstream.reset();
    upstream.script(always(tooLong('small-1')));
    expect(await ask(said('a story'), { 'x-dragoman-strict': 'true' })).toMatchObject(refused);
    const { id } = await newMember(server);
    const { key } = await administrate<{ key: string }>(server, 'POST', `/users/${id}/keys`, { name: 'narrow', models: ['small'] });
    const answer = await askWith(server, key, said('a story'));
    expect(answer.status).toBe(400);
    expect(asked()).toEqual(['small-1', 'small-1']);
  });

  test.each([
    ['of requests', { modelLimits: { big: { requestsPerMinute: 0 } } }],
    ['of tokens', { modelLimits: { big: { monthlyTokens: 0 } } }],
  ])('is refused as before if a limit %s keeps the caller from the larger one', async (_, limits) => {
    upstream.script(always(tooLong('small-1')));
    const { ask: askAs } = await newMember(server, limits);
    const answer = await askAs(said('a story'));
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { code: 'context_length_exceeded' } });
    expect(asked()).toEqual(['small-1']);
  });

  test('is not sent again to the target that refused it, as that of the larger model', async () => {
    upstream.script(always(tooLong('small-1')));
    expect(await ask(said('a story', { model: 'twin' }))).toMatchObject({ status: 400, json: { error: { code: 'context_length_exceeded' } } });
    expect(asked()).toEqual(['small-1']);
  });

  test('any other refusal is no reason to ask another model', async () => {
    upstream.script(refusal(400, { code: 'invalid_value', message: 'Invalid value.' }));
    expect((await ask(said('hello'))).status).toBe(400);
    expect(asked()).toEqual(['small-1']);
  });
});

describe('x-dragoman-targets', () => {
  const choose = (names: string) => ({ 'x-dragoman-targets': names });

  test('names models that are tried in that order in place of the requested one', async () => {
    upstream.script(on({ model: 'big-1' }, failing(503)));
    const { status, json, headers } = await ask(said('hello'), choose('big, huge,small'));
    expect(status).toBe(200);
    expect(asked()).toEqual(['big-1', 'huge-1']);
    expect(json).toMatchObject({ model: 'huge-1' });
    expect(await logged(headers.get('x-request-id')!, 2)).toMatchObject({
      model: 'small',
      end: 'upstream-failed',
      attempts: 1,
      steps: [{ model: 'small', servedModel: 'huge-1', attempts: 1 }],
    });
  });

  test.each(faces)('names models that are asked whatever the request itself names, through %s', async (face) => {
    const answer = await askFace(server, face, { model: 'nobody', content: 'hello', stream: false, headers: choose('big') });
    expect(answer.status).toBe(200);
    expect(asked()).toEqual(['big-1']);
  });

  test('works in every interface, embeddings too', async () => {
    await ask({ contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }, choose('big'), '/server/gencompat/v1beta/models/small:generateContent');
    await ask({ model: 'small', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }, choose('big'), '/server/messages/v1/messages');
    await ask({ model: 'small', input: 'hi' }, choose('big'), '/server/chatcompat/v1/responses');
    await ask({ model: 'vectors', input: 'hi' }, choose('others'), '/server/chatcompat/v1/embeddings');
    expect(asked()).toEqual(['big-1', 'big-1', 'big-1', 'vectors-2']);
  });

  test('an alias of a model that is already named is not tried again', async () => {
    upstream.script(always(failing(503)));
    expect((await ask(said('hello'), choose('big,grand,huge'))).status).toBe(503);
    expect(asked()).toEqual(['big-1', 'huge-1']);
  });

  test('a target that has failed is not asked again as one of another model', async () => {
    upstream.script(always(failing(503)));
    const { status, headers } = await ask(said('hello'), choose('small,both,twin'));
    expect(status).toBe(503);
    expect(headers.get('x-dragoman-attempts')).toBe('2');
    expect(asked()).toEqual(['small-1', 'both-1']);
  });

  test.each([
    ['tokens', { modelLimits: { big: { monthlyTokens: 0 } } }, 'big'],
    ['requests', { modelLimits: { big: { requestsPerMinute: 0 } } }, 'big'],
    ['dollars, where it has no price', { monthlyUsd: 5 }, 'huge'],
  ])("a model that a limit of %s keeps the caller from is passed over after another has failed: that one's short wait is returned", async (_, limits, name) => {
    upstream.script(always(on({ model: 'small-1' }, failing(503))));
    const { ask: askAs } = await newMember(server, limits);
    const first = await askAs(said('hello'), { headers: choose(`small,${name}`) });
    expect(first.status).toBe(503);
    expect(Number(first.headers.get('retry-after') ?? 0)).toBeLessThan(60);
    expect((await askAs(said('hello'), { headers: choose(`small,${name},${name === 'big' ? 'secret' : 'big'}`) })).status).toBe(200);
  });

  test('when all fail, the shortest wait is returned', async () => {
    upstream.script(on({ model: 'big-1' }, tooMany({ retryAfter: 7 })), on({ model: 'secret-1' }, failing(503)));
    const { status, headers } = await ask(said('hello'), choose('big,secret'));
    expect(status).toBe(429);
    expect(headers.get('retry-after')).toBe('7');
  });

  test.each([408, 409, 424, 425, 499])('after %i from one model the next is asked', async (status) => {
    upstream.script(refusal(status));
    expect((await ask(said('hello'), choose('big,huge'))).status).toBe(200);
    expect(asked()).toEqual(['big-1', 'huge-1']);
  });

  test.each([411, 412, 414, 415, 416, 417, 421, 426, 428, 431, 451])('after %i from one model no other is asked', async (status) => {
    upstream.script(refusal(status));
    expect((await ask(said('hello'), choose('big,huge'))).status).toBe(502);
    expect(asked()).toEqual(['big-1']);
  });

  test('a wait until a date is understood from a provider that does not say what time it is', async () => {
    const until = new Date(Date.now() + 40_000).toUTCString();
    upstream.script(bytes(`HTTP/1.1 429 Too Many Requests\r\nretry-after: ${until}\r\ncontent-length: 0\r\n\r\n`));
    const { status, headers } = await ask(said('hello'), choose('big'));
    expect([status, Number(headers.get('retry-after')) > 25]).toEqual([429, true]);
  });

  test("a model's fault about the caller's own mistake is returned at once", async () => {
    upstream.script(refusal(400));
    expect((await ask(said('hello'), choose('big,huge'))).status).toBe(400);
    expect(asked()).toEqual(['big-1']);
  });

  test('a key that is restricted to some models chooses among these only', async () => {
    const { id } = await newMember(server);
    const { key } = await administrate<{ key: string }>(server, 'POST', `/users/${id}/keys`, { name: 'narrow', models: ['small', 'big'] });
    const answer = await askWith(server, key, said('hello'), { headers: choose('big,secret') });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      error: { param: 'x-dragoman-targets', message: expect.stringContaining('`secret`, which does not exist or you do not have access') as string },
    });
    expect((await askWith(server, key, said('hello'), { headers: choose('big') })).status).toBe(200);
    expect(asked()).toEqual(['big-1']);
  });

  test.each(['', ',', 'big,', 'nobody', 'vectors', '__proto__', 'constructor', 'a,b,c,d,e,f,g,h,i', 'big,big,big,big,big,big,big,big,big', 'n'.repeat(201)])(
    'an invalid choice is refused by name: %j',
    async (names) => {
      const { status, json } = await ask(said('hello'), choose(names));
      expect(status).toBe(400);
      expect(json).toMatchObject({ error: { param: 'x-dragoman-targets' } });
      expect(upstream.requests).toHaveLength(0);
    },
  );
});

describe('x-dragoman-tags', () => {
  const tagged = (tags: string) => ({ 'x-dragoman-tags': tags });

  test('are logged, and usage is grouped by them', async () => {
    const requests = [
      await ask(said('one'), tagged('team=search, env=prod')),
      await ask(said('two words'), tagged('env=prod,team=search')),
      await ask(said('three'), tagged('team=ads')),
      await ask(said('four'), tagged('project=a b/c:d@e+f')),
      await ask(said('five')),
    ];
    for (const { status } of requests) expect(status).toBe(200);
    const ids = requests.map(({ headers }) => headers.get('x-request-id')!);
    expect(await logged(ids[0]!)).toMatchObject({ tags: { team: 'search', env: 'prod' } });
    expect(await logged(ids[3]!)).toMatchObject({ tags: { project: 'a b/c:d@e+f' } });
    expect(await logged(ids[4]!)).toMatchObject({ requestId: ids[4] });
    expect(await administrate<Logged>(server, 'GET', `/logs/${ids[4]}`)).toMatchObject({ tags: {} });
    type Items = { items: Record<string, unknown>[] };
    const byTeam = await administrate<Items>(server, 'GET', '/usage?groupBy=tag:team');
    const team = Object.fromEntries(byTeam.items.map((item) => [item['tag:team'], item['requests']]));
    expect(team).toMatchObject({ search: 2, ads: 1 });
    const all = await administrate<Items>(server, 'GET', '/usage');
    expect(byTeam.items.reduce((sum, item) => sum + Number(item['planTokens']), 0)).toBe(all.items[0]!['planTokens']);
    const both = await administrate<Items>(server, 'GET', '/usage?groupBy=tag:env,tag:team,model');
    expect(both.items).toContainEqual(expect.objectContaining({ 'tag:env': 'prod', 'tag:team': 'search', model: 'small', requests: 2 }));
    const recent = await administrate<Items>(
      server,
      'GET',
      `/usage?groupBy=tag:team&from=${new Date(Date.now() - 50_000).toISOString()}&to=${new Date(Date.now() + 50_000).toISOString()}`,
    );
    expect(recent.items).toContainEqual(expect.objectContaining({ 'tag:team': 'search' }));
  });

  test.each([
    '',
    'team',
    'team=',
    '=x',
    'team=a,team=b',
    '__proto__=x',
    '1=x',
    "team=a'b",
    'team=a;b',
    `${'n'.repeat(33)}=x`,
    `n=${'v'.repeat(65)}`,
    'a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9',
    `a=1,${' '.repeat(600)}b=2`,
  ])('an invalid tag is refused by name: %j', async (tags) => {
    const { status, json } = await ask(said('hello'), tagged(tags));
    expect(status).toBe(400);
    expect(json).toMatchObject({ error: { param: 'x-dragoman-tags' } });
    expect(upstream.requests).toHaveLength(0);
  });

  test.each(['tag:', "tag:a'b", 'tag:1', `tag:${'n'.repeat(33)}`, 'tag'])('usage cannot be grouped by %j', async (word) => {
    const answer = await server.ask(`/server/admin/usage?groupBy=${encodeURIComponent(word)}`);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: expect.stringMatching(/^groupBy must be/) as string });
  });
});

test('a conversation stays with its provider turn after turn, others use other providers, and a busy provider is left nevertheless', async () => {
  const turns = (opening: string, more: object[] = []) => ({
    model: 'spread',
    messages: [{ role: 'system', content: 'Be kind.' }, { role: 'user', content: opening }, ...more],
  });
  const provider = async (body: object) => (await ask(body)).headers.get('x-dragoman-provider');
  const first = new Map<string, string | null>();
  for (let at = 0; at < 24; at++) first.set(`story ${at}`, await provider(turns(`story ${at}`)));
  expect(new Set(first.values())).toEqual(new Set(['one', 'two']));
  for (const [opening, who] of first)
    expect(
      await provider(
        turns(opening, [
          { role: 'assistant', content: 'yes' },
          { role: 'user', content: 'go on' },
        ]),
      ),
    ).toBe(who);
  const [opening, who] = [...first][0]!;
  upstream.script(on({ key: `sk-${who}` }, tooMany()));
  expect(await provider(turns(opening))).toBe(who === 'one' ? 'two' : 'one');
});
