import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { chat } from '../support/server.ts';
import { administrate, loggedBy, newMember, type Member } from '../support/members.ts';
import { proves } from '../support/proves.ts';
import { scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer(({ url }) => ({
  upstream: url,
  yaml: `  flash: { targets: [{ provider: fake }] }
  tts-1: { kind: speech, targets: [{ provider: fake }] }
  "*": { targets: [{ provider: fake }] }
`,
}));
beforeEach(() => upstream.reset());

const hello = [{ role: 'user', content: 'hello' }];
const contents = [{ role: 'user', parts: [{ text: 'hello' }] }];

/** A good request for each kind of address that spends, by the end of its path. */
const requests: readonly (readonly [end: RegExp, body: object | FormData])[] = [
  [/\/chat\/completions$/, { model: 'gpt-4o-mini', messages: hello }],
  [/\/responses$/, { model: 'gpt-4o-mini', input: 'hello' }],
  [/\/v1\/completions$/, { model: 'gpt-4o-mini', prompt: 'hello' }],
  [/\/embeddings$/, { model: 'text-embedding-3-small', input: 'hello' }],
  [/\/moderations$/, { input: 'hello' }],
  [/\/audio\/speech$/, { model: 'tts-1', input: 'hello', voice: 'alloy' }],
  [/\/audio\/transcriptions$/, recording()],
  [/\/images\/generations$/, { prompt: 'a cat' }],
  [/\/messages$/, { model: 'gpt-4o-mini', max_tokens: 5, messages: hello }],
  [/:(generateContent|streamGenerateContent)$/, { contents }],
  [/:embedContent$/, { content: contents[0] }],
  [/\/(query|query_stream|follow-up-questions|follow_up_questions)$/, { message: 'hello' }],
  [/\/query-plugin$/, { message: '[[rewrite]] hello' }],
  [/\/execute-plugin$/, { plugin_name: 'rewrite', plugin_values: { text: 'hello' } }],
  [/\/execute-plugin-with-file$/, attached()],
  [/\/mcp$/, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'plugin__rewrite', arguments: { text: 'hello' } } }],
  [/\/execute-agent$/, { agent_id: 2, message: 'hello' }],
  [/\/get-text-to-speech$/, { text: 'hello' }],
  [/\/query_with_file$/, attached()],
  [/:predict$/, { instances: [{ content: 'hello' }] }],
  [/:batchEmbedContents$/, { requests: [{ model: 'models/text-embedding-3-small', content: contents[0] }] }],
];

function attached(): FormData {
  const form = new FormData();
  form.set('file', new Blob(['A text.']), 'a.txt');
  form.set('message', 'hello');
  form.set('plugin_name', 'summarise');
  return form;
}

function recording(): FormData {
  const form = new FormData();
  form.set('file', new Blob(['RIFF']), 'a.wav');
  return form;
}

interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
}

/** Training is charged to a balance of its own, in jobs; and without datasets no model is asked for them. */
const others = /^\/server\/(?:train|train-with-\w+|get-dataset-results|mine\/.+)$/;

/** Every other operation of the document that can be paid for twice, and so once. */
async function spending(): Promise<readonly string[]> {
  const { paths } = (await (await server.ask('/openapi.json')).json()) as { paths: Record<string, Record<string, Operation>> };
  return Object.entries(paths)
    .flatMap(([path, { post }]) => (post?.parameters?.some(({ name }) => name === 'Idempotency-Key') ? [path] : []))
    .filter((path) => !others.test(path));
}

async function send(key: string, path: string, body: object | FormData): Promise<{ status: number; text: string }> {
  const isForm = body instanceof FormData;
  const answer = await fetch(
    server.url + path.replace('{publisher}', 'google').replace(/\{model\}/, /[eE]mbed|predict/.test(path) ? 'text-embedding-3-small' : 'flash'),
    {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        ...(path === '/server/mcp' ? { accept: 'application/json, text/event-stream' } : {}),
        'x-goog-api-client': 'google-genai-sdk',
        ...(isForm ? {} : { 'content-type': 'application/json' }),
      },
      body: isForm ? body : JSON.stringify(body),
    },
  );
  return { status: answer.status, text: await answer.text() };
}

test.each([
  ['plan tokens', { monthlyTokens: 0 }],
  ['US dollars', { monthlyUsd: 0 }],
  ['requests a minute', { requestsPerMinute: 0 }],
])(proves('Q-03', 'with no %s left every address that spends quota refuses, and nothing goes upstream'), async (what, limits) => {
  const { keys } = await newMember(server, limits);
  const paths = await spending();
  expect(paths.length).toBeGreaterThanOrEqual(11);
  for (const path of paths) {
    const body = requests.find(([end]) => end.test(path))?.[1];
    expect(body, `a request for ${path} is missing in this test`).toBeDefined();
    const { status, text } = await send(keys[0]!, path, body!);
    // Without a price nobody knows what it would cost: that is no question of how much is left.
    expect([429, ...(what === 'US dollars' ? [403] : [])], `${path} ${text}`).toContain(status);
  }
  expect(upstream.requests).toHaveLength(0);
});

test('every one of them is valid for a user with quota', async () => {
  for (const path of await spending()) {
    const { status, text } = await send(server.key, path, requests.find(([end]) => end.test(path))![1]);
    expect([200, 501, 502], `${path} ${text}`).toContain(status); // the scripted provider speaks, draws and transcribes nothing
  }
});

describe('absurd numbers', () => {
  const absurd = ['-1', '0', '1.5', '1e309', '-1e309', '9007199254740992', '1e30', '"5"', '[1]', '{}', 'true'];
  const json = (body: object, field: string, value: string) => JSON.stringify(body).replace(/\}$/, `,${JSON.stringify(field)}:${value}}`);
  const config = (field: string, value: string) => `{"contents":${JSON.stringify(contents)},"generationConfig":{${JSON.stringify(field)}:${value}}}`;
  const root = '/server/chatcompat/v1';
  const cases: readonly (readonly [path: string, field: string, body: (value: string) => string])[] = [
    ...['max_tokens', 'max_completion_tokens', 'n', 'top_logprobs'].map(
      (field) => [chat, field, (value: string) => json({ model: 'gpt-4o-mini', messages: hello }, field, value)] as const,
    ),
    ...['max_tokens', 'n'].map(
      (field) => [`${root}/completions`, field, (value: string) => json({ model: 'gpt-4o-mini', prompt: 'hello' }, field, value)] as const,
    ),
    [`${root}/responses`, 'max_output_tokens', (value) => json({ model: 'gpt-4o-mini', input: 'hello' }, 'max_output_tokens', value)],
    [`${root}/embeddings`, 'dimensions', (value) => json({ model: 'text-embedding-3-small', input: 'hello' }, 'dimensions', value)],
    ['/server/messages/v1/messages', 'max_tokens', (value) => json({ model: 'gpt-4o-mini', messages: hello }, 'max_tokens', value)],
    ...['maxOutputTokens', 'candidateCount'].map(
      (field) => ['/server/gencompat/v1beta/models/flash:generateContent', field, (value: string) => config(field, value)] as const,
    ),
  ];
  /** Fields that may be 0: this many alternatives. */
  const mayBeNothing = new Set(['top_logprobs']);

  let member: Member;
  beforeAll(async () => {
    member = await newMember(server, { monthlyTokens: 1_000_000, monthlyUsd: 1000, requestsPerMinute: 1000 });
  });

  test.each(cases)(proves('Q-09', '%s %s: refused with the name of the field, and nothing is reserved, booked or sent upstream'), async (path, field, body) => {
    for (const value of absurd) {
      if (value === '0' && mayBeNothing.has(field)) continue;
      const answer = await fetch(server.url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${member.keys[0]}`, 'content-type': 'application/json' },
        body: body(value),
      });
      const text = await answer.text();
      expect(answer.status, `${value}: ${text}`).toBe(400);
      expect(text).toMatch(value.endsWith('e309') ? 'a number that is out of range' : field);
    }
    expect(upstream.requests).toHaveLength(0);
    expect(await loggedBy(server, member.id)).toEqual([]);
  });

  test('the largest accepted numbers exceed any plan: refused without an overflow, and the plan is unchanged', async () => {
    const most = Number.MAX_SAFE_INTEGER;
    const poor = await newMember(server, { monthlyTokens: 1_000_000 });
    for (const more of [{ max_tokens: most }, { max_tokens: most, n: 128 }, { max_completion_tokens: most, n: 128, stream: true }]) {
      const answer = await poor.ask({ model: 'gpt-4o-mini', messages: hello, ...more });
      expect(answer.status).toBe(429);
      const { error } = (await answer.json()) as { error: { code: string; message: string } };
      expect(error.code).toBe('insufficient_quota');
      expect(error.message).not.toMatch(/NaN|Infinity|(?<!\w)-\d/);
    }
    const { status } = await send(poor.keys[0]!, `${root}/embeddings`, {
      model: 'text-embedding-3-small',
      input: Array.from({ length: 256 }, () => 'word '.repeat(8000)),
    });
    expect(status).toBe(429);
    expect(upstream.requests).toHaveLength(0);
    const answer = await poor.ask({ model: 'gpt-4o-mini', messages: hello, max_tokens: 900_000 });
    expect(answer.status).toBe(200);
    const { items } = await administrate<{ items: { planTokens: number }[] }>(server, 'GET', '/usage?groupBy=user');
    for (const { planTokens } of items) expect(planTokens).toBeLessThan(1_000_000);
  });
});
