import { describe, expect, test } from 'vitest';
import { everyWay, requestOf, type Face } from '../support/all-faces.ts';
import { always, failing, on, replay, says, usage, vectors } from '../support/fakes/upstream/index.ts';
import { loggedAs, newMember, type Logged } from '../support/members.ts';
import { scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  one: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k], headers: { x-fake: one } }
  two: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k], headers: { x-fake: two } }
  claude: { dialect: anthropic-messages, baseUrl: "${url}", apiKeys: [k] }
models:
  claude: { targets: [{ provider: claude }], price: { input: 2, output: 10, cached: 0.2, cacheWrite: 2.5, cacheWrite1h: 4 } }
  gpt: { targets: [{ provider: one }], price: { input: 2, output: 10, cached: 0.1, cacheWrite: 2.5 } }
  both:
    targets:
      - { provider: one, price: { input: 1, output: 2 } }
      - { provider: two, price: { input: 10, output: 20 } }
  embedding:
    kind: embedding
    targets:
      - { provider: one, price: { input: 1 } }
      - { provider: two, price: { input: 10 } }
  half-known: { targets: [{ provider: one, price: { input: 1, output: 2 } }, { provider: two }] }
  rated: { targets: [{ provider: one }], rate: { input: 1.1, output: 1.1 } }
  drawing: { targets: [{ provider: one }], price: { input: 0, picture: 0.04 } }
  sketching: { targets: [{ provider: one }], price: { input: 10, output: 40, picture: 0.001 } }
  speaking: { kind: speech, targets: [{ provider: one }], price: { input: 0, character: 0.00001 } }
  hearing: { targets: [{ provider: one }], price: { input: 0, second: 0.0001 } }
routing: { cooldownSeconds: 0 }
`,
}));

function littleEndian(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

const rowOf = (answer: Response): Promise<Logged> => loggedAs(server, answer.headers.get('x-request-id')!);

async function asked(face: Face, model: string, stream = false): Promise<{ readonly text: string; readonly row: Logged }> {
  const more = face === 'chat' && stream ? { stream_options: { include_usage: true } } : {};
  const { path, body } = requestOf(face, { model, content: 'hello', stream, more });
  const answer = await server.ask(path, body);
  return { text: await answer.text(), row: await rowOf(answer) };
}

describe('prompt tokens written to the cache of a provider', () => {
  const claude = {
    input_tokens: 100,
    cache_read_input_tokens: 1000,
    cache_creation_input_tokens: 100_500,
    cache_creation: { ephemeral_5m_input_tokens: 500, ephemeral_1h_input_tokens: 100_000 },
  };
  const frames = [
    { type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], usage: { ...claude, output_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Yes.' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ];

  test.each<[Face, RegExp]>([
    ['messages', /"cache_creation_input_tokens":100500.*"ephemeral_1h_input_tokens":100000/],
    ['chat', /"cache_write_tokens":100500/],
    ['responses', /"cache_write_tokens":100500/],
  ])('have their own price and are shown to a client of %s', async (face, shown) => {
    upstream.script(replay(frames.map((frame) => JSON.stringify(frame))));
    const { text, row } = await asked(face, 'claude', true);
    expect(text).toMatch(shown);
    expect(row).toMatchObject({ provenance: 'provider', inputTokens: 101_600, cachedTokens: 1000, cacheWriteTokens: 500, cacheWrite1hTokens: 100_000 });
    expect(row.costUsd! * 1e6).toBeCloseTo(100 * 2 + 1000 * 0.2 + 500 * 2.5 + 100_000 * 4 + 5 * 10);
  });

  test('are counted in forwarded answers too', async () => {
    const chunk = (choices: readonly object[], more: object) =>
      JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more });
    const told = { prompt_tokens: 5000, completion_tokens: 1, total_tokens: 5001, prompt_tokens_details: { cached_tokens: 1000, cache_write_tokens: 3000 } };
    upstream.script(replay([chunk([{ index: 0, delta: { role: 'assistant', content: 'Yes' }, finish_reason: 'stop' }], {}), chunk([], { usage: told })]));
    const { text, row } = await asked('chat', 'gpt', true);
    expect(text).toContain('"cache_write_tokens":3000');
    expect(row).toMatchObject({ inputTokens: 5000, cachedTokens: 1000, cacheWriteTokens: 3000 });
    expect(row.costUsd! * 1e6).toBeCloseTo(1000 * 2 + 1000 * 0.1 + 3000 * 2.5 + 10);
  });
});

describe('a model with a rate that is no whole number', () => {
  test.each([
    [90, 10, 110],
    [50, 40, 99],
    [100, 1, 112],
  ])('books %i and %i tokens as %i', async (input, output, planTokens) => {
    upstream.script(usage({ input, output }));
    expect((await asked('chat', 'rated')).row.planTokens).toBe(planTokens);
  });

  test('answers up to the limit', async () => {
    const member = await newMember(server, { monthlyTokens: 110 });
    const words = 'Say it. '.repeat(5);
    const body = (tokens: number) => ({ model: 'rated', messages: [{ role: 'user', content: words }], max_tokens: tokens });
    const refused = (await (await member.ask(body(1000))).json()) as { error: { message: string } };
    const most = Number(/max_tokens of (\d+)/.exec(refused.error.message)?.[1]);
    upstream.script(usage({ input: 100 - most, output: most }));
    expect((await member.ask(body(most + 1))).status).toBe(429);
    const answer = await member.ask(body(most));
    expect(answer.status).toBe(200);
    await answer.text();
    expect((await rowOf(answer)).planTokens).toBe(110);
  });
});

describe('a model whose targets have different prices', () => {
  test.each(everyWay)('costs the price of the target that answered (%s, streamed: %s)', async (face, stream) => {
    upstream.script(usage({ input: 1000, output: 100 }));
    expect((await asked(face, 'both', stream)).row.costUsd! * 1e6).toBeCloseTo(1200);
    upstream.script(on({ fake: 'one' }, failing(500)), on({ fake: 'two' }, usage({ input: 1000, output: 100 })));
    expect((await asked(face, 'both', stream)).row.costUsd! * 1e6).toBeCloseTo(12_000);
  });

  test('costs that of an embedding, too', async () => {
    const embedded = async () => {
      const answer = await server.ask('/server/chatcompat/v1/embeddings', { model: 'embedding', input: 'hello' });
      expect(answer.status).toBe(200);
      await answer.text();
      const { costUsd, inputTokens } = await rowOf(answer);
      return (costUsd! * 1e6) / inputTokens;
    };
    upstream.script(vectors());
    expect(await embedded()).toBeCloseTo(1);
    upstream.script(on({ fake: 'one' }, failing(500)), on({ fake: 'two' }, vectors()));
    expect(await embedded()).toBeCloseTo(10);
  });

  test('is available to users with a limit in US dollars, at the highest of its prices', async () => {
    const body = { model: 'both', messages: [{ role: 'user', content: 'hello' }], max_tokens: 100 };
    upstream.script(usage({ input: 10, output: 1 }));
    expect((await (await newMember(server, { monthlyUsd: 1 })).ask(body)).status).toBe(200);
    // a hundred tokens are 0.0002 at the cheaper one
    expect((await (await newMember(server, { monthlyUsd: 0.001 })).ask(body)).status).toBe(429);
  });

  test('has no price if that of one target is unknown, but the row has the price of the other', async () => {
    const body = { model: 'half-known', messages: [{ role: 'user', content: 'hello' }] };
    expect((await (await newMember(server, { monthlyUsd: 1 })).ask(body)).status).toBe(403);
    upstream.script(usage({ input: 1000, output: 100 }));
    expect((await asked('chat', 'half-known')).row.costUsd! * 1e6).toBeCloseTo(1200);
    upstream.script(on({ fake: 'one' }, failing(500)), on({ fake: 'two' }, usage({ input: 1000, output: 100 })));
    expect((await asked('chat', 'half-known')).row.costUsd).toBeNull();
  });
});

test.each(['chat', 'messages', 'responses', 'gencompat'] as const)(
  'an estimate costs the tier that was asked for, where the provider tells of none (%s)',
  async (face) => {
    const cost = async (more: object) => {
      upstream.script(usage('missing'));
      const { path, body } = requestOf(face, { model: face === 'messages' ? 'claude' : 'gpt', content: 'hello', stream: true, more });
      const answer = await server.ask(path, body);
      expect(answer.status).toBe(200);
      await answer.text();
      const { costUsd, inputTokens, outputTokens, provenance } = await rowOf(answer);
      expect(provenance).toBe('estimated');
      return (costUsd! * 1e6) / (2 * inputTokens + 10 * outputTokens);
    };
    const dear = {
      chat: { service_tier: 'priority' },
      responses: { service_tier: 'priority' },
      messages: { speed: 'fast' },
      gencompat: { serviceTier: 'priority' },
    }[face];
    expect(await cost({})).toBeCloseTo(1);
    expect(await cost(dear)).toBeCloseTo(2);
  },
);

describe('amounts that are not counted in tokens', () => {
  const root = '/server/chatcompat/v1';
  const picture = { b64_json: 'aGk=' };

  test('ten pictures without usage cost ten times their price, and 1,000 plan tokens each', async () => {
    upstream.script(says(/images/, 'application/json', JSON.stringify({ data: Array.from({ length: 10 }, () => picture) })));
    const answer = await server.ask(`${root}/images/generations`, { model: 'drawing', prompt: 'a cat', n: 10 });
    await answer.text();
    const row = await rowOf(answer);
    expect(row).toMatchObject({ outputTokens: 10_000, provenance: 'estimated' });
    expect([row.costUsd, row.planTokens >= 10_000]).toEqual([0.4, true]);
  });

  const told = { usage: { input_tokens: 0, output_tokens: 70 } };
  test.each([
    ['fewer than were asked for', { data: [picture, picture] }, 2000],
    ['with failed ones among them', { data: [picture, { error: { code: 'blocked', message: 'No.' } }, picture] }, 2000],
    ['fewer, with usage', { data: [picture, picture], ...told }, 70],
  ])('pictures cost as many as there are in the answer: %s', async (_, said, outputTokens) => {
    upstream.script(says(/images/, 'application/json', JSON.stringify(said)));
    const answer = await server.ask(`${root}/images/generations`, { model: 'drawing', prompt: 'a cat', n: 4 });
    expect(answer.status).toBe(200);
    await answer.text();
    const row = await rowOf(answer);
    expect(row).toMatchObject({ outputTokens });
    expect(row.costUsd).toBeCloseTo(0.08);
  });

  const finished = `data: ${JSON.stringify({ type: 'image_generation.completed', ...picture })}\n\n`;
  test.each([
    ['complete', 'data: [DONE]\n\n'],
    ['cut', 'data: {"type":"image_generation.partial_image","b64_json":"aG'],
  ])('streamed pictures cost as many as were finished, where the stream is %s', async (_, end) => {
    upstream.script(says(/images/, 'text/event-stream', `${finished}${end}`));
    const answer = await server.ask(`${root}/images/generations`, { model: 'drawing', prompt: 'a cat', n: 4, stream: true });
    await answer.text();
    expect((await rowOf(answer)).costUsd).toBeCloseTo(0.04);
  });

  const part = (one: object) => `data: ${JSON.stringify({ type: 'image_generation.partial_succeeded', ...picture, ...one })}\n\n`;
  test.each([
    ['complete', 'data: {"type":"image_generation.completed","usage":{"generated_images":3}}\n\ndata: [DONE]\n\n'],
    ['cut', 'data: {"type":"image_generation.partial_succeeded","b64_json":"aG'],
  ])('pictures that have events of their own before the last one are counted by these, where the stream is %s', async (_, end) => {
    const failed = 'data: {"type":"image_generation.partial_failed","error":{"code":"blocked"}}\n\n';
    upstream.script(says(/images/, 'text/event-stream', `${[0, 1, 2].map((at) => part({ image_index: at })).join('')}${failed}${end}`));
    const asks = { model: 'drawing', prompt: 'a cat', stream: true, sequential_image_generation_options: { max_images: 4 } };
    const answer = await server.ask(`${root}/images/generations`, asks);
    await answer.text();
    expect((await rowOf(answer)).costUsd).toBeCloseTo(0.12);
  });

  test('as many pictures as a prompt may become are set aside', async () => {
    const member = await newMember(server, { monthlyUsd: 0.3 });
    const body = JSON.stringify({ model: 'drawing', prompt: 'a cat', sequential_image_generation_options: { max_images: 10 } });
    const headers = { authorization: `Bearer ${member.keys[0]}`, 'content-type': 'application/json' };
    expect((await fetch(`${server.url}${root}/images/generations`, { method: 'POST', body, headers })).status).toBe(429);
  });

  test('more pictures than anybody asked for are not believed', async () => {
    upstream.script(says(/images/, 'application/json', JSON.stringify({ data: Array.from({ length: 5000 }, () => ({ url: 'x' })) })));
    const answer = await server.ask(`${root}/images/generations`, { model: 'drawing', prompt: 'a cat', n: 2 });
    await answer.text();
    expect((await rowOf(answer)).costUsd).toBeCloseTo(0.08);
  });

  test.each(['drawing', 'sketching'])('pictures that no provider made cost nothing and leave the quota unchanged: %s', async (model) => {
    upstream.script(always(failing(500)));
    const answer = await server.ask(`${root}/images/generations`, { model, prompt: 'a cat', n: 10 });
    expect(answer.status).toBe(502);
    expect(await rowOf(answer)).toMatchObject({ end: 'upstream-failed', planTokens: 0, costUsd: 0 });
  });

  test('speech costs by its characters, and twenty plan tokens per second, at fifteen characters per second', async () => {
    upstream.script(says(/speech/, 'audio/mpeg', Buffer.alloc(100)));
    const answer = await server.ask(`${root}/audio/speech`, { model: 'speaking', input: 'x'.repeat(1500), voice: 'alloy' });
    await answer.arrayBuffer();
    const row = await rowOf(answer);
    expect(row.outputTokens).toBe(2000);
    expect(row.costUsd).toBeCloseTo(0.015);
  });

  test('a transcript costs by the seconds that the provider reports, or by those of the recording', async () => {
    const form = new FormData();
    form.set('model', 'hearing');
    form.set('file', new File([Buffer.alloc(80_000)], 'a.mp3'));
    const costs: (number | null)[] = [];
    const answers = [
      '{"text":"hello","usage":{"type":"duration","seconds":600}}',
      '{"text":"hello"}',
      '{"task":"transcribe","duration":30.5,"text":"hello","segments":[]}',
      '{"task":"transcribe","duration":599.2,"text":"hello","usage":{"type":"duration","seconds":600}}',
    ];
    for (const told of answers) {
      upstream.script(says(/transcriptions/, 'application/json', told));
      const answer = await fetch(`${server.url}${root}/audio/transcriptions`, {
        method: 'POST',
        body: form,
        headers: { authorization: `Bearer ${server.key}` },
      });
      await answer.text();
      const row = await rowOf(answer);
      expect(row.inputTokens).toBe(told.includes('600') ? 12_000 : told.includes('30.5') ? 610 : 200);
      costs.push(row.costUsd);
    }
    expect(costs).toEqual([0.06, 0.001, 0.00305, 0.06]);
  });

  test.each(['', 'JUNK', 'bext'])('the seconds of a WAV are those of its format, also behind another chunk: %j', async (first) => {
    const chunk = (name: string, bytes: Buffer) => Buffer.concat([Buffer.from(name), littleEndian(bytes.length), bytes, Buffer.alloc(bytes.length % 2)]);
    const format = Buffer.concat([Buffer.from([1, 0, 2, 0]), littleEndian(48_000), littleEndian(192_000), Buffer.from([4, 0, 16, 0])]);
    const chunks = [...(first === '' ? [] : [chunk(first, Buffer.alloc(603))]), chunk('fmt ', format), chunk('data', Buffer.alloc(1_920_000))];
    const form = new FormData();
    form.set('model', 'hearing');
    form.set('response_format', 'text');
    form.set('file', new File([Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVE'), ...chunks])], 'a.wav'));
    upstream.script(says(/transcriptions/, 'text/plain', 'hello'));
    const sent = await fetch(`${server.url}${root}/audio/transcriptions`, { method: 'POST', body: form, headers: { authorization: `Bearer ${server.key}` } });
    await sent.text();
    const row = await rowOf(sent);
    expect(row.inputTokens).toBeGreaterThanOrEqual(200);
    expect(row.inputTokens).toBeLessThan(205);
    expect(row.costUsd).toBeCloseTo(0.001, 4);
  });

  test('a transcript whose tokens nobody counted has those of its text, however much JSON repeats it', async () => {
    const words = Array.from({ length: 100 }, (_, at) => ({ word: 'hello', start: at / 2, end: at / 2 + 0.4 }));
    for (const [format, type, answer] of [
      [
        'verbose_json',
        'application/json',
        JSON.stringify({ task: 'transcribe', duration: 50, text: 'hello', words, usage: { type: 'duration', seconds: 50 } }),
      ],
      ['json', 'application/json', '{"text":"hello"}'],
      ['text', 'text/plain', 'hello'],
    ] as const) {
      const form = new FormData();
      form.set('model', 'hearing');
      form.set('response_format', format);
      form.set('file', new File([Buffer.alloc(80_000)], 'a.mp3'));
      upstream.script(says(/transcriptions/, type, answer));
      const sent = await fetch(`${server.url}${root}/audio/transcriptions`, { method: 'POST', body: form, headers: { authorization: `Bearer ${server.key}` } });
      expect(await sent.text()).toBe(answer);
      expect([format, (await rowOf(sent)).outputTokens]).toEqual([format, 1]);
    }
  });
});
