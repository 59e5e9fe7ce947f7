import { describe, expect, test } from 'vitest';
import { body, replay, type Behaviour } from '../support/fakes/upstream/index.ts';
import { askFace, faces, type Face } from '../support/all-faces.ts';
import { loggedAs, newMember } from '../support/members.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** What providers bill beside tokens, or bill tokens at another rate for. */

const price = 'price: { input: 1000, output: 1000, search: 0.25 }';
const { upstream, server } = await scriptedServer((one) => ({
  yaml: everyWire(one, price).replace('models:\n', `models:\n  quick: { targets: [{ provider: chat, model: gpt-5.5 }], ${price} }\n`),
}));

async function costOf({ headers }: { readonly headers: Headers }): Promise<number | undefined> {
  const answer = await server.ask(`/server/admin/logs/${headers.get('x-request-id')!}`);
  return ((await answer.json()) as { readonly costUsd?: number }).costUsd;
}

const search = (query: string) => ({ id: `ws_${query}`, type: 'web_search_call', status: 'completed', action: { type: 'search', query } });
const opened = { id: 'ws_o', type: 'web_search_call', status: 'completed', action: { type: 'open_page', url: 'https://a.example' } };
const said = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'Sun.', annotations: [] }] };
const response = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'm',
  output: [search('a'), opened, search('b'), said],
  usage: { input_tokens: 10, output_tokens: 10, total_tokens: 20 },
};
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'Sun.' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 10, output_tokens: 10, server_tool_use: { web_search_requests: 2 } },
};
const content = {
  candidates: [
    {
      content: { role: 'model', parts: [{ text: 'Sun.' }] },
      finishReason: 'STOP',
      index: 0,
      groundingMetadata: { webSearchQueries: ['a', 'b'], groundingChunks: [] },
    },
  ],
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 10, totalTokenCount: 20 },
  modelVersion: 'm',
};

const whole: Readonly<Record<string, Behaviour>> = {
  responses: body(JSON.stringify(response)),
  messages: body(JSON.stringify(message)),
  gemini: body(JSON.stringify(content)),
};
const streamed: Readonly<Record<string, Behaviour>> = {
  responses: replay([JSON.stringify({ type: 'response.completed', response })]),
  messages: replay(
    [
      { type: 'message_start', message: { ...message, content: [], stop_reason: null, usage: { input_tokens: 10, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Sun.' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: message.usage },
      { type: 'message_stop' },
    ].map((frame) => JSON.stringify(frame)),
  ),
  gemini: replay([JSON.stringify(content)]),
};

describe.each(['responses', 'messages', 'gemini'])('web searches of a provider of %s', (model) => {
  test.each(faces)('cost what the settings say, for %s clients', async (face) => {
    for (const stream of [false, true]) {
      upstream.script((stream ? streamed : whole)[model]!);
      const answer = await askFace(server, face, { model, content: 'weather?', stream });
      expect(answer).toMatchObject({ status: 200, text: 'Sun.' });
      await expect.poll(() => costOf(answer), { timeout: 30_000 }).toBeCloseTo(0.52, 9);
    }
  });
});

const completion = (tier: string, model = 'm') => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model,
  service_tier: tier,
  choices: [{ index: 0, message: { role: 'assistant', content: 'Sun.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
});
const chunks = (tier: string, model = 'm') =>
  [
    { choices: [{ index: 0, delta: { role: 'assistant', content: 'Sun.' }, finish_reason: null }] },
    { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
    { choices: [], usage: completion(tier).usage },
  ].map((one) => JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model, service_tier: tier, ...one }));

test.each<[Face, string, number]>([
  ['chat', 'flex', 0.01],
  ['chat', 'priority', 0.04],
  ['chat', 'default', 0.02],
  ['chat', 'fast', 0.04],
  ['chat', 'ultrafast', 0.12],
  ['messages', 'flex', 0.01],
])('a chat provider that serves %s clients in the tier %s is paid its rate, and the tier is shown', async (face, tier, cost) => {
  for (const stream of [false, true]) {
    upstream.script(stream ? replay(chunks(tier)) : body(JSON.stringify(completion(tier))));
    const answer = await askFace(server, face, { model: 'chat', content: 'weather?', stream });
    expect(answer).toMatchObject({ status: 200, text: 'Sun.' });
    if (face === 'chat') expect(answer.raw).toContain(`"service_tier":"${tier}"`);
    await expect.poll(() => costOf(answer), { timeout: 30_000 }).toBeCloseTo(cost, 9);
  }
});

test.each([
  ['gpt-5.5-2026-04-23', 'priority', 2.5],
  ['gpt-5.5', 'fast', 2.5],
  ['gpt-5.5', 'flex', 0.5],
  ['gpt-5.4', 'priority', 2],
  ['gpt-5-mini-2025-08-07', 'priority', 1.8],
  ['gpt-5', 'fast', 2],
  ['gpt-4.1-mini', 'priority', 1.75],
  ['gpt-4.1-nano', 'priority', 2],
  ['openai/gpt-5.5', 'priority', 2.5],
  ['gpt-4o-2024-05-13', 'priority', 1.75],
  ['gpt-4o-2024-08-06', 'priority', 1.7],
  ['o3-2025-04-16', 'priority', 1.75],
])('%s in the tier %s costs %f times as much, by either interface of a provider', async (model, tier, times) => {
  for (const stream of [false, true]) {
    const served = { ...response, output: [said], model, service_tier: tier, usage: { input_tokens: 10, output_tokens: 10, total_tokens: 20 } };
    const scripts: Readonly<Record<string, Behaviour>> = {
      chat: stream ? replay(chunks(tier, model)) : body(JSON.stringify(completion(tier, model))),
      responses: stream ? replay([JSON.stringify({ type: 'response.completed', response: served })]) : body(JSON.stringify(served)),
    };
    for (const provider of ['chat', 'responses']) {
      upstream.script(scripts[provider]!);
      const answer = await askFace(server, 'chat', { model: provider, content: 'weather?', stream });
      expect(answer).toMatchObject({ status: 200, text: 'Sun.' });
      await expect.poll(() => costOf(answer), { timeout: 30_000 }).toBeCloseTo(0.02 * times, 9);
    }
  }
});

test.each([
  ['chat', 'priority', 'priority'],
  ['messages', 'priority', 'priority'],
  ['messages', 'standard', 'default'],
])('a client of either OpenAI interface learns that a provider of %s served in the tier %s', async (model, told, tier) => {
  for (const stream of [false, true]) {
    for (const face of ['chat', 'responses'] as const) {
      const chat = stream ? replay(chunks(told)) : body(JSON.stringify(completion(told)));
      upstream.script(model === 'chat' ? chat : tiered['messages']!(stream, { service_tier: told }));
      const { raw } = await askFace(server, face, { model, content: 'weather?', stream, more: { service_tier: 'auto' } });
      const last = raw.split('\n').findLast((line) => line.includes('"service_tier"'));
      expect(last).toContain(`"service_tier":"${tier}"`);
    }
  }
});

/** Answers of ten tokens in and ten out. @param told what the usage says of the tier; in a stream of messages at the beginning. @param last what it says at the end of one */
const tiered: Readonly<Record<string, (stream: boolean, told: object, last?: object) => Behaviour>> = {
  messages: (stream, told, last = {}) => {
    const one = { ...message, usage: { input_tokens: 10, output_tokens: 10, ...told } };
    if (!stream) return body(JSON.stringify(one));
    const frames = [
      { type: 'message_start', message: { ...one, content: [], stop_reason: null, usage: { ...one.usage, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Sun.' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 10, ...last } },
      { type: 'message_stop' },
    ];
    return replay(frames.map((frame) => JSON.stringify(frame)));
  },
  gemini: (stream, told) => {
    const [{ content: said, finishReason }] = content.candidates as [(typeof content.candidates)[0]];
    const one = JSON.stringify({ ...content, candidates: [{ content: said, finishReason, index: 0 }], usageMetadata: { ...content.usageMetadata, ...told } });
    return stream ? replay([one]) : body(one);
  },
};

test.each<[string, object, number]>([
  ['messages', { speed: 'fast', inference_geo: 'global' }, 0.04],
  ['messages', { speed: 'standard', inference_geo: 'us' }, 0.022],
  ['messages', { speed: 'fast', inference_geo: 'us' }, 0.044],
  ['messages', { speed: 'standard', inference_geo: 'not_available', service_tier: 'priority' }, 0.02],
  ['gemini', { serviceTier: 'flex' }, 0.01],
  ['gemini', { serviceTier: 'priority' }, 0.036],
  ['gemini', { serviceTier: 'standard' }, 0.02],
  ['gemini', { trafficType: 'ON_DEMAND' }, 0.02],
  ['gemini', { trafficType: 'ON_DEMAND_FLEX' }, 0.01],
  ['gemini', { trafficType: 'ON_DEMAND_PRIORITY' }, 0.036],
])('a provider of %s whose usage says %j is paid its rate', async (model, told, cost) => {
  for (const face of faces) {
    for (const stream of [false, true]) {
      upstream.script(tiered[model]!(stream, told));
      const answer = await askFace(server, face, { model, content: 'weather?', stream });
      expect(answer).toMatchObject({ status: 200, text: 'Sun.' });
      await expect.poll(() => costOf(answer), { timeout: 30_000 }).toBeCloseTo(cost, 9);
    }
  }
});

test('what a provider of messages samples beside the answer is booked, and its clients read the usage as it came', async () => {
  const summary = { type: 'compaction', input_tokens: 100, output_tokens: 350, cache_read_input_tokens: 40, cache_creation_input_tokens: 60 };
  const advice = { type: 'advisor_message', model: 'wiser', input_tokens: 1000, output_tokens: 20 };
  const iterations = [summary, { type: 'message', input_tokens: 10, output_tokens: 10 }, advice];
  for (const stream of [false, true]) {
    for (const more of [{}, { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }]) {
      upstream.script(tiered['messages']!(stream, { iterations }));
      const asking = { model: 'messages', content: 'weather?', stream, more: { max_tokens: 20, ...more } };
      const answer = await askFace(server, 'messages', asking);
      expect(answer).toMatchObject({ status: 200, text: 'Sun.' });
      expect(answer.raw).toMatch(/"iterations":\[\{"type":"compaction"/);
      expect(answer.raw).toMatch(/"input_tokens":10,/);
      const row = await loggedAs(server, answer.headers.get('x-request-id')!);
      expect(row).toMatchObject({ provenance: 'provider', inputTokens: 1210, outputTokens: 380, cachedTokens: 40, cacheWriteTokens: 60 });
      expect(row.costUsd).toBeCloseTo(1.59, 9);
    }
  }
});

test('what is told at the end of a stream counts beside the input, also where that is taken back', async () => {
  const iterations = [{ type: 'compaction', input_tokens: 100, output_tokens: 20 }];
  for (const last of [{ iterations }, { input_tokens: 10, iterations }, { input_tokens: 0, iterations }]) {
    upstream.script(tiered['messages']!(true, {}, last));
    const answer = await askFace(server, 'messages', { model: 'messages', content: 'weather?', stream: true, more: { max_tokens: 20 } });
    expect(answer).toMatchObject({ status: 200, text: 'Sun.' });
    expect(await loggedAs(server, answer.headers.get('x-request-id')!)).toMatchObject({ inputTokens: 110, outputTokens: 30 });
  }
});

test.each<[Face, string, object, object]>([
  ['chat', 'chat', { max_tokens: 10 }, { service_tier: 'fast' }],
  ['messages', 'messages', { max_tokens: 10 }, { speed: 'fast' }],
  ['gencompat', 'gemini', { generationConfig: { maxOutputTokens: 10 } }, { service_tier: 'priority' }],
  ['gencompat', 'gemini', { generationConfig: { maxOutputTokens: 10 } }, { serviceTier: 'SERVICE_TIER_PRIORITY' }],
])('what a dearer tier costs is set aside: %s %s %j %j', async (face, model, most, tier) => {
  const { keys } = await newMember(server, { monthlyUsd: 0.03 });
  const ask = (more: object) => askFace({ url: server.url, key: keys[0]! }, face, { model, content: 'weather?', stream: false, more: { ...most, ...more } });
  expect((await ask(tier)).status).toBe(429);
  upstream.script(model === 'chat' ? body(JSON.stringify(completion('default'))) : tiered[model]!(false, {}));
  expect((await ask({})).status).toBe(200);
});

test.each<[Face, string, object, object, number]>([
  ['chat', 'quick', { max_tokens: 1000 }, { service_tier: 'priority' }, 2.5],
  ['gencompat', 'gemini', { generationConfig: { maxOutputTokens: 1000 } }, { serviceTier: 'priority' }, 2],
])('%s clients that ask %s for a dearer tier have what it costs at most set aside, under whatever name', async (face, model, most, tier, times) => {
  const ask = async (monthlyUsd: number) => {
    const { keys } = await newMember(server, { monthlyUsd });
    upstream.script(model === 'quick' ? body(JSON.stringify(completion('default'))) : tiered[model]!(false, {}));
    const answer = await askFace({ url: server.url, key: keys[0]! }, face, { model, content: 'weather?', stream: false, more: { ...most, ...tier } });
    upstream.reset();
    return answer.status;
  };
  expect(await ask(times - 0.05)).toBe(429);
  expect(await ask(times + 0.1)).toBe(200);
});
