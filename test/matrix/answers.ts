/** Features of answers: what a provider of each wire says, and how one sees that a client of each interface is shown it. */
import { askFace, faces, type Face } from '../support/all-faces.ts';
import { body, startUpstream } from '../support/fakes/upstream/index.ts';
import type { WireName } from '../support/fakes/vendors/vendor.ts';
import { startTestServer } from '../support/server.ts';
import { spoken, wires, type Cell } from './cells.ts';
import { png } from './features.ts';

export interface AnswerFeature {
  readonly name: string;
  /** The body of the provider's answer; a wire that has no words for it is absent. */
  readonly said: Readonly<Partial<Record<WireName, object>>>;
  /** What the client's answer has; an interface that has no words for it is absent. */
  readonly shown: Readonly<Partial<Record<Face, RegExp>>>;
  /** Members of the request. */
  readonly asked?: Readonly<Partial<Record<Face, object>>>;
  /** What a warning of it says. */
  readonly word: RegExp;
}

interface Parts {
  readonly chat?: object;
  readonly responses?: readonly object[];
  readonly messages?: readonly object[];
  readonly gemini?: readonly object[];
}

const text = 'Owls fly.';
const said: Required<Parts> = {
  chat: { role: 'assistant', content: text },
  responses: [{ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text, annotations: [] }] }],
  messages: [{ type: 'text', text }],
  gemini: [{ text }],
};

/** An answer of each wire. */
const chat = (message: object = said.chat, more: object = {}) => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
  ...more,
});
const responses = (output: readonly object[] = said.responses, more: object = {}) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'm',
  output,
  usage: { input_tokens: 10, output_tokens: 10, total_tokens: 20 },
  ...more,
});
const messages = (content: readonly object[] = said.messages, more: object = {}) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content,
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 10, output_tokens: 10 },
  ...more,
});
const gemini = (parts: readonly object[] = said.gemini, candidate: object = {}, more: object = {}) => ({
  candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0, ...candidate }],
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 10, totalTokenCount: 20 },
  modelVersion: 'm',
  ...more,
});

const url = 'https://owls.example';
const title = 'Owls';
const query = 'do owls fly';
const citation = { type: 'url_citation', start_index: 0, end_index: 9, url, title };
const searching: AnswerFeature['asked'] = {
  chat: { web_search_options: {} },
  responses: { tools: [{ type: 'web_search' }] },
  messages: { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
  gencompat: { tools: [{ googleSearch: {} }] },
};
const cited = {
  chat: chat({ ...said.chat, annotations: [{ type: 'url_citation', url_citation: { start_index: 0, end_index: 9, url, title } }] }),
  responses: responses([
    { id: 'ws_1', type: 'web_search_call', status: 'completed', action: { type: 'search', query, sources: [{ type: 'url', url }] } },
    { ...said.responses[0], content: [{ type: 'output_text', text, annotations: [citation] }] },
  ]),
  messages: messages(
    [
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query } },
      {
        type: 'web_search_tool_result',
        tool_use_id: 'srvtoolu_1',
        content: [{ type: 'web_search_result', url, title, encrypted_content: 'c', page_age: null }],
      },
      { type: 'text', text, citations: [{ type: 'web_search_result_location', url, title, encrypted_index: 'i', cited_text: text }] },
    ],
    { usage: { input_tokens: 10, output_tokens: 10, server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 } } },
  ),
  gemini: gemini(said.gemini, {
    groundingMetadata: {
      webSearchQueries: [query],
      groundingChunks: [{ web: { uri: url, title } }],
      groundingSupports: [{ segment: { startIndex: 0, endIndex: 9, text }, groundingChunkIndices: [0] }],
    },
  }),
};

export const answerFeatures: readonly AnswerFeature[] = [
  {
    name: 'Cached tokens and those of thoughts',
    said: {
      chat: chat(said.chat, {
        usage: {
          prompt_tokens: 100,
          completion_tokens: 50,
          total_tokens: 150,
          prompt_tokens_details: { cached_tokens: 40 },
          completion_tokens_details: { reasoning_tokens: 20 },
        },
      }),
      responses: responses(said.responses, {
        usage: {
          input_tokens: 100,
          input_tokens_details: { cached_tokens: 40 },
          output_tokens: 50,
          output_tokens_details: { reasoning_tokens: 20 },
          total_tokens: 150,
        },
      }),
      messages: messages(said.messages, {
        usage: { input_tokens: 60, cache_read_input_tokens: 40, output_tokens: 50, output_tokens_details: { thinking_tokens: 20 } },
      }),
      gemini: gemini(
        said.gemini,
        {},
        { usageMetadata: { promptTokenCount: 100, cachedContentTokenCount: 40, candidatesTokenCount: 30, thoughtsTokenCount: 20, totalTokenCount: 150 } },
      ),
    },
    shown: {
      chat: /"cached_tokens":40.*"reasoning_tokens":20/,
      responses: /"cached_tokens":40.*"reasoning_tokens":20/,
      messages: /"input_tokens":60.*"cache_read_input_tokens":40.*"thinking_tokens":20/,
      gencompat: /(?=.*"thoughtsTokenCount":20).*"cachedContentTokenCount":40/,
    },
    word: /usage/,
  },
  {
    name: 'Tokens written to a cache',
    said: {
      chat: chat(said.chat, {
        usage: { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150, prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 40 } },
      }),
      responses: responses(said.responses, {
        usage: { input_tokens: 100, input_tokens_details: { cached_tokens: 0, cache_write_tokens: 40 }, output_tokens: 50, total_tokens: 150 },
      }),
      messages: messages(said.messages, { usage: { input_tokens: 60, cache_creation_input_tokens: 40, output_tokens: 50 } }),
    },
    shown: {
      chat: /"cache_write_tokens":40/,
      responses: /"cache_write_tokens":40/,
      messages: /"input_tokens":60.*"cache_creation_input_tokens":40/,
    },
    word: /usage/,
  },
  {
    name: 'Citations',
    said: cited,
    asked: searching,
    shown: {
      chat: /"url_citation":\{[^}]*"https:\/\/owls\.example"/,
      responses: /"type":"url_citation"[^}]*"https:\/\/owls\.example"/,
      messages: /"web_search_result_location"[^}]*"https:\/\/owls\.example"/,
      gencompat: /"groundingChunks":\[[^\]]*"https:\/\/owls\.example"/,
    },
    word: /citation/,
  },
  {
    name: 'Searches of the provider, and their number',
    said: { responses: cited.responses, messages: cited.messages, gemini: cited.gemini },
    asked: searching,
    shown: {
      responses: /"type":"web_search_call".*"do owls fly"/,
      messages: /"type":"server_tool_use".*"do owls fly".*"web_search_tool_result".*"web_search_requests":1/,
      gencompat: /"webSearchQueries":\["do owls fly"\]/,
    },
    word: /search/,
  },
  {
    name: 'The model declines',
    said: {
      chat: chat({ role: 'assistant', content: null, refusal: 'I cannot.' }),
      responses: responses([{ ...said.responses[0], content: [{ type: 'refusal', refusal: 'I cannot.' }] }]),
      messages: messages([{ type: 'text', text: 'I cannot.' }], { stop_reason: 'refusal' }),
      gemini: gemini([{ text: 'I cannot.' }], { finishReason: 'SAFETY' }),
    },
    shown: {
      chat: /"refusal":"I cannot\."|"I cannot\.".*"content_filter"/,
      responses: /"refusal":"I cannot\."|"I cannot\.".*"content_filter"|"content_filter".*"I cannot\."/,
      messages: /"I cannot\."/,
      gencompat: /"I cannot\."/,
    },
    word: /refusal/,
  },
  {
    name: 'A turn that the provider pauses (pause_turn)',
    said: {
      messages: messages([...said.messages, { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query } }], {
        stop_reason: 'pause_turn',
      }),
    },
    shown: {
      chat: /"finish_reason":"length"/,
      responses: /"status":"incomplete"/,
      messages: /"stop_reason":"pause_turn"/,
      gencompat: /"finishReason":"MAX_TOKENS"/,
    },
    word: /pause/,
  },
  {
    name: 'Pictures in the answer',
    said: { gemini: gemini([{ inlineData: { mimeType: 'image/png', data: png } }]) },
    shown: { chat: /image\/png/, responses: /"image_generation_call"/, messages: /image\/png/, gencompat: /image\/png/ },
    word: /image/,
  },
  {
    name: 'Code that the provider ran',
    said: {
      gemini: gemini([
        { executableCode: { language: 'PYTHON', code: 'print(7)' } },
        { codeExecutionResult: { outcome: 'OUTCOME_OK', output: 'seven' } },
        { text },
      ]),
    },
    shown: { chat: /print\(7\).*seven/, responses: /print\(7\).*seven/, messages: /print\(7\).*seven/, gencompat: /print\(7\).*seven/ },
    word: /code/,
  },
];

/** What each interface shows of them. */
export async function answerCells(): Promise<readonly Cell[]> {
  const upstream = await startUpstream();
  const server = await startTestServer({ yaml: settings(upstream.url) });
  const cells: Cell[] = [];
  for (const { name: feature, said: bodies, shown, asked = {}, word } of answerFeatures)
    for (const face of faces)
      for (const wire of wires) {
        const [answer, pattern] = [bodies[wire], shown[face]];
        if (!answer || !pattern) {
          cells.push({ feature, face, wire, outcome: 'unspeakable', because: '' });
          continue;
        }
        upstream.script(body(JSON.stringify(answer)));
        const { status, raw, headers } = await askFace(server, face, { model: wire, content: 'hi', stream: false, more: asked[face] ?? {} });
        upstream.reset();
        const warnings = headers.get('x-dragoman-warnings') ?? '';
        const isShown = status === 200 && pattern.test(raw);
        const outcome = isShown ? (spoken[face] === wire ? 'works' : 'translated') : word.test(warnings) ? 'said' : 'lost';
        cells.push({ feature, face, wire, outcome, because: isShown ? warnings : `${status} ${raw.slice(0, 300)}; warnings: ${warnings}` });
      }
  await server.close();
  await upstream.close();
  return cells;
}

const settings = (at: string) => `
providers:
  chat: { dialect: openai-chat, baseUrl: "${at}/v1", apiKeys: [k] }
  responses: { dialect: openai-responses, baseUrl: "${at}/v1", apiKeys: [k] }
  messages: { dialect: anthropic-messages, baseUrl: "${at}", apiKeys: [k] }
  gemini: { dialect: gemini, baseUrl: "${at}/v1beta", apiKeys: [k] }
models:
${['chat', 'responses', 'messages', 'gemini'].map((name) => `  ${name}: { targets: [{ provider: ${name} }], limits: { output: 1000 } }\n`).join('')}routing: { cooldownSeconds: 0 }
`;
