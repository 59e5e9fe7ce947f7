/* What is counted of spending. */
import { expect, test } from 'vitest';
import { always, ok } from '../../support/fakes/upstream/index.ts';
import { administrate, loggedBy, newMember, type Member } from '../../support/members.ts';
import { proves } from '../../support/proves.ts';
import { scriptedServer } from '../../support/scripted-server.ts';

const minute = 60_000;
const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  fake: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [a] }
  responses: { dialect: openai-responses, baseUrl: "${url}/v1", apiKeys: [b] }
  claude: { dialect: anthropic-messages, baseUrl: "${url}", apiKeys: [c] }
  gemini: { dialect: gemini, baseUrl: "${url}/v1beta", apiKeys: [d] }
models:
  gpt-4o-mini: { targets: [{ provider: fake }] }
  thinks: { targets: [{ provider: responses }] }
  claude: { targets: [{ provider: claude }] }
  flash: { targets: [{ provider: gemini }] }
  "*": { targets: [{ provider: fake }] }
`,
}));

/** A POST with the first key of a member. */
function post(member: Member, path: string, body: object | string): Promise<Response> {
  const isForm = body instanceof FormData;
  const headers: Record<string, string> = { authorization: `Bearer ${member.keys[0]!}`, ...(isForm ? {} : { 'content-type': 'application/json' }) };
  return fetch(server.url + path, { method: 'POST', headers, body: isForm || typeof body === 'string' ? body : JSON.stringify(body) });
}

const chatcompat = '/server/chatcompat/v1';
const gencompat = '/server/gencompat/v1beta';

test(
  proves('Q-12', 'of 1,000 mixed calls the upstream, the answers, the logs and the sums of the month say the same'),
  async () => {
    const total = { input: 0, output: 0 };
    upstream.script(
      always({
        name: 'numbered',
        answer(exchange) {
          const n = Number(/call (\d+)/.exec(exchange.request.body.toString())![1]);
          const usage = { input: 3 + (n % 97), output: 1 + (n % 31) };
          total.input += usage.input;
          total.output += usage.output;
          return ok({ usage: { ...usage, total: usage.input + usage.output } }).answer(exchange);
        },
      }),
    );
    const member = await newMember(server, { monthlyTokens: 1_000_000_000, requestsPerMinute: 100_000, concurrentStreams: 1000 });
    const models = ['gpt-4o-mini', 'thinks', 'claude', 'flash'];
    const kinds: readonly ((model: string, content: string) => readonly [path: string, body: object])[] = [
      (model, content) => [`${chatcompat}/chat/completions`, { model, messages: [{ role: 'user', content }] }],
      (model, content) => [
        `${chatcompat}/chat/completions`,
        { model, messages: [{ role: 'user', content }], stream: true, stream_options: { include_usage: true } },
      ],
      (model, input) => [`${chatcompat}/responses`, { model, input, store: false }],
      (model, input) => [`${chatcompat}/responses`, { model, input, store: false, stream: true }],
      (model, content) => ['/server/messages/v1/messages', { model, max_tokens: 500, messages: [{ role: 'user', content }] }],
      (model, content) => ['/server/messages/v1/messages', { model, max_tokens: 500, messages: [{ role: 'user', content }], stream: true }],
      (model, text) => [`${gencompat}/models/${model}:generateContent`, { contents: [{ role: 'user', parts: [{ text }] }] }],
      (model, text) => [`${gencompat}/models/${model}:streamGenerateContent?alt=sse`, { contents: [{ role: 'user', parts: [{ text }] }] }],
    ];
    const answered = new Map<string, { input: number; output: number }>();
    let next = 0;
    const client = async () => {
      for (let n = next++; n < 1000; n = next++) {
        const [path, body] = kinds[n % kinds.length]!(models[Math.floor(n / kinds.length) % models.length]!, `This is call ${n} .`);
        const answer = await post(member, path, body);
        const text = await answer.text();
        expect([path, answer.status, text]).toEqual([path, 200, expect.any(String)]);
        answered.set(answer.headers.get('x-request-id')!, { input: toldIn(text, inputWords), output: toldIn(text, outputWords) });
      }
    };
    await Promise.all(Array.from({ length: 16 }, client));

    const sumOf = (numbers: Iterable<{ input: number; output: number }>) =>
      Array.from(numbers).reduce((sum, { input, output }) => ({ input: sum.input + input, output: sum.output + output }), { input: 0, output: 0 });
    expect(sumOf(answered.values())).toEqual(total);
    await expect.poll(async () => (await loggedBy(server, member.id)).length, { timeout: 30_000, interval: 500 }).toBe(1000);
    const rows = await loggedBy(server, member.id);
    expect(new Map(rows.map(({ requestId, inputTokens: input, outputTokens: output }) => [requestId, { input, output }]))).toEqual(answered);
    const { items } = await administrate<{ items: object[] }>(server, 'GET', '/usage?groupBy=user');
    expect(items).toContainEqual(
      expect.objectContaining({
        user: member.id,
        requests: 1000,
        inputTokens: total.input,
        outputTokens: total.output,
        planTokens: total.input + total.output,
      }),
    );
  },
  3 * minute,
);

const inputWords = /"(?:prompt_tokens|input_tokens|promptTokenCount)":(\d+)/g;
const outputWords = /"(?:completion_tokens|output_tokens|candidatesTokenCount)":(\d+)/g;

/** The last word about it is the largest. */
const toldIn = (text: string, words: RegExp) => Math.max(...Array.from(text.matchAll(words), ([, digits]) => Number(digits)));
