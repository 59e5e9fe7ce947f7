import { describe, expect, test } from 'vitest';
import { askFace, type Face } from '../support/all-faces.ts';
import { always, ok, type Behaviour } from '../support/fakes/upstream/index.ts';
import { scriptedHosts } from '../support/scripted-hosts.ts';

/** Agents send the token limit of the model that they were made for, and other models refuse it: Gitlawb/openclaude#331, olimorris/codecompanion.nvim#1028. */

const { upstream, server } = await scriptedHosts(
  ['api.openai.com', 'api.anthropic.com', 'generativelanguage.googleapis.com'],
  ({ url }) => `
providers:
  openai: { dialect: openai-chat, baseUrl: "https://api.openai.com/v1", apiKeys: [k] }
  openai-responses: { dialect: openai-responses, baseUrl: "https://api.openai.com/v1", apiKeys: [k] }
  anthropic: { dialect: anthropic-messages, baseUrl: "https://api.anthropic.com", apiKeys: [k] }
  google: { dialect: gemini, baseUrl: "https://generativelanguage.googleapis.com/v1beta", apiKeys: [k] }
  chat: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k] }
  responses: { dialect: openai-responses, baseUrl: "${url}/v1", apiKeys: [k] }
  messages: { dialect: anthropic-messages, baseUrl: "${url}", apiKeys: [k] }
  gemini: { dialect: gemini, baseUrl: "${url}/v1beta", apiKeys: [k] }
models:
  gpt-4o: { targets: [{ provider: openai }] }
  gpt-4o-on-responses: { targets: [{ provider: openai-responses, model: gpt-4o }] }
  claude-haiku-4-5: { targets: [{ provider: anthropic }] }
  gemini-2.5-flash: { targets: [{ provider: google }] }
  larger-gpt-4o: { targets: [{ provider: openai, model: gpt-4o }], limits: { output: 32000 } }
  smaller-chat: { targets: [{ provider: chat }], limits: { output: 2000 } }
  smaller-responses: { targets: [{ provider: responses }], limits: { output: 2000 } }
  smaller-messages: { targets: [{ provider: messages }], limits: { output: 2000 } }
  with-larger: { targets: [{ provider: chat }], larger: gpt-4o }
  smaller-gemini: { targets: [{ provider: gemini }], limits: { output: 2000 } }
${['chat', 'responses', 'messages', 'gemini'].flatMap((wire) => Array.from({ length: 8 }, (_, at) => `  ${wire}-${at}: { targets: [{ provider: ${wire} }] }\n`)).join('')}
routing: { cooldownSeconds: 0 }
`,
);

interface Sent {
  readonly max_tokens?: number;
  readonly max_completion_tokens?: number;
  readonly max_output_tokens?: number;
  readonly generationConfig?: { readonly maxOutputTokens?: number };
}
const limits = () =>
  upstream.requests.map(({ json }) => {
    const { max_tokens: older, max_completion_tokens: newer, max_output_tokens: output, generationConfig } = json as Sent;
    return older ?? newer ?? output ?? generationConfig?.maxOutputTokens;
  });

const ask = (face: Face, model: string, most: number, headers: Readonly<Record<string, string>> = {}) =>
  askFace(server, face, {
    model,
    content: 'hi',
    stream: false,
    more:
      face === 'chat' || face === 'messages'
        ? { max_tokens: most }
        : face === 'responses'
          ? { max_output_tokens: most }
          : { generationConfig: { maxOutputTokens: most } },
    headers,
  });

describe.each([
  ['gpt-4o', 'chat', 16_384],
  ['gpt-4o-on-responses', 'responses', 16_384],
  ['claude-haiku-4-5', 'messages', 64_000],
  ['gemini-2.5-flash', 'gencompat', 65_536],
] as const)('%s', (model, own, most) => {
  test.each(['chat', 'responses', 'messages', 'gencompat'] as const)('accepts no larger limit, and a %s client is told', async (face) => {
    upstream.script(always(ok()));
    expect((await ask(face, model, 300_000)).headers.get('x-dragoman-warnings') ?? '').toMatch(face === own ? /^$/ : new RegExp(`lowered to ${most}`));
    await ask(face, model, 100);
    expect(limits()).toEqual([face === own ? 300_000 : most, 100]); // what a client of the same API wrote is between it and the provider
    if (face !== own) expect((await ask(face, model, 300_000, { 'x-dragoman-strict': 'true' })).status).toBe(400);
  });
});

test.each([
  ['larger-gpt-4o', 'messages', 32_000],
  ['smaller-chat', 'messages', 2000],
  ['smaller-responses', 'messages', 2000],
  ['smaller-messages', 'chat', 2000],
  ['smaller-gemini', 'chat', 2000],
] as const)('the settings say how large a limit %s accepts', async (model, face, most) => {
  upstream.script(always(ok()));
  expect((await ask(face, model, 300_000)).status).toBe(200);
  expect(limits()).toEqual([most]);
});

const limitOf = (json: unknown): number => {
  const { max_tokens: older, max_completion_tokens: newer, max_output_tokens: output, generationConfig } = json as Sent;
  return older ?? newer ?? output ?? generationConfig?.maxOutputTokens ?? 0;
};

const refusing = (message: (given: number) => string, most: number): Behaviour =>
  always({
    name: 'refusing',
    answer(exchange) {
      const given = limitOf(exchange.request.json);
      if (given <= most) return ok().answer(exchange);
      return {
        status: 400,
        headers: { 'content-type': 'application/json' },
        body: [JSON.stringify({ error: { type: 'invalid_request_error', code: null, message: message(given) } })],
        framing: 'chunked',
        end: 'finish',
      };
    },
  });

test.each<[string, (given: number) => string, number]>([
  ['chat-0', (given) => `max_tokens is too large: ${given}. This model supports at most 16384 completion tokens, whereas you provided ${given}.`, 16_384],
  ['chat-1', () => 'Invalid max_tokens value, the valid range of max_tokens is [1, 8192]', 8192],
  [
    'chat-2',
    () => '`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model',
    8192,
  ],
  ['chat-3', () => 'Range of max_tokens should be [1, 8192]', 8192],
  [
    'chat-4',
    (given) =>
      `The parameter \`max_tokens\` specified in the request are not valid: integer above maximum value, expected a value <= 12288, but got ${given} instead.`,
    12_288,
  ],
  ['responses-0', (given) => `Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 128000, but got ${given} instead.`, 128_000],
  ['messages-0', (given) => `max_tokens: ${given} > 32000, which is the maximum allowed number of output tokens for claude-opus-4-1`, 32_000],
  [
    'messages-1',
    () => 'The maximum tokens you requested exceeds the model limit of 8192. Try again with a maximum tokens value that is lower than 8192.',
    8192,
  ],
  [
    'gemini-0',
    (given) =>
      `Unable to submit request because it has a maxOutputTokens value of ${given} but the supported range is from 1 (inclusive) to 65537 (exclusive). Update the value and try again.`,
    65_536,
  ],
])('%s teaches its limit by refusing a larger one', async (model, message, most) => {
  upstream.script(refusing(message, most));
  const others = (['chat', 'responses', 'messages', 'gencompat'] as const).filter((face) => !model.startsWith(face.replace('gencompat', 'gemini')));
  for (const face of others) expect((await ask(face, model, 300_000)).status).toBe(200);
  await ask(others[0]!, model, 500);
  expect(limits()).toEqual([300_000, most, most, most, 500]);
});

test('a client that names no limit gets that of the model, where Claude demands one', async () => {
  upstream.script(refusing((given) => `max_tokens: ${given} > 4096, which is the maximum allowed number of output tokens for claude-3-haiku`, 4096));
  expect((await askFace(server, 'chat', { model: 'messages-2', content: 'hi', stream: false })).status).toBe(200);
  expect(limits()).toEqual([8192, 4096]);
});

test('what a client of the same API wrote is refused as the provider refuses it', async () => {
  upstream.script(
    refusing((given) => `max_tokens is too large: ${given}. This model supports at most 16384 completion tokens, whereas you provided ${given}.`, 16_384),
  );
  expect((await ask('chat', 'chat-5', 300_000)).status).toBe(400);
  expect(limits()).toEqual([300_000]);
});

const vllm = (given: number) =>
  `'max_tokens' or 'max_completion_tokens' is too large: ${given}. This model's maximum context length is 32768 tokens and your request has 10000 input tokens (${given} > 32768 - 10000).`;
const newerVllm = (given: number) =>
  `This model's maximum context length is 32768 tokens. However, you requested ${given} output tokens and your prompt contains 10000 input tokens, for a total of ${10_000 + given} tokens. Please reduce the length of the input prompt or the number of requested output tokens.`;
const uncounted = (given: number) =>
  `This model's maximum context length is 32768 tokens. However, you requested ${given} output tokens and your prompt contains at least ${32_769 - given} input tokens, for a total of at least 32769 tokens.`;
const sum = (given: number) =>
  `This model's maximum context length is 32768 tokens. However, you requested ${10_000 + given} tokens (10000 in the messages, ${given} in the completion). Please reduce the length of the messages or completion.`;
const claude = (given: number) =>
  `input length and \`max_tokens\` exceed context limit: 190000 + ${given} > 200000, decrease input length or \`max_tokens\` and try again`;

test.each<[string, (given: number) => string, number, number]>([
  ['chat-6', vllm, 22_768, 22_768],
  ['chat-6', newerVllm, 22_768, 22_768],
  ['chat-6', sum, 22_768, 22_768],
  ['chat-6', uncounted, 22_768, 8000],
  ['responses-6', sum, 22_768, 22_768],
  ['messages-6', claude, 10_000, 10_000],
  ['gemini-6', sum, 22_768, 22_768],
])('a conversation that fits %s is answered with what its context has left, and other calls are not limited', async (model, message, room, sent) => {
  const faces = (['chat', 'responses', 'messages', 'gencompat'] as const).filter((face) => !model.startsWith(face.replace('gencompat', 'gemini')));
  upstream.script(refusing(message, room));
  for (const face of faces) {
    const { status, headers } = await ask(face, model, 32_000);
    expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringContaining(`lowered to ${sent}, since the conversation fills the rest`)]);
    expect((await ask(face, model, 31_000)).status).toBe(200);
    expect(limits().slice(-4, -1)).toEqual([32_000, sent, 31_000]);
  }
});

test('a longer answer than fits is no reason to ask a larger model', async () => {
  upstream.script(refusing(vllm, 22_768));
  expect((await ask('messages', 'with-larger', 32_000)).status).toBe(200);
  expect(upstream.requests.map(({ json }) => (json as { model: string }).model)).toEqual(['with-larger', 'with-larger']);
});

test.each([
  ['chat', 'chat-7', vllm],
  ['messages', 'messages-7', claude],
] as const)('a client of the API of %s reads that its limit is too large for the context, and not that its conversation is', async (face, model, message) => {
  upstream.script(refusing(message, 1000));
  const { status, raw } = await ask(face, model, 32_000);
  expect([status, upstream.requests.length]).toEqual([400, 1]);
  expect(raw).toContain(message(32_000).slice(0, 60));
  expect(raw).not.toMatch(/prompt is too long|conversation is longer/);
});
