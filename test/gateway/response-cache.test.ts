import { describe, expect, onTestFinished, test } from 'vitest';
import { askFace, everyWay, faces, type AskingFace, type Face } from '../support/all-faces.ts';
import { cut, errorEvent, failing, ok, on, always, pace, thinking, toolCalls, vectors } from '../support/fakes/upstream/index.ts';
import { startTestServer } from '../support/server.ts';
import { administrate, askWith, loggedBy, newMember } from '../support/members.ts';
import { proves } from '../support/proves.ts';
import { scriptedServer } from '../support/scripted-server.ts';

const model = 'kept';

const { upstream, server } = await scriptedServer(({ url }) => ({
  upstream: url,
  yaml: `  kept: { targets: [{ provider: fake, model: kept-up }], aliases: [held] }
  named: { targets: [{ provider: fake, model: named-up }], aliases: [called] }
  brief: { targets: [{ provider: fake, model: brief-up }] }
  vectors: { kind: embedding, targets: [{ provider: fake, model: vectors-up }] }
defaults: { followUp: kept }
cache: { kept: { ttlSeconds: 600 }, brief: { ttlSeconds: 0.05 }, called: { ttlSeconds: 600 } }
routing: { cooldownSeconds: 0 }
`,
}));
const member = await newMember(server);

let questions = 0;
/** Words that no test has asked before. */
const fresh = () => `question ${questions++}`;
const face = (one: Face, asking: Partial<AskingFace>, key = member.keys[0]!) =>
  askFace({ url: server.url, key }, one, { model, content: fresh(), stream: false, ...asking });
const cacheOf = ({ headers }: { readonly headers: Headers }) => headers.get('x-dragoman-cache');
const ask = (content: string, more: object = {}, headers: Record<string, string> = {}) =>
  member.ask({ model, messages: [{ role: 'user', content }], ...more }, { headers });

test.each(['chat', 'responses'] as const)('of %s, a cached whole answer can be streamed with stream_options', async (one) => {
  const content = fresh();
  const more = { stream_options: one === 'chat' ? { include_usage: true } : { include_obfuscation: false } };
  const answers = [await face(one, { content }), await face(one, { content, stream: true, more }), await face(one, { content, stream: true })];
  expect(answers.map(cacheOf)).toEqual(['miss', 'hit', 'hit']);
  if (one === 'chat') expect(answers.map(({ raw }) => raw.includes('"total_tokens"'))).toEqual([true, true, false]);
});

describe.each(everyWay)('%s, streamed: %s', (one, stream) => {
  test('an equal request of the same user is answered again without a provider', async () => {
    const content = fresh();
    const first = await face(one, { content, stream });
    const second = await face(one, { content, stream });
    expect([cacheOf(first), cacheOf(second)]).toEqual(['miss', 'hit']);
    expect(upstream.requests).toHaveLength(1);
    expect(second).toMatchObject({ status: 200, complete: true, text: `You said: ${content}` });
    expect(second.text).toBe(first.text);
    expect(second.headers.get('x-dragoman-provider')).toBeNull();
  });

  test('a cached whole answer can be streamed, and vice versa', async () => {
    const content = fresh();
    const first = await face(one, { content, stream });
    const second = await face(one, { content, stream: !stream });
    expect([cacheOf(first), cacheOf(second)]).toEqual(['miss', 'hit']);
    expect(second).toMatchObject({ status: 200, complete: true, text: first.text });
    expect(upstream.requests).toHaveLength(1);
  });

  test('a failed answer is not cached', async () => {
    const content = fresh();
    upstream.script(failing(500), ok({ text: 'good' }));
    expect((await face(one, { content, stream })).status).toBe(502);
    expect(await face(one, { content, stream })).toMatchObject({ status: 200, text: 'good' });
  });
});

describe.each(faces)('%s', (one) => {
  test(proves('T-09', "another user's equal request goes to the provider"), async () => {
    const content = fresh();
    const other = await newMember(server);
    const [mine, theirs] = [await face(one, { content }), await face(one, { content }, other.keys[0])];
    expect([cacheOf(mine), cacheOf(theirs)]).toEqual(['miss', 'miss']);
    expect(upstream.requests).toHaveLength(2);
  });

  test('a truncated stream is not cached', async () => {
    const content = fresh();
    upstream.script(cut({ afterEvents: 3 }), errorEvent({ afterEvents: 3 }), ok({ text: 'all of it' }));
    expect((await face(one, { content, stream: true })).complete).toBe(false);
    expect((await face(one, { content, stream: true })).complete).toBe(false);
    expect(await face(one, { content, stream: true })).toMatchObject({ complete: true, text: 'all of it' });
    expect(upstream.requests).toHaveLength(3);
  });
});

test('a cached chat completion is exactly the one that the provider sent', async () => {
  const content = fresh();
  const [first, second] = [await face('chat', { content }), await face('chat', { content })];
  expect(cacheOf(second)).toBe('hit');
  expect(JSON.parse(second.raw)).toEqual(JSON.parse(first.raw));
  const passthrough = await face('chat', { content, headers: { 'x-dragoman-cache': 'no-store' } }); // its bytes pass unread
  const saidBy = ({ raw, text }: { readonly raw: string; readonly text: string }) => {
    const { model, usage } = JSON.parse(raw) as Record<string, unknown>;
    return { text, model, usage };
  };
  expect(saidBy(passthrough)).toEqual(saidBy(second));
});

describe('equal', () => {
  test.each([
    ['a field of the sampling', { temperature: 0.5 }],
    ['the maximum', { max_tokens: 99 }],
    ['a field that is only carried', { service_tier: 'flex' }],
    ['a tool', { tools: [{ type: 'function', function: { name: 'f' } }] }],
    ['the form of the answer', { response_format: { type: 'json_object' } }],
    ['another candidate', { n: 2 }],
  ])('are not requests that differ in %s', async (_name, more) => {
    const content = fresh();
    await (await ask(content)).text();
    expect(cacheOf(await ask(content, more))).toBe('miss');
    expect(cacheOf(await ask(content, more))).toBe('hit');
    expect(cacheOf(await ask(`${content} `))).toBe('miss');
  });

  test('are not requests of which one is strict', async () => {
    const content = fresh();
    await (await ask(content)).text();
    expect(cacheOf(await ask(content, {}, { 'x-dragoman-strict': 'true' }))).toBe('miss');
  });
});

describe('the cache stores', () => {
  test('thoughts and tool calls with their IDs', async () => {
    const content = fresh();
    upstream.script(thinking('let me see', 'seen'), toolCalls([{ name: 'f', json: '{"a":1}' }]));
    const thought = [await ask(content), await ask(content)];
    expect(await thought[1]!.text()).toContain('let me see');
    const tools = { tools: [{ type: 'function', function: { name: 'f' } }] };
    const call = async () => {
      const answer = await ask(content, tools);
      return [cacheOf(answer), ((await answer.json()) as { choices: { message: { tool_calls: unknown } }[] }).choices[0]!.message.tool_calls];
    };
    const [[first, calls], [second, again]] = [await call(), await call()];
    expect([first, second]).toEqual(['miss', 'hit']);
    expect(again).toEqual(calls);
  });

  test.each(['length', 'content_filter'])('no answers that ended with %s', async (finish) => {
    const content = fresh();
    upstream.script(ok({ finish }), ok({ finish }));
    expect([cacheOf(await ask(content)), cacheOf(await ask(content))]).toEqual(['miss', 'miss']);
  });

  test('no answers whose client disconnected before the end', async () => {
    const content = fresh();
    upstream.script(pace(50, ok({ text: 'one two three four five six seven eight nine ten' })));
    const leaving = new AbortController();
    const answer = await member.ask({ model, stream: true, messages: [{ role: 'user', content }] }, { signal: leaving.signal });
    await answer.body!.getReader().read();
    leaving.abort();
    await upstream.closed(0);
    expect(cacheOf(await ask(content))).toBe('miss');
  });

  test('no answers of more than a megabyte', async () => {
    const content = fresh();
    upstream.script(ok({ text: 'long '.repeat(300_000) }));
    await (await ask(content)).text();
    expect(cacheOf(await ask(content))).toBe('miss');
  });

  test('no embeddings', async () => {
    upstream.script(always(on({ path: /embeddings/ }, vectors())));
    const embed = () => server.ask('/server/chatcompat/v1/embeddings', { model: 'vectors', input: 'x' }, { headers: { 'x-dragoman-cache': '60' } });
    for (let turn = 0; turn < 2; turn++) {
      const answer = await embed();
      expect([answer.status, cacheOf(answer)]).toEqual([200, null]);
    }
    expect(upstream.requests).toHaveLength(2);
  });

  test('stored responses with an ID of their own each', async () => {
    const content = fresh();
    const respond = async () => {
      const answer = await server.ask('/server/chatcompat/v1/responses', { model, input: content, store: true });
      return { cache: cacheOf(answer), ...((await answer.json()) as { id: string; output: unknown[] }) };
    };
    const [first, second] = [await respond(), await respond()];
    expect([first.cache, second.cache]).toEqual(['miss', 'hit']);
    expect(second.id).not.toBe(first.id);
    for (const { id } of [first, second]) expect((await server.ask(`/server/chatcompat/v1/responses/${id}`)).status).toBe(200);
  });
});

describe('the lifetime of a cached answer', () => {
  test('is 0 if neither the settings nor the request give one', async () => {
    const content = fresh();
    const answer = async () => cacheOf(await ask(content, { model: 'gpt-4o-mini' }));
    expect([await answer(), await answer()]).toEqual([null, null]);
    expect(upstream.requests).toHaveLength(2);
  });

  test('can be set by a request if the settings give none', async () => {
    const content = fresh();
    const answer = async (seconds: string) => cacheOf(await ask(content, { model: 'gpt-4o-mini' }, { 'x-dragoman-cache': seconds }));
    expect([await answer('60'), await answer('60'), await answer('no-store'), await answer('0')]).toEqual(['miss', 'hit', null, null]);
    expect(upstream.requests).toHaveLength(3);
  });

  test('can be set by a request if the settings give one', async () => {
    const content = fresh();
    for (const header of ['no-store', '0']) expect(cacheOf(await ask(content, {}, { 'x-dragoman-cache': header }))).toBeNull();
    expect(cacheOf(await ask(content))).toBe('miss');
    expect(cacheOf(await ask(content))).toBe('hit');
  });

  test('can be set by a background request too', async () => {
    const path = '/server/chatcompat/v1/responses';
    const content = fresh();
    const answer = async (headers: Record<string, string>) => {
      const { id } = (await (await server.ask(path, { model, input: content, background: true }, { headers })).json()) as { id: string };
      const status = async () => ((await (await server.ask(`${path}/${id}`)).json()) as { status: string }).status;
      await expect.poll(status, { timeout: 30_000 }).toBe('completed');
      return upstream.requests.length;
    };
    const none = { 'x-dragoman-cache': 'no-store' };
    expect([await answer(none), await answer(none), await answer({}), await answer({})]).toEqual([1, 2, 3, 3]);
  });

  test('depends on the model that answers, under any of its names in the settings', async () => {
    const answer = async (asked: string, headers: Record<string, string> = {}) => cacheOf(await ask(fresh(), { model: asked }, headers));
    expect([await answer('held'), await answer('named'), await answer('called')]).toEqual(['miss', 'miss', 'miss']);
    const choosing = (targets: string) => ({ 'x-dragoman-targets': targets });
    expect(await answer('kept', choosing('gpt-4o-mini'))).toBeNull();
    expect(await answer('gpt-4o-mini', choosing('kept'))).toBe('miss');
  });

  test('expires', async () => {
    const content = fresh();
    const answer = async () => cacheOf(await ask(content, { model: 'brief' }));
    expect(await answer()).toBe('miss');
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(await answer()).toBe('miss');
  });

  test.each(['soon', '-1', '1.5', '99999999999', '1e3'])('cannot be %s, which is 400 and names the header, on every interface', async (header) => {
    for (const one of faces) {
      const answer = await face(one, { headers: { 'x-dragoman-cache': header } });
      expect(answer.status).toBe(400);
      expect(answer.raw).toContain('x-dragoman-cache');
    }
    expect(upstream.requests).toHaveLength(0);
  });

  test('ends with new settings, in which a name may mean another model', async () => {
    const own = await startTestServer({ upstream: upstream.url, yaml: 'cache: { "*": { ttlSeconds: 600 } }\n' });
    onTestFinished(own.close);
    const answer = async () => cacheOf(await askWith(own, own.key, { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'hello' }] }));
    expect([await answer(), await answer()]).toEqual(['miss', 'hit']);
    await own.change('cache: { gpt-4o-mini: { ttlSeconds: 600 } }\n');
    expect([await answer(), await answer()]).toEqual(['miss', 'hit']);
    await own.change('');
    expect(await answer()).toBeNull();
  });

  test('ends with new settings even for an answer that was in progress then', async () => {
    const yaml = 'cache: { "*": { ttlSeconds: 600 } }\n';
    const own = await startTestServer({ upstream: upstream.url, yaml });
    onTestFinished(own.close);
    const answer = () => askWith(own, own.key, { model: 'gpt-4o-mini', stream: true, messages: [{ role: 'user', content: 'hello' }] });
    upstream.script(pace(100, ok({ text: 'one two three four' })));
    const early = await answer();
    await own.change(`${yaml}routing: { cooldownSeconds: 0 }\n`);
    expect(await early.text()).toContain('[DONE]');
    const late = await answer();
    await late.text();
    expect([cacheOf(early), cacheOf(late)]).toEqual(['miss', 'miss']);
  });
});

describe('accounting', () => {
  test(proves('Q-13', 'has a row for a cached answer, which costs nothing and is marked as cached'), async () => {
    const someone = await newMember(server, { monthlyTokens: 1_000_000, requestsPerMinute: 1000 });
    const content = fresh();
    const body = { model, messages: [{ role: 'user', content }] };
    const remaining = async () => Number((await someone.ask(body)).headers.get('x-ratelimit-remaining-tokens'));
    await remaining();
    const [second, third] = [await remaining(), await remaining()];
    expect(third).toBe(second);
    expect(third).toBeLessThan(1_000_000);
    await expect.poll(async () => (await loggedBy(server, someone.id)).length, { timeout: 30_000 }).toBe(3);
    const [miss, ...hits] = await loggedBy(server, someone.id);
    expect(miss!.planTokens).toBeGreaterThan(0);
    expect(miss!.provenance).toBe('provider');
    for (const hit of hits)
      expect(hit).toMatchObject({ provenance: 'cached', planTokens: 0, costUsd: 0, status: 200, end: 'completed', outputTokens: miss!.outputTokens });
  });

  test('marks no answer as cached whose question was worded anew by a cached one', async () => {
    const someone = await newMember(server);
    const message = [
      { user: 'me', message: `What is a ${fresh()}?` },
      { user: 'gpt', message: 'It is a bird.' },
      { user: 'me', message: 'And where does it live?' },
    ];
    const query = () =>
      fetch(`${server.url}/server/query`, {
        method: 'POST',
        body: JSON.stringify({ message, dataset: 'all', model: 'gpt-4o-mini' }),
        headers: { authorization: `Bearer ${someone.keys[0]!}`, 'content-type': 'application/json' },
      });
    const answers = [await query(), await query()];
    expect(answers.map((answer) => [answer.status, cacheOf(answer)])).toEqual([
      [200, null],
      [200, null],
    ]);
    const provenances = async () => {
      const rows = await loggedBy(server, someone.id);
      return [0, 10_000_000].map((wanted) => rows.flatMap(({ step, provenance }) => (step === wanted ? [provenance] : [])).toSorted());
    };
    await expect.poll(provenances, { timeout: 30_000 }).toEqual([
      ['provider', 'provider'],
      ['cached', 'provider'],
    ]);
  });

  test('requires no quota for a cached answer', async () => {
    const someone = await newMember(server, { monthlyTokens: 1_000_000 });
    const content = fresh();
    const body = { model, messages: [{ role: 'user', content }] };
    expect((await someone.ask(body)).status).toBe(200);
    await administrate(server, 'PATCH', `/users/${someone.id}`, { monthlyTokens: 0 });
    await expect.poll(async () => (await someone.ask({ ...body, seed: 1 })).status, { timeout: 30_000 }).toBe(429);
    const hit = await someone.ask(body);
    expect([hit.status, cacheOf(hit)]).toEqual([200, 'hit']);
  });
});

test('a key that is restricted to other models does not get the cached answers of its user', async () => {
  const content = fresh();
  const { key: narrow } = await administrate<{ key: string }>(server, 'POST', `/users/${member.id}/keys`, { name: 'narrow', models: ['gpt-4o-mini'] });
  const { key: fitting } = await administrate<{ key: string }>(server, 'POST', `/users/${member.id}/keys`, { name: 'fitting', models: [model] });
  await (await ask(content)).text();
  const with_ = (key: string) => askWith(server, key, { model, messages: [{ role: 'user', content }] });
  expect((await with_(narrow)).status).toBe(404);
  expect(cacheOf(await with_(fitting))).toBe('hit');
});

test('checks apply to a cached answer as to any other, and a masked request is cached in its masked form', async () => {
  const checks = (action: string) =>
    `cache: { "*": { ttlSeconds: 600 } }\nguard: { checks: [{ name: mail, when: [before, after], kind: pii, entities: [email], action: ${action} }] }\n`;
  const own = await startTestServer({ upstream: upstream.url, yaml: checks('mask') });
  onTestFinished(own.close);
  upstream.script(ok({ text: 'It is ann@example.com.' }));
  const answer = async (content: string) => {
    const said = await askWith(own, own.key, { model: 'gpt-4o-mini', messages: [{ role: 'user', content }] });
    return [cacheOf(said), ((await said.json()) as { choices: { message: { content: string } }[] }).choices[0]!.message.content];
  };
  expect(await answer('whose is a@example.com?')).toEqual(['miss', 'It is [EMAIL].']);
  expect(await answer('whose is b@example.com?')).toEqual(['hit', 'It is [EMAIL].']);
});

test('equal concurrent requests may each go upstream, and all are answered', async () => {
  const content = fresh();
  const answers = await Promise.all(Array.from({ length: 8 }, () => ask(content)));
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200));
  expect(cacheOf(await ask(content))).toBe('hit');
});
