import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openSite, type Site } from '../support/fakes/web.ts';
import { chat, startTestServer, type TestServer } from '../support/server.ts';

/** What a provider cites is cited in every interface, in its words. */

let provider: Site;
let server: TestServer;

const text = 'Far 🌙 away.';
const cited = '🌙 away';
const url = 'https://moon.example/a';
const title = 'The moon';
const bytes = (piece: string) => Buffer.byteLength(piece);

const citedBlock = { type: 'text', text: cited, citations: [{ type: 'web_search_result_location', url, title, cited_text: 'c', encrypted_index: 'e' }] };
const message = (content: readonly object[]) => ({
  id: 'msg_x',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content,
  stop_reason: 'end_turn',
  usage: { input_tokens: 1, output_tokens: 1 },
});

/** An answer of each wire that cites. */
const answers: Readonly<Record<string, object>> = {
  '/v1/chat/completions': {
    id: 'x',
    object: 'chat.completion',
    model: 'm',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: text, annotations: [{ type: 'url_citation', url_citation: { start_index: 4, end_index: 10, url, title } }] },
        finish_reason: 'stop',
      },
    ],
  },
  '/v1/responses': {
    id: 'resp_x',
    object: 'response',
    model: 'm',
    status: 'completed',
    output: [
      {
        id: 'msg_x',
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text, annotations: [{ type: 'url_citation', start_index: 4, end_index: 10, url, title }] }],
      },
    ],
  },
  '/v1/messages': message([{ type: 'text', text: 'Far ' }, citedBlock, { type: 'text', text: '.' }]),
  // The places of citations count from the start of the message, although its text is in pieces.
  '/searched/v1/messages': message([
    { type: 'text', text: 'Far ' },
    { type: 'server_tool_use', id: 'srvtoolu_x', name: 'web_search', input: { query: 'moon' } },
    { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_x', content: [] },
    citedBlock,
    { type: 'text', text: '.' },
  ]),
  '/v1beta/models/gemini:generateContent': {
    candidates: [
      {
        content: { role: 'model', parts: [{ text, thoughtSignature: 'c2ln' }] },
        finishReason: 'STOP',
        groundingMetadata: {
          webSearchQueries: ['moon'],
          groundingChunks: [{ web: { uri: url, title } }],
          groundingSupports: [{ segment: { startIndex: bytes('Far '), endIndex: bytes(`Far ${cited}`), text: cited }, groundingChunkIndices: [0] }],
        },
      },
    ],
    modelVersion: 'm',
  },
};

beforeAll(async () => {
  provider = await openSite();
  provider.answer((request, response) => {
    const body = answers[request.url!.replace(/:streamGenerateContent\?alt=sse$/, ':generateContent')];
    response.writeHead(body ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(body ?? {}));
  });
  const at = `http://127.0.0.1:${provider.port}`;
  server = await startTestServer({
    yaml: `
providers:
  chat: { dialect: openai-chat, baseUrl: "${at}/v1" }
  responses: { dialect: openai-responses, baseUrl: "${at}/v1" }
  messages: { dialect: anthropic-messages, baseUrl: "${at}" }
  searched: { dialect: anthropic-messages, baseUrl: "${at}/searched" }
  gemini: { dialect: gemini, baseUrl: "${at}/v1beta" }
models:
  chat: { targets: [{ provider: chat }] }
  responses: { targets: [{ provider: responses }] }
  messages: { targets: [{ provider: messages }] }
  searched: { targets: [{ provider: searched }] }
  gemini: { targets: [{ provider: gemini }] }
`,
  });
});
afterAll(async () => {
  await server.close();
  await provider.close();
});

/** Each JSON object in an answer, whole or streamed. */
function* objects(answer: string): Generator<Loose> {
  const texts = answer.startsWith('{') ? [answer] : answer.split(/\r?\n/).flatMap((line) => (line.startsWith('data: {') ? [line.slice(6)] : []));
  for (const one of texts) yield* within(JSON.parse(one) as unknown);
}
function* within(value: unknown): Generator<Loose> {
  if (value === null || typeof value !== 'object') return;
  if (!Array.isArray(value)) yield value as Loose;
  for (const one of Object.values(value)) yield* within(one);
}
type Loose = Readonly<Record<string, unknown>>;

const turns = [{ role: 'user', content: 'How far?' }];

/** How each interface is asked, and what it must say. */
const faces: Readonly<
  Record<string, { readonly ask: (model: string, stream: boolean, searches: boolean) => readonly [string, object]; readonly cites: (object: Loose) => boolean }>
> = {
  chat: {
    ask: (model, stream) => [chat, { model, messages: turns, stream }],
    cites: (one) => one['start_index'] === 4 && one['end_index'] === 10 && one['url'] === url && one['title'] === title,
  },
  responses: {
    ask: (model, stream) => ['/server/chatcompat/v1/responses', { model, input: 'How far?', stream }],
    cites: (one) => one['type'] === 'url_citation' && one['url'] === url && Number(one['end_index']) - Number(one['start_index']) === 6,
  },
  messages: {
    ask: (model, stream, searches) => [
      '/server/messages/v1/messages',
      { model, max_tokens: 10, messages: turns, stream, ...(searches ? { tools: [{ type: 'web_search_20250305', name: 'web_search' }] } : {}) },
    ],
    cites: (one) => one['type'] === 'web_search_result_location' && one['url'] === url && [cited, 'c'].includes(String(one['cited_text'])),
  },
  gemini: {
    ask: (model, stream, searches) => [
      `/server/gencompat/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
      { contents: [{ role: 'user', parts: [{ text: 'How far?' }] }], ...(searches ? { tools: [{ googleSearch: {} }] } : {}) },
    ],
    cites: (one) => one['startIndex'] === bytes('Far ') && one['endIndex'] === bytes(`Far ${cited}`) && one['text'] === cited,
  },
};

describe.each(Object.keys(faces))('in the interface of %s', (face) => {
  // Some providers search although the client did not ask for it.
  const ways = [false, true].flatMap((stream) => [false, true].map((searches) => ({ stream, searches })));
  test.each(['chat', 'responses', 'messages', 'searched', 'gemini'].flatMap((model) => ways.map((way) => ({ model, ...way }))))(
    'what a provider of $model says is cited once (stream: $stream, with a search tool: $searches)',
    async ({ model, stream, searches }) => {
      const { ask, cites } = faces[face]!;
      const [path, body] = ask(model, stream, searches);
      const answer = await server.ask(path, body);
      const said = await answer.text();
      expect(answer.status).toBe(200);
      const found = [...objects(said)].filter(cites);
      // A stream of responses says it when it comes, and again in the part, the item and the response that are done.
      expect([said, found.length]).toEqual([said, face === 'responses' && stream ? 4 : 1]);
    },
  );
});
