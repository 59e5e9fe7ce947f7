/* Answers that are large and nothing but ordinary: what guards the event loop lets them through. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { embedded } from '../support/databases.ts';
import { startTestServer } from '../support/server.ts';

const usage = { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 };
const head = { id: 'chatcmpl-1', created: 1, model: 'gpt-4o-mini' };
const message = (content: object, logprobs: object | null = null) =>
  JSON.stringify({
    ...head,
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content: null, refusal: null, ...content }, logprobs, finish_reason: 'stop' }],
    usage,
  });
const chunks = (deltas: readonly object[], logprobs: object | null = null) =>
  [
    ...deltas.map((delta) => ({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, logprobs, finish_reason: null }] })),
    { ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }], usage },
  ]
    .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
    .join('') + 'data: [DONE]\n\n';

/** A provider that answers so, whole or as a stream. */
async function provider(answers: { readonly whole: string; readonly stream?: string }) {
  const server = createServer((request, response) => {
    const read: Buffer[] = [];
    request.on('data', (piece: Buffer) => read.push(piece));
    request.on('end', () => {
      const isStream = Buffer.concat(read).includes('"stream":true');
      response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' }).end(isStream ? answers.stream : answers.whole);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  const models = '  vectors: { kind: embedding, targets: [{ provider: fake }] }\n';
  const gateway = await startTestServer({ ...(await embedded.place()), upstream: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, yaml: models });
  onTestFinished(gateway.close);
  return gateway;
}

const chat = '/server/chatcompat/v1/chat/completions';
const said = [{ role: 'user', content: 'hi' }];
/** Tools and the question, as each interface takes them. */
const asks: Readonly<Record<string, (isStream: boolean) => readonly [path: string, body: object]>> = {
  chat: (stream) => [chat, { model: 'gpt-4o-mini', messages: said, stream }],
  responses: (stream) => ['/server/chatcompat/v1/responses', { model: 'gpt-4o-mini', input: 'hi', stream }],
  messages: (stream) => ['/server/messages/v1/messages', { model: 'gpt-4o-mini', max_tokens: 10, messages: said, stream }],
  gencompat: (stream) => [
    `/server/gencompat/v1beta/models/gpt-4o-mini:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
  ],
};

test('scores of 2,000 tokens with twenty others each arrive, whole and in one event', { timeout: 120_000 }, async () => {
  const token = (at: number) => ({ token: ` t${at % 7}`, logprob: -0.00012345 * at - 1e-7, bytes: [32, 116, 48 + (at % 7)] });
  const content = Array.from({ length: 2000 }, (_, at) => ({ ...token(at), top_logprobs: Array.from({ length: 20 }, (_, one) => token(at + one)) }));
  const few = content.slice(0, 500); // of less than a megabyte
  for (const scores of [content, few]) {
    const logprobs = { content: scores, refusal: null };
    const stream = chunks([{ role: 'assistant', content: 'hello' }], { content: few, refusal: null });
    const { ask } = await provider({ whole: message({ content: 'hello' }, logprobs), stream });
    const asked = { model: 'gpt-4o-mini', messages: said, logprobs: true, top_logprobs: 20 };
    const whole = await ask(chat, asked);
    const { choices } = (await whole.json()) as { choices: [{ logprobs: object }] };
    expect([whole.status, choices[0].logprobs]).toEqual([200, logprobs]);
    const streamed = await (await ask(chat, { ...asked, stream: true })).text();
    expect(streamed.match(/"top_logprobs"/g)).toHaveLength(500);
    expect(streamed).toContain('[DONE]');
  }
});

test('256 vectors of 1,536 numbers arrive', { timeout: 120_000 }, async () => {
  const vector = (of: number) => Array.from({ length: 1536 }, (_, at) => (at % 50 === 0 ? 1.5e-7 * (of + 1) : Math.sin(of * 1536 + at) / 40));
  const data = Array.from({ length: 256 }, (_, index) => ({ object: 'embedding', index, embedding: vector(index) }));
  const { ask } = await provider({ whole: JSON.stringify({ object: 'list', data, model: 'vectors', usage: { prompt_tokens: 256, total_tokens: 256 } }) });
  const answer = await ask('/server/chatcompat/v1/embeddings', { model: 'vectors', input: data.map(({ index }) => `text ${index}`), encoding_format: 'float' });
  const body = (await answer.json()) as { data: { embedding: number[] }[] };
  expect([answer.status, body.data?.length, body.data?.[255]?.embedding.length]).toEqual([200, 256, 1536]);
  expect(body.data[255]!.embedding[1]).toBeCloseTo(vector(255)[1]!, 7);
});

const tables: readonly (readonly [string, object])[] = [
  ['500 KB of JSON', { rows: Array.from({ length: 12_000 }, (_, at) => ({ name: `row ${at}`, value: at / 8 })) }],
  ['20,001 different keys', Object.fromEntries(Array.from({ length: 20_001 }, (_, at) => [`key ${at}`, at]))],
];
for (const [what, value] of tables)
  test(`arguments of a tool with ${what} arrive in every dialect, whole and streamed`, { timeout: 120_000 }, async () => {
    const json = JSON.stringify(value);
    const call = { id: 'call_1', type: 'function', function: { name: 't', arguments: json } };
    const { ask } = await provider({
      whole: message({ tool_calls: [call] }),
      stream: chunks([{ role: 'assistant', tool_calls: [{ index: 0, ...call }] }]),
    });
    for (const [face, asked] of Object.entries(asks))
      for (const isStream of [false, true]) {
        const answer = await ask(...asked(isStream));
        const text = await answer.text();
        expect([face, isStream, answer.status]).toEqual([face, isStream, 200]);
        expect([face, isStream, text.includes('"error":{')]).toEqual([face, isStream, false]);
        expect([face, isStream, [...text.matchAll(/(?:key|row) \d+/g)].length >= (what.startsWith('500') ? 12_000 : 20_001)]).toEqual([face, isStream, true]);
      }
  });
