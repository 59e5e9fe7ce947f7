/** The provider of `upstream.c` for machines without a C compiler: the same options, the same answers, ten times the cost. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const option = { type: 'string' } as const;
const { values } = parseArgs({ options: { port: option, chunks: option, pause: option, life: option } });
const chunks = Number(values.chunks ?? 200);
const pauseMilliseconds = Number(values.pause ?? 0) / 1000;
void setTimeout(Number(values.life ?? 3600) * 1000, undefined, { ref: false }).then(() => process.exit());

const same = { id: 'chatcmpl-123456789', created: 1794960000, model: 'gpt-4o-mini-2024-07-18', system_fingerprint: 'fp_abc' };
const usage = { prompt_tokens: 219, completion_tokens: chunks, total_tokens: 219 + chunks };
const message = { role: 'assistant', content: 'The quick brown fox "jumps" over 7 dogs. '.repeat(14), refusal: null, annotations: [] };
const whole = JSON.stringify({
  ...same,
  object: 'chat.completion',
  choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
  usage,
  service_tier: 'default',
});

const vector = JSON.stringify(Array.from({ length: 1536 }, (_, n) => Number((((n * 104_729) % 200_003) / 3_000_000).toFixed(8))));
const embeddings = Array.from({ length: 256 }, (_, index) => `{"object":"embedding","index":${index},"embedding":${vector}}`);
const vectors = `{"object":"list","data":[${embeddings.join()}],"model":"text-embedding-3-small","usage":{"prompt_tokens":2048,"total_tokens":2048}}`;

interface Words {
  readonly whole: string;
  readonly opening: string;
  readonly chunk: string;
  readonly ending: string;
}

const chatFrame = (chunk: object) => `data: ${JSON.stringify({ ...same, object: 'chat.completion.chunk', ...chunk })}\n\n`;
const chat: Words = {
  whole,
  opening: '',
  chunk: chatFrame({ choices: [{ index: 0, delta: { content: ' hello' }, finish_reason: null }] }),
  ending: `${chatFrame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}${chatFrame({ choices: [], usage })}data: [DONE]\n\n`,
};

const place = { item_id: 'msg_123456789', output_index: 0, content_index: 0 };
const item = (status: string, content: readonly object[]) => ({ id: place.item_id, type: 'message', status, role: 'assistant', content });
const said = item('completed', [{ type: 'output_text', annotations: [], logprobs: [], text: message.content }]);
const respond = (status: string, output: readonly object[]) => ({
  id: 'resp_123456789',
  object: 'response',
  created_at: same.created,
  model: same.model,
  status,
  output,
  usage: { input_tokens: 219, output_tokens: chunks, total_tokens: 219 + chunks },
});
const event = (type: string, members: object) => `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: 3, ...members })}\n\n`;
const responses: Words = {
  whole: JSON.stringify(respond('completed', [said])),
  opening:
    event('response.created', { response: respond('in_progress', []) }) +
    event('response.output_item.added', { output_index: 0, item: item('in_progress', []) }) +
    event('response.content_part.added', { ...place, part: { type: 'output_text', annotations: [], logprobs: [], text: '' } }),
  chunk: event('response.output_text.delta', { ...place, delta: ' hello', logprobs: [] }),
  ending: event('response.output_item.done', { output_index: 0, item: said }) + event('response.completed', { response: respond('completed', [said]) }),
};

const anthropic: Words = {
  whole: JSON.stringify({
    id: 'msg_123456789',
    type: 'message',
    role: 'assistant',
    model: 'claude-haiku-4-5',
    content: [{ type: 'text', text: message.content }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 219, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: chunks, service_tier: 'standard' },
  }),
  opening: '',
  chunk: '',
  ending: '',
};

const content = (text: string, finishReason?: string) =>
  JSON.stringify({
    candidates: [{ content: { parts: [{ text }], role: 'model' }, finishReason, index: 0 }],
    usageMetadata: { promptTokenCount: 219, candidatesTokenCount: chunks, totalTokenCount: 219 + chunks },
    modelVersion: 'gemini-2.5-flash',
    responseId: 'abcdefghijklmnop',
  });
const google: Words = {
  whole: content(message.content, 'STOP'),
  opening: '',
  chunk: `data: ${content(' hello')}\r\n\r\n`,
  ending: `data: ${content('', 'STOP')}\r\n\r\n`,
};

createServer((request, response) => void answer(request, response)).listen(Number(values.port ?? 9700), '127.0.0.1');

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let body = '';
  for await (const bytes of request.setEncoding('utf8')) body += String(bytes);
  const url = request.url ?? '';
  const words = url.endsWith('/responses') ? responses : url.endsWith('/messages') ? anthropic : url.includes('Content') ? google : chat;
  const text = url.endsWith('/embeddings') ? vectors : words.whole;
  if (words === google ? url.includes(':stream') : body.includes('"stream":true')) await stream(response, words);
  else response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text);
}

async function stream(response: ServerResponse, { opening, chunk, ending }: Words): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.write(opening + (pauseMilliseconds === 0 ? chunk.repeat(chunks) : ''));
  for (let said = 0; pauseMilliseconds > 0 && said < chunks && !response.destroyed; said++) {
    response.write(chunk);
    await setTimeout(pauseMilliseconds);
  }
  response.end(ending);
}
