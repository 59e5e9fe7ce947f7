import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { always, ok, refusal, startUpstream, type Behaviour, type Upstream } from '../support/fakes/upstream/index.ts';
import { askFace } from '../support/all-faces.ts';
import { onBothDatabases } from '../support/databases.ts';
import { newMember } from '../support/members.ts';
import { everyWire } from '../support/scripted-server.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { loopClients, type LoopClient } from './tool-loop.ts';

/** Thoughts in another process, of another user, at another provider. */

// oxlint-disable-next-line typescript/no-explicit-any -- bodies are read as a provider reads them
type Any = any;
const list = (value: unknown): Any[] => (Array.isArray(value) ? value : []);
const thought = 'The user wants to know the weather. ';

/** What was said in front of another provider, in the words of each interface. */
const question = { type: 'text', text: 'And in Rome?' };
const foreign = {
  messages: {
    messages: [
      { role: 'user', content: 'What is the weather?' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm.', signature: 'signature of another' },
          { type: 'text', text: 'Fine.' },
        ],
      },
      { role: 'user', content: [question] },
    ],
  },
  responses: {
    input: [
      { role: 'user', content: 'What is the weather?' },
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }], encrypted_content: 'signature of another' },
      { role: 'assistant', content: 'Fine.' },
      { role: 'user', content: question.text },
    ],
  },
  gemini: {
    contents: [
      { role: 'user', parts: [{ text: 'What is the weather?' }] },
      { role: 'model', parts: [{ functionCall: { name: 'look', args: {} }, thoughtSignature: 'signature of another' }] },
      { role: 'user', parts: [{ functionResponse: { name: 'look', response: { output: 'Fine.' } } }] },
    ],
  },
} as const;

const isFirst = (body: Any) =>
  list(body.messages ?? body.input ?? body.contents).every(({ role, type }) => role !== 'assistant' && role !== 'model' && type !== 'function_call');

/** Thinks and calls a tool in the first turn; refuses what it is told to. */
const provider = (refuses: (body: Any) => string | undefined | false = () => false): Behaviour =>
  always({
    name: 'a provider that thinks',
    answer(exchange) {
      const body = exchange.request.json as Any;
      const message = refuses(body);
      if (message) return refusal(400, { message }).answer(exchange);
      return ok(isFirst(body) ? { thought, text: '', tools: [{ name: 'look', json: '{"city":"Paris"}' }] } : { text: 'It rains.' }).answer(exchange);
    },
  });

let upstream: Upstream;
beforeAll(async () => void (upstream = await startUpstream()));
afterAll(() => upstream.close());
afterEach(() => upstream.reset());

const clientOf = (name: string): LoopClient => loopClients.find((one) => one.name === name)!;
const forgetful = clientOf('chat completions');
const sent = (at = -1) => upstream.requests.at(at)!.json as Any;
const callMessage = (body: Any) => list(body.messages).find(({ tool_calls: calls }) => calls);

async function finished(server: Pick<TestServer, 'ask'>, path: string, body: object): Promise<{ status: number; text: string; warnings: string | null }> {
  const answer = await server.ask(path, body);
  return { status: answer.status, text: await answer.text(), warnings: answer.headers.get('x-dragoman-warnings') };
}

onBothDatabases('thoughts', ({ place, name }) => {
  test('are there after a restart', async () => {
    upstream.script(provider());
    const at = await place();
    const start = async () => {
      const server = await startTestServer({ ...at, yaml: everyWire(upstream) });
      onTestFinished(server.close);
      return server;
    };
    const before = await start();
    const { path, second } = await forgetful.first(before, 'messages', false);
    await before.close();
    expect((await finished(await start(), path, second)).status).toBe(200);
    expect(sent().messages[1].content[0]).toMatchObject({ type: 'thinking', thinking: thought });
  }, 120_000);

  test.each(name === 'embedded' ? [] : ['messages', 'gemini', 'responses'])(
    'of the wire %s are shared by two machines at once',
    async (model) => {
      upstream.script(provider());
      const at = await place();
      const [a, b] = ['a', 'b'].map((machine) => join(at.folder, machine));
      for (const folder of [a!, b!]) await mkdir(join(folder, 'data'), { recursive: true });
      const start = async (folder: string) => {
        const server = await startTestServer({ databaseUrl: at.databaseUrl!, folder, yaml: everyWire(upstream) });
        onTestFinished(server.close);
        return server;
      };
      const one = await start(a!);
      await copyFile(join(a!, 'data', 'master.key'), join(b!, 'data', 'master.key'));
      const other = await start(b!);
      for (const stream of [false, true]) {
        const { path, second } = await forgetful.first(one, model, stream);
        expect((await finished(other, path, second)).status).toBe(200);
        expect(JSON.stringify(sent())).toMatch(/c2lnbmF0dXJl|gAAAAAencrypted/);
      }
    },
    120_000,
  );
});

/** https://platform.claude.com/docs/en/build-with-claude/preserved-thinking/fix-bound-to-a-different-conversation */
const otherConversation =
  'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".';

describe('on one server', () => {
  let server: TestServer;

  beforeAll(async () => {
    const yaml = everyWire(upstream)
      .replace('models:\n', '$&  deepseek-v4: { targets: [{ provider: deepseek }] }\n  mistral-large: { targets: [{ provider: mistral }] }\n')
      .replace(
        'providers:\n',
        `$&  deepseek: { dialect: openai-chat, baseUrl: "http://api.deepseek.com/v1", apiKeys: [k] }
  mistral: { dialect: openai-chat, baseUrl: "http://api.mistral.ai/v1", apiKeys: [k] }
  twin: { dialect: anthropic-messages, baseUrl: "${upstream.url.replace('127.0.0.1', 'localhost')}", apiKeys: [k] }\n`,
      )
      .replace('models:\n', '$&  twin: { targets: [{ provider: twin }] }\n');
    server = await startTestServer({ yaml: `${yaml}outbound: { proxy: "${upstream.url}", noProxy: "127.0.0.1,localhost" }\n` });
  });
  afterAll(() => server.close());

  const demanding = provider((body) => {
    const isLost = list(body.messages).some(({ tool_calls: calls, reasoning_content: said }) => calls && !said);
    return isLost && 'The `reasoning_content` in the thinking mode must be passed back to the API.';
  });

  test.each(loopClients)('DeepSeek, known by its address, refuses nothing of a client of $name', async (client) => {
    upstream.script(demanding);
    const { path, second } = await client.first(server, 'deepseek-v4', true);
    expect((await finished(server, path, second)).status).toBe(200);
    expect(upstream.requests).toHaveLength(2);
    expect(callMessage(sent()).reasoning_content).toBe(thought);
  });

  test('a request that needs no thoughts added reaches DeepSeek as its client wrote it', async () => {
    upstream.script(demanding);
    const { path, second } = await clientOf('chat completions with reasoning_content returned').first(server, 'deepseek-v4', false);
    const text = JSON.stringify(second, undefined, 1);
    await server.ask(path, text);
    expect(upstream.requests.at(-1)!.body.toString()).toBe(text);
  });

  test.each(loopClients)('a conversation of a client of $name moves from Claude to DeepSeek', async (client) => {
    upstream.script(demanding);
    const { path, second } = await client.first(server, 'messages', false);
    const { status, warnings } = await finished(server, path.replace('messages:', 'deepseek-v4:'), { ...second, model: 'deepseek-v4' });
    expect([status, upstream.requests.length, callMessage(sent()).reasoning_content.length > 0]).toEqual([200, 2, true]);
    const isPlaceholder = callMessage(sent()).reasoning_content === '.';
    expect((warnings ?? '').includes('reasoning_content: the provider demands')).toBe(isPlaceholder);
    expect(JSON.stringify(sent())).not.toMatch(/c2lnbmF0dXJl|ZHJhZ29tYW4u/);
  });

  test.each(loopClients)('a conversation of a client of $name moves from DeepSeek to Mistral, which takes no thoughts', async (client) => {
    upstream.script(
      provider(
        ({ messages }) =>
          list(messages).some((one) => 'reasoning_content' in one) &&
          !isFirst({ messages }) &&
          sent().model === 'mistral-large' &&
          'Extra inputs are not permitted',
      ),
    );
    const { path, second } = await client.first(server, 'deepseek-v4', false);
    const { status } = await finished(server, path.replace('deepseek-v4:', 'mistral-large:'), { ...second, model: 'mistral-large' });
    expect([status, upstream.requests.length]).toEqual([200, 2]);
    expect(callMessage(sent())).not.toHaveProperty('reasoning_content');
  });

  test.each(loopClients)('a conversation of a client of $name moves from DeepSeek to Claude, which then does not think for a turn', async (client) => {
    upstream.script(
      provider(({ thinking, messages }) => {
        const last = list(messages).findLast(({ role }) => role === 'assistant');
        if (JSON.stringify(messages).includes('ZHJhZ29tYW4u')) return 'messages.1.content.0: Invalid `signature` in `thinking` block';
        return (
          last &&
          !last.tool_calls &&
          thinking?.type === 'enabled' &&
          last.content[0].type !== 'thinking' &&
          'messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.'
        );
      }),
    );
    const { path, second } = await client.first(server, 'deepseek-v4', false);
    const { status, warnings } = await finished(server, path.replace('deepseek-v4:', 'messages:'), { ...second, model: 'messages' });
    expect([status, upstream.requests.length]).toEqual([200, 2]);
    expect(warnings).toContain('the thoughts before the last tool calls are not there');
  });

  test.each(loopClients)('a signature goes to no other provider of the same wire, with a client of $name', async (client) => {
    if (client.name === 'messages') return; // it returns the signature itself
    upstream.script(provider());
    const { path, second } = await client.first(server, 'messages', false);
    await finished(server, path.replace('messages:', 'twin:'), { ...second, model: 'twin' });
    expect(JSON.stringify(sent())).not.toContain('c2lnbmF0dXJl');
  });

  test.each(['messages.1.content.0: Invalid `signature` in `thinking` block', otherConversation])(
    'added thoughts that a provider refuses are left out: %s',
    async (words) => {
      upstream.script(provider(({ messages }) => JSON.stringify(messages).includes('"thinking"') && words));
      const { path, second } = await forgetful.first(server, 'messages', false);
      expect((await finished(server, path, second)).status).toBe(200);
      expect([sent(-2).messages[1].content[0].type, sent().messages[1].content[0].type]).toEqual(['thinking', 'tool_use']);
    },
  );

  test.each([
    ['messages', 'messages', 'messages.1.content.0: Invalid `signature` in `thinking` block'],
    ['messages', 'messages', otherConversation],
    ['responses', 'responses', 'The encrypted content of a... could not be verified. Reason: Encrypted content could not be decrypted or parsed.'],
    ['gemini', 'gencompat', 'Thought signature is not valid'],
  ] as const)('a client of the wire %s that brings along what another has signed is answered, and warned', async (model, face, refusal) => {
    upstream.script(provider((body) => JSON.stringify(body).includes('of another') && refusal));
    const { status, headers, raw } = await askFace(server, face, { model, content: '', stream: false, more: foreign[model] });
    expect([status, raw]).toEqual([200, expect.stringContaining('It rains.')]);
    expect(JSON.stringify(sent())).not.toContain('of another');
    expect(headers.get('x-dragoman-warnings')!.match(/thoughts: /g)).toHaveLength(1);
  });

  test('reasoning without a summary that another has signed is warned of', async () => {
    upstream.script(provider((body) => JSON.stringify(body).includes('of another') && 'The encrypted content of a... could not be verified.'));
    const input = foreign.responses.input.map((item) => ('summary' in item ? { ...item, summary: [] } : item));
    const { status, headers } = await askFace(server, 'responses', { model: 'responses', content: '', stream: false, more: { input } });
    expect([status, headers.get('x-dragoman-warnings')?.match(/thoughts: /g)]).toEqual([200, ['thoughts: ']]);
  });

  /** Thoughts without text: what another provider signed, or the gateway's token of it. */
  const empty = {
    messages: (signature: string) => ({
      messages: [
        foreign.messages.messages[0],
        { role: 'assistant', content: [{ type: 'thinking', thinking: '', signature }, question] },
        foreign.messages.messages[2],
      ],
    }),
    responses: (signature: string) => ({
      input: foreign.responses.input.map((item) => ('summary' in item ? { ...item, summary: [], encrypted_content: signature } : item)),
    }),
  };
  const token = `${Buffer.from('dragoman.').toString('base64')}QUFBQUFBQUFBQUFB`;

  test.each(
    (['messages', 'responses'] as const).flatMap((face) =>
      ['chat', 'messages', 'responses', 'gemini'].flatMap((model) =>
        [...(model === face ? [] : ['signature of another']), token].map((signature) => ({ face, model, signature })),
      ),
    ),
  )('an empty thought of a client of $face is warned of by a $model provider: $signature', async ({ face, model, signature }) => {
    upstream.script(provider());
    const { status, headers } = await askFace(server, face, { model, content: '', stream: false, more: empty[face](signature) });
    expect([status, headers.get('x-dragoman-warnings')?.match(/thoughts: /g)]).toEqual([200, ['thoughts: ']]);
    expect(JSON.stringify(sent())).not.toContain(signature);
  });

  test.each(['chat', 'messages', 'responses', 'gemini'])('one that has nothing at all is not, by a %s provider', async (model) => {
    upstream.script(provider());
    const { status, headers } = await askFace(server, 'messages', { model, content: '', stream: false, more: empty.messages('') });
    expect([status, headers.get('x-dragoman-warnings')?.match(/thoughts: /g)]).toEqual([200, undefined]);
  });

  test('another user gets none of them, by id or by token', async () => {
    upstream.script(provider());
    const member = await newMember(server);
    const asOther: Pick<TestServer, 'ask'> = { ask: (path, body) => server.ask(path, body, { headers: { authorization: `Bearer ${member.keys[0]}` } }) };
    for (const client of [forgetful, clientOf('responses, with encrypted_content')]) {
      const { path, second } = await client.first(server, 'messages', false);
      expect((await finished(asOther, path, second)).status).toBe(200);
      expect(JSON.stringify(sent())).not.toContain('c2lnbmF0dXJl');
    }
  });

  test.each(['messages', 'responses, with encrypted_content'])('a token that was changed is ignored, and never sent on: %s', async (name) => {
    upstream.script(demanding);
    const { path, second } = await clientOf(name).first(server, 'deepseek-v4', true);
    const changed = JSON.stringify(second).replace(/(ZHJhZ29tYW4u.{20})./, (_, head) => `${head}_`);
    expect(changed).not.toBe(JSON.stringify(second));
    const body = { ...(JSON.parse(changed) as object), tool_choice: undefined };
    expect((await finished(server, path, body)).status).toBe(200);
    expect(callMessage(sent()).reasoning_content).toBe(thought); // by the id of its call
    expect(JSON.stringify(sent())).not.toContain('ZHJhZ29tYW4u');
  });

  test('two conversations with the same ids of calls do not mix their thoughts', async () => {
    let count = 0;
    upstream.script(
      always({
        name: 'counts',
        answer: (exchange) => {
          if (!isFirst(exchange.request.json)) return ok({ text: 'It rains.' }).answer(exchange);
          const answer = ok({ thought: `thought ${++count}`, text: '', tools: [{ name: 'look', json: '{}' }] });
          return answer.answer({ ...exchange, request: { ...exchange.request, id: 0 } });
        },
      }),
    );
    const both = [await forgetful.first(server, 'deepseek-v4', false), await forgetful.first(server, 'deepseek-v4', false)];
    expect(new Set(both.map(({ answer }) => answer.tool_calls[0].id)).size).toBe(1);
    for (const [at, { path, second }] of both.entries()) {
      await finished(server, path, second);
      expect(callMessage(sent()).reasoning_content).toBe(`thought ${at + 1}`);
    }
  });
});
