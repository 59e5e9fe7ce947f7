/* Tokens of sound in the usage of an answer, between the interfaces that have them. */
import { expect, test } from 'vitest';
import { sumOf } from '#core/usage';
import { encodeUsage, usageOf } from '#dialects/openai/chat/usage';
import { askFace } from '../support/all-faces.ts';
import { on, stream as pieces, type Behaviour } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

const ofGemini = {
  candidates: [{ content: { role: 'model', parts: [{ text: 'hello' }] }, finishReason: 'STOP', index: 0 }],
  usageMetadata: {
    promptTokenCount: 110,
    candidatesTokenCount: 20,
    totalTokenCount: 130,
    promptTokensDetails: [
      { modality: 'TEXT', tokenCount: 10 },
      { modality: 'AUDIO', tokenCount: 100 },
    ],
    candidatesTokensDetails: [{ modality: 'AUDIO', tokenCount: 20 }],
  },
};
const details = { prompt_tokens_details: { audio_tokens: 100 }, completion_tokens_details: { audio_tokens: 20 } };
const message = { role: 'assistant', content: 'hello' };
const usage = { prompt_tokens: 110, completion_tokens: 20, total_tokens: 130, ...details };
const chunk = { id: 'c1', model: 'm', choices: [{ index: 0, delta: message, finish_reason: 'stop' }], usage };
const ofChat = { id: 'c1', object: 'chat.completion', model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }], usage };

const answering = (stream: boolean, frame: object, body: object): Behaviour =>
  on(
    {},
    {
      name: 'answer',
      answer: () =>
        stream ? pieces([`data: ${JSON.stringify(frame)}\n\n`]) : { ...pieces([JSON.stringify(body)]), headers: { 'content-type': 'application/json' } },
    },
  );

const usageIn = (raw: string, member: string): unknown => {
  const found: unknown[] = [];
  for (const json of raw.startsWith('{') ? [raw] : [...raw.matchAll(/^data: (\{.*\})$/gm)].map(([, one]) => one!))
    JSON.parse(json, (name, value: unknown) => {
      if (name === member && value !== null) found.push(value);
      return value;
    });
  return found.at(-1);
};

test.each(['gemini', 'chat'].flatMap((model) => [false, true].map((stream) => ({ model, stream }))))(
  'of a provider of $model reach clients of chat and of gencompat (streamed: $stream)',
  async ({ model, stream }) => {
    const script = () => upstream.script(model === 'gemini' ? answering(stream, ofGemini, ofGemini) : answering(stream, chunk, ofChat));
    script();
    const toChat = await askFace(server, 'chat', { model, content: 'hello', stream, ...(stream ? { more: { stream_options: { include_usage: true } } } : {}) });
    expect(usageIn(toChat.raw, 'usage')).toMatchObject(details);
    script();
    const toGemini = await askFace(server, 'gencompat', { model, content: 'hello', stream });
    expect(usageIn(toGemini.raw, 'usageMetadata')).toMatchObject(ofGemini.usageMetadata);
  },
);

test('counts of sound that are impossible or nought are left out', async () => {
  const odd = { ...usage, prompt_tokens_details: { audio_tokens: 1000 }, completion_tokens_details: { audio_tokens: 0 } };
  upstream.script(answering(false, {}, { ...ofChat, usage: odd }));
  const { raw } = await askFace(server, 'gencompat', { model: 'chat', content: 'hello', stream: false });
  expect(raw).not.toContain('TokensDetails');
});

test('of an answer in two rounds are those of both', () => {
  const round = usageOf(usage)!;
  expect(encodeUsage(sumOf(round, round))).toMatchObject({ prompt_tokens_details: { audio_tokens: 200 }, completion_tokens_details: { audio_tokens: 40 } });
});
