/** The provider of `upstream.c` for machines without a C compiler: the same words on the command line, the same answers, ten times the cost. */
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

const frame = (chunk: object) => `data: ${JSON.stringify({ ...same, object: 'chat.completion.chunk', ...chunk })}\n\n`;
const piece = frame({ choices: [{ index: 0, delta: { content: ' hello' }, finish_reason: null }] });
const ending = `${frame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}${frame({ choices: [], usage })}data: [DONE]\n\n`;

createServer((request, response) => void answer(request, response)).listen(Number(values.port ?? 9700), '127.0.0.1');

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let body = '';
  for await (const bytes of request.setEncoding('utf8')) body += String(bytes);
  if (body.includes('"input":[')) response.writeHead(200, { 'content-type': 'application/json', 'content-length': vectors.length }).end(vectors);
  else if (body.includes('"stream":true')) await stream(response);
  else response.writeHead(200, { 'content-type': 'application/json', 'content-length': whole.length }).end(whole);
}

async function stream(response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  if (pauseMilliseconds === 0) response.write(piece.repeat(chunks));
  else
    for (let said = 0; said < chunks && !response.destroyed; said++) {
      response.write(piece);
      await setTimeout(pauseMilliseconds);
    }
  response.end(ending);
}
