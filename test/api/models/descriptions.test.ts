import { describe, expect, test } from 'vitest';
import { requestFields as chatFields } from '#dialects/openai/chat/capabilities';
import { chat } from '../../support/server.ts';
import { newMember } from '../../support/members.ts';
import { scriptedServer } from '../../support/scripted-server.ts';

const { server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  fake: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k] }
  responses: { dialect: openai-responses, baseUrl: "${url}/v1", apiKeys: [k] }
  claude: { dialect: anthropic-messages, baseUrl: "${url}", apiKeys: [k] }
  gemini: { dialect: gemini, baseUrl: "${url}/v1beta", apiKeys: [k] }
  openai: { dialect: openai-chat, baseUrl: "https://api.openai.com/v1", apiKeys: [k] }
  anthropic: { dialect: anthropic-messages, baseUrl: "https://api.anthropic.com", apiKeys: [k] }
  vertex: { dialect: gemini, kind: vertex, project: p, baseUrl: "https://{region}-aiplatform.googleapis.com/v1", credentials: { accessToken: t }, regions: [us-east1, us-west1] }
models:
  on-chat: { targets: [{ provider: fake, model: m }] }
  on-responses: { targets: [{ provider: responses, model: m }] }
  on-claude: { targets: [{ provider: claude, model: m }] }
  on-gemini: { targets: [{ provider: gemini, model: m }] }
  on-built-in: { targets: [{ provider: built-in }] }
  gpt-4o-mini: { targets: [{ provider: openai }] }
  dear: { targets: [{ provider: openai, model: gpt-4o-mini }], price: { input: 7, output: 8 }, limits: { output: 5 }, abilities: [tools], larger: gpt-4o-mini }
  mixed: { targets: [{ provider: openai, model: gpt-4o-mini }, { provider: anthropic, model: claude-haiku-4-5 }] }
  gemini-2.5-flash: { targets: [{ provider: vertex }] }
  openai/gpt-oss-20b: { targets: [{ provider: fake }] }
  local: { targets: [{ provider: fake, model: gpt-4o-mini }] }
`,
}));

interface Described {
  readonly dragoman: {
    readonly limits: { readonly context: number | null; readonly output: number | null };
    readonly price: object | null;
    readonly abilities: readonly string[] | null;
    readonly targets: readonly {
      readonly provider: string;
      readonly model: string;
      readonly regions?: readonly string[];
      readonly fields: Readonly<Record<string, { readonly fate: string; readonly note?: string }>>;
    }[];
  };
}

const described = async (id: string, face = 'chatcompat') => (await (await server.ask(`/server/${face}/v1/models/${id}`)).json()) as Described;

/** A request that asks for something in every field that can be asked for alone. */
const asking: Readonly<Record<string, unknown>> = {
  temperature: 0.5,
  top_p: 0.9,
  frequency_penalty: 1,
  presence_penalty: 1,
  max_tokens: 50,
  n: 2,
  seed: 7,
  stop: ['never'],
  logprobs: true,
  top_logprobs: 2,
  logit_bias: { '1': 5 },
  tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }],
  tool_choice: 'auto',
  parallel_tool_calls: false,
  functions: [{ name: 'look', parameters: { type: 'object', properties: {} } }],
  function_call: 'auto',
  response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } },
  reasoning_effort: 'low',
  metadata: { a: 'b' },
  store: true,
  user: 'u',
  safety_identifier: 's',
  prompt_cache_key: 'p',
  service_tier: 'flex',
  verbosity: 'low',
  modalities: ['text', 'audio'],
  audio: { voice: 'v' },
  prediction: { type: 'content', content: 'x' },
  web_search_options: {},
};
/** They are asked for together with others. */
const together: Readonly<Record<string, readonly string[]>> = {
  top_logprobs: ['logprobs'],
  tool_choice: ['tools'],
  parallel_tool_calls: ['tools'],
  function_call: ['functions'],
};

describe('GET /models/{id}', () => {
  test.each(['on-chat', 'on-responses', 'on-claude', 'on-gemini', 'on-built-in'])(
    'says of %s, field by field, what its target ignores, and so do the warnings of an answer: those fields, and no others',
    async (model) => {
      const { fields } = (await described(model)).dragoman.targets[0]!;
      expect(Object.keys(fields).toSorted()).toEqual(Object.keys(chatFields).toSorted());
      for (const [name, value] of Object.entries(asking)) {
        const more = Object.fromEntries((together[name] ?? []).map((other) => [other, asking[other]]));
        const answer = await server.ask(chat, { model, messages: [{ role: 'user', content: 'Say exactly: {}' }], ...more, [name]: value });
        expect(answer.status, `of ${name}`).toBe(200);
        const warned = (answer.headers.get('x-dragoman-warnings') ?? '').split('; ').map((one) => one.split(':')[0]);
        const called = { top_logprobs: 'logprobs' }[name] ?? name;
        expect(warned.includes(called), `${model} ${name}: ${warned.join()}`).toBe(fields[name]!.fate === 'ignored');
      }
    },
    120_000,
  );

  test('every field of a chat request has been tried there', () => {
    const { max_completion_tokens: _, ...alone } = chatFields;
    expect(Object.keys(asking).toSorted()).toEqual(Object.keys(alone).toSorted());
  });

  test('gives the reason of what is ignored or said otherwise', async () => {
    const { fields } = (await described('on-claude')).dragoman.targets[0]!;
    expect(fields).toMatchObject({
      temperature: { fate: 'translated', note: 'the provider accepts at most 1.' },
      top_p: { fate: 'carried' },
      seed: { fate: 'ignored', note: "the provider's interface does not have this field." },
      service_tier: { fate: 'ignored' },
    });
  });

  test('the interface of messages says it of its own fields', async () => {
    const { fields } = (await described('on-chat', 'messages')).dragoman.targets[0]!;
    expect(fields).toMatchObject({
      top_k: { fate: 'ignored' },
      stop_sequences: { fate: 'carried' },
      thinking: { fate: 'carried' },
      metadata: { fate: 'carried' },
      service_tier: { fate: 'ignored' },
    });
    expect((await described('on-claude', 'messages')).dragoman.targets[0]!.fields).toMatchObject({ metadata: { fate: 'carried' } });
  });

  test('limits, prices and abilities come from the catalogue where the settings say none, and what nobody knows is null', async () => {
    expect((await described('gpt-4o-mini')).dragoman).toMatchObject({
      kind: 'chat',
      limits: { context: 128_000, output: 16_384 },
      price: { input: 0.15, output: 0.6, cached: 0.075 },
      larger: null,
    });
    expect((await described('dear')).dragoman).toMatchObject({
      limits: { context: 128_000, output: 5 },
      price: { input: 7, output: 8 },
      abilities: ['tools'],
      larger: 'gpt-4o-mini',
    });
    expect((await described('dear')).dragoman.price).not.toHaveProperty('cached');
    expect((await described('mixed')).dragoman).toMatchObject({
      limits: { context: 128_000, output: 16_384 },
      price: { input: 1, output: 5 }, // of the dearest target
      abilities: ['tools', 'vision', 'json-schema'],
    });
    expect((await described('gemini-2.5-flash')).dragoman).toMatchObject({
      price: { input: 0.3 },
      targets: [{ provider: 'vertex', regions: ['us-east1', 'us-west1'] }],
    });
    expect((await described('openai/gpt-oss-20b')).dragoman).toMatchObject({ limits: { context: 131_072, output: null }, price: null });
    expect((await described('local')).dragoman).toMatchObject({ limits: { context: null, output: null }, price: null, abilities: null });
    expect((await described('built-in')).dragoman).toMatchObject({ price: { input: 0, output: 0 } });
    expect((await described('text-embedding-3-small')).dragoman).toMatchObject({ kind: 'embedding', abilities: null });
  });

  test('a plan in US dollars refuses what has no price, also where the catalogue knows the name elsewhere', async () => {
    const member = await newMember(server, { monthlyUsd: 5 });
    const say = (model: string) => member.ask({ model, messages: [{ role: 'user', content: 'hi' }] });
    for (const model of ['local', 'openai/gpt-oss-20b']) {
      const answer = await say(model);
      expect(answer.status, `of ${model}`).toBe(403);
      expect(await answer.json()).toMatchObject({ error: { message: expect.stringContaining('has no price') as string } });
    }
    expect((await say('on-built-in')).status).toBe(200);
  });
});
