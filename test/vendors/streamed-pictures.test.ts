/* Models that draw stream a picture as one frame of megabytes: https://ai.google.dev/gemini-api/docs/image-generation */
import { expect, test } from 'vitest';
import { on, says } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer((upstream) => ({ yaml: everyWire(upstream) }));

const picture = 'iVBORw0KGgo'.padEnd(8_000_000, 'QUJD');
const frames = (...all: readonly object[]) => all.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('');

const chunk = (delta: object, finish: string | null = null) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const drawn = { id: 'ig_1', type: 'image_generation_call', status: 'completed', result: picture };
const response = { id: 'resp_1', object: 'response', created_at: 1, model: 'm', status: 'in_progress', output: [] };
const usage = { input_tokens: 5, output_tokens: 7, total_tokens: 12 };

/** What providers of each wire stream, with one picture. */
const streams = {
  gemini: frames(
    { candidates: [{ content: { role: 'model', parts: [{ text: 'Here: ' }] } }] },
    { candidates: [{ content: { role: 'model', parts: [{ inlineData: { mimeType: 'image/png', data: picture } }] } }] },
    { candidates: [{ content: { role: 'model', parts: [] }, finishReason: 'STOP' }], usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 7 } },
  ),
  // as OpenRouter writes them: https://openrouter.ai/docs/features/multimodal/image-generation
  chat: `${frames(
    chunk({ role: 'assistant', content: 'Here: ' }),
    chunk({ images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${picture}` } }] }),
    chunk({}, 'stop'),
  )}data: [DONE]\n\n`,
  responses: frames(
    { type: 'response.created', sequence_number: 0, response },
    { type: 'response.output_item.added', sequence_number: 1, output_index: 0, item: { ...drawn, status: 'in_progress', result: null } },
    {
      type: 'response.image_generation_call.partial_image',
      sequence_number: 2,
      item_id: 'ig_1',
      output_index: 0,
      partial_image_index: 0,
      partial_image_b64: picture,
    },
    { type: 'response.output_item.done', sequence_number: 3, output_index: 0, item: drawn },
    { type: 'response.completed', sequence_number: 4, response: { ...response, status: 'completed', output: [drawn], usage } },
  ),
};

const asks: Readonly<Record<string, (model: string) => readonly [path: string, body: object]>> = {
  chat: (model) => ['/v1/chat/completions', { model, messages: [{ role: 'user', content: 'draw' }], stream: true }],
  responses: (model) => ['/v1/responses', { model, input: 'draw', stream: true, tools: [{ type: 'image_generation' }] }],
  messages: (model) => ['/v1/messages', { model, max_tokens: 100, messages: [{ role: 'user', content: 'draw' }], stream: true }],
  gencompat: (model) => [`/v1beta/models/${model}:streamGenerateContent?alt=sse`, { contents: [{ role: 'user', parts: [{ text: 'draw' }] }] }],
};
/** The interfaces that can show it. */
const shown = { gemini: ['gencompat'], chat: ['chat'], responses: ['responses'] };

for (const [wire, faces] of Object.entries(shown))
  test(`a picture of 8 MB in one frame of a stream (${wire}) ends no answer, and arrives where it can be shown`, { timeout: 120_000 }, async () => {
    for (const [face, asked] of Object.entries(asks)) {
      upstream.script(on({}, says(/./, 'text/event-stream', streams[wire as keyof typeof streams])));
      const answer = await server.ask(...asked(wire));
      const text = await answer.text();
      expect([face, answer.status]).toEqual([face, 200]);
      expect([face, /"error":\s*\{/.test(text)]).toEqual([face, false]);
      if (faces.includes(face)) expect([face, text.includes(picture)]).toEqual([face, true]);
    }
  });
