import OpenAI, { toFile } from 'openai';
import { describe, expect, test } from 'vitest';
import { cut, neverEnds, says, type Behaviour } from '../../support/fakes/upstream/index.ts';
import { loggedAs } from '../../support/members.ts';
import { scriptedServer } from '../../support/scripted-server.ts';

/* Events of pictures, transcripts and speech, which pass unparsed: how they end when the provider fails. */

const targets = { one: '[{ provider: fake, model: first }]', two: '[{ provider: fake, model: first }, { provider: fake, model: second }]' };
const models = Object.entries(targets).map(([name, list]) => `  ${name}: { targets: ${list} }\n  spoken-${name}: { kind: speech, targets: ${list} }\n`);
const { upstream, server } = await scriptedServer(({ url }) => ({ upstream: url, yaml: `${models.join('')}routing: { cooldownSeconds: 0 }\n` }));
const client = new OpenAI({ apiKey: server.key, baseURL: `${server.url}/v1`, maxRetries: 0 });

const textOf = (event: object) => `event: ${'type' in event ? String(event.type) : 'x'}\ndata: ${JSON.stringify(event)}\n\n`;
const events = (...all: readonly object[]): Behaviour => says(/./, 'text/event-stream', all.map(textOf).join(''));
const failure = (code: string, type = 'server_error') => ({
  type: 'error',
  error: { type, code, message: 'No at key sk-abcdefghijklmnopqrstuvwx.', param: null },
});

/** Each kind of stream: how it is asked for, a first event and the last one. */
const kinds = {
  pictures: {
    ask: async (model: string) => await client.images.generate({ model, prompt: 'a cat', stream: true }).asResponse(),
    first: { type: 'image_generation.partial_image', b64_json: 'QUJD', partial_image_index: 0 },
    last: { type: 'image_generation.completed', b64_json: 'QUJD', usage: { input_tokens: 5, output_tokens: 7 } },
  },
  transcript: {
    ask: async (model: string) =>
      await client.audio.transcriptions.create({ model, file: await toFile(Buffer.from('RIFF'), 'a.wav'), stream: true }).asResponse(),
    first: { type: 'transcript.text.delta', delta: 'hello' },
    last: { type: 'transcript.text.done', text: 'hello', usage: { input_tokens: 5, output_tokens: 7 } },
  },
  speech: {
    ask: async (model: string) => await client.audio.speech.create({ model: `spoken-${model}`, voice: 'alloy', input: 'hello', stream_format: 'sse' }),
    first: { type: 'speech.audio.delta', audio: 'QUJD' },
    last: { type: 'speech.audio.done', usage: { input_tokens: 5, output_tokens: 7 } },
  },
};

describe.each(Object.entries(kinds))('%s in events', (kind, { ask, first, last }) => {
  const bookedOf = (answer: Response) => loggedAs(server, answer.headers.get('x-request-id')!);

  test('that begin with an error come from the next target, and nothing of the error passes', async () => {
    upstream.script(events(failure('rate_limit_exceeded')), events(first, last));
    const answer = await ask('two');
    expect([answer.status, await answer.text()]).toEqual([200, expect.not.stringContaining('"error"')]);
    expect(await bookedOf(answer)).toMatchObject({ end: 'completed', attempts: 2, inputTokens: 5, outputTokens: 7 });
  });

  test('that are broken off by an error without the framing of events end with one in our words', async () => {
    upstream.script(says(/./, 'text/event-stream', textOf(first) + JSON.stringify({ error: failure('server_error').error }, undefined, 2)));
    const answer = await ask('one');
    const text = await answer.text();
    expect(text).toContain(textOf(first));
    expect(text.slice(textOf(first).length)).toContain('"upstream_error"');
    expect(text).not.toContain('No at key');
    expect((await bookedOf(answer)).end).toBe('upstream-cut');
  });

  test.each([
    ['rate_limit_exceeded', 'server_error', 429, 'rate_limit_exceeded'],
    ['server_error', 'server_error', 502, 'upstream_error'],
    ['moderation_blocked', 'image_generation_user_error', 400, 'content_policy_violation'],
  ])('that are nothing but the error %s are a refusal in our words, and cost nothing', async (code, type, status, told) => {
    upstream.script(events(failure(code, type)));
    const error: unknown = await ask('one').catch((thrown: unknown) => thrown);
    if (!(error instanceof OpenAI.APIError)) throw error;
    expect(error).toMatchObject({ status, code: told, message: expect.not.stringContaining('sk-abc') as string });
    expect(await loggedAs(server, error.requestID!)).toMatchObject({ end: 'upstream-failed', status, planTokens: 0 });
  });

  test('whose client leaves with the last event are booked as the provider counted', async () => {
    upstream.script(neverEnds(says(/./, 'text/event-stream', `${textOf(first)}${textOf(last)}data: [DONE]\n\n`)));
    const answer = await ask('one');
    const reader = answer.body!.getReader();
    const decoder = new TextDecoder();
    for (let text = ''; !text.includes('[DONE]');) text += decoder.decode((await reader.read()).value);
    await reader.cancel();
    expect(await bookedOf(answer)).toMatchObject({ inputTokens: 5, outputTokens: 7 });
  });

  test('that are complete are not held up by a connection that stays open', async () => {
    upstream.script(neverEnds(says(/./, 'text/event-stream', textOf(first) + textOf(last))));
    const answer = await ask('one');
    expect(await answer.text()).toBe(textOf(first) + textOf(last));
    expect(await bookedOf(answer)).toMatchObject({ end: 'completed', inputTokens: 5, outputTokens: 7 });
  });

  test.each([
    ['an error', () => events(first, failure('server_error'), last)],
    ['their end without the last event', () => events(first)],
    ['their end within the last event', () => says(/./, 'text/event-stream', (textOf(first) + textOf(last)).slice(0, -40))],
    ['a connection that breaks off', () => cut({ afterBytes: textOf(first).length + 10, how: 'reset' }, events(first, last))],
  ])('that fail by %s end with a fault in our words, and are booked as cut', async (_how, behaviour) => {
    upstream.script(behaviour());
    const answer = await ask('one');
    const text = await answer.text();
    expect(text.slice(text.lastIndexOf('\n\ndata: '))).toMatch(
      /^\n\ndata: \{"error":\{"message":"[^"]+","type":"server_error","param":null,"code":"upstream_error"\}\}\n\n$/,
    );
    expect(text).not.toContain('sk-abc');
    expect(text).not.toContain('"usage"');
    expect(await bookedOf(answer)).toMatchObject({ end: 'upstream-cut', provenance: 'partial' });
  });
});

test.each(['true', 'True', '1'])('a transcript is streamed where a form has %j for stream', async (stream) => {
  const { first, last } = kinds.transcript;
  upstream.script(events(first, last));
  const form = new FormData();
  for (const [name, text] of Object.entries({ model: 'one', stream })) form.append(name, text);
  form.append('file', new File(['RIFF'], 'a.wav'));
  const answer = await fetch(`${server.url}/v1/audio/transcriptions`, { method: 'POST', headers: { authorization: `Bearer ${server.key}` }, body: form });
  expect([answer.status, await answer.text()]).toEqual([200, textOf(first) + textOf(last)]);
});

test('the SDK throws where a stream of pictures fails', async () => {
  upstream.script(events(kinds.pictures.first, failure('server_error')));
  const seen: string[] = [];
  const reading = async () => {
    for await (const event of await client.images.generate({ model: 'one', prompt: 'a cat', stream: true })) seen.push(event.type);
  };
  await expect(reading()).rejects.toMatchObject({ code: 'upstream_error' });
  expect(seen).toEqual(['image_generation.partial_image']);
});

test('two pictures are over with the second one, or with [DONE]', async () => {
  const two = textOf(kinds.pictures.last) + textOf(kinds.pictures.last);
  for (const body of [two, `${textOf(kinds.pictures.last)}data: [DONE]\n\n`]) {
    upstream.script(neverEnds(says(/./, 'text/event-stream', body)));
    const answer = await client.images.generate({ model: 'one', prompt: 'two cats', n: 2, stream: true }).asResponse();
    expect(await answer.text()).toBe(body);
  }
});

test('of a transcript that breaks off the text is booked, and nothing of what stands around it', async () => {
  const delta = textOf({ type: 'transcript.text.delta', delta: 'four', logprobs: [{ token: 'four', logprob: -0.1, bytes: [102, 111, 117, 114] }] });
  upstream.script(says(/./, 'text/event-stream', `${delta}${' '.repeat(400_000)}\n\n${delta}${'x'.repeat(400_000)}`));
  const answer = await kinds.transcript.ask('one');
  expect(await answer.text()).toContain('"upstream_error"');
  expect(await loggedAs(server, answer.headers.get('x-request-id')!)).toMatchObject({ end: 'upstream-cut', provenance: 'partial', outputTokens: 2 });
});

test('a long transcript without usage and without a blank line behind it costs its text', async () => {
  const whole = `data: ${JSON.stringify({ type: 'transcript.text.done', text: ' four'.repeat(1000) })}`;
  for (const body of [whole, `${whole}\nid: 7`]) {
    upstream.script(says(/./, 'text/event-stream', body));
    const answer = await kinds.transcript.ask('one');
    expect(await answer.text()).toBe(body);
    const { end, outputTokens } = await loggedAs(server, answer.headers.get('x-request-id')!);
    expect([end, Number(outputTokens) >= 1000]).toEqual(['completed', true]);
  }
});

test.each(['pictures', 'transcript'] as const)('%s in events are events whatever their type is called', async (kind) => {
  const { ask, first, last } = kinds[kind];
  upstream.script(says(/./, 'text/plain', textOf(first) + textOf(last)));
  const answer = await ask('one');
  expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([200, 'text/event-stream', textOf(first) + textOf(last)]);
  const booked = await loggedAs(server, answer.headers.get('x-request-id')!);
  expect(booked).toMatchObject({ end: 'completed', inputTokens: 5, outputTokens: 7 });
});

test('a transcript that comes whole though events were asked for is given as it came, whatever its type', async () => {
  const body = JSON.stringify({ text: 'hello' });
  for (const type of ['application/json', 'application/octet-stream', undefined]) {
    const answered = says(/./, type ?? '', body);
    upstream.script(type === undefined ? { ...answered, answer: async (asked) => ({ ...(await answered.answer(asked)), headers: {} }) } : answered);
    expect(await (await kinds.transcript.ask('one')).text()).toBe(body);
  }
});

test('of a transcript whose client leaves within a long event, what it has got of that is booked', async () => {
  const half = `data: ${JSON.stringify({ type: 'transcript.text.delta', delta: 'four'.repeat(2000) })}`.slice(0, 4000);
  upstream.script(neverEnds(says(/./, 'text/event-stream', half)));
  const answer = await kinds.transcript.ask('one');
  const reader = answer.body!.getReader();
  for (let got = 0; got < half.length;) got += (await reader.read()).value!.length;
  await reader.cancel();
  expect(await loggedAs(server, answer.headers.get('x-request-id')!)).toMatchObject({ provenance: 'partial', outputTokens: 1000 });
});

test('comments without end before the first event are not held back', async () => {
  upstream.script(says(/./, 'text/event-stream', ': wait\n\n'.repeat(40_000) + textOf(failure('server_error'))));
  const answer = await kinds.pictures.ask('one'); // held back, the failure would be its status
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringMatching(/^: wait\n\n[^]*\n\ndata: \{"error":[^\n]*"upstream_error"\}\}\n\n$/)]);
});
