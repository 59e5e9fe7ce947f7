import { describe, expect, test } from 'vitest';
import { askFace } from '../support/all-faces.ts';
import { ok } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';
import { scriptedVendors } from '../support/scripted-vendors.ts';

/** Answers of one word of several (`text/x.enum`), and answers whose schema is not that of an object. */

const { vendors, server } = await scriptedVendors();

const generationConfig = { responseMimeType: 'text/x.enum', responseSchema: { type: 'STRING', enum: ['owl', 'bear'] } };
const models = ['gpt-4o', 'gpt-5', 'gpt-4o-on-responses', 'claude-opus-4-6', 'gemini-3-flash-preview', 'deepseek-chat', 'mistral-large-latest'];

describe.each(models.flatMap((model) => [false, true].map((stream) => ({ model, stream }))))('$model, streamed: $stream', ({ model, stream }) => {
  test('a client that asks for one of several words gets the bare word', async () => {
    const answer = await askFace(server, 'gencompat', { model, content: 'Which animal?', stream, more: { generationConfig } });
    expect(answer).toMatchObject({ status: 200, text: 'owl', complete: true });
    expect(vendors.requests).toHaveLength(1);
    expect(vendors.requests[0]!.text).toContain('bear');
    if (!model.startsWith('gemini') && !model.startsWith('deepseek'))
      expect(answer.headers.get('x-dragoman-warnings') ?? '').not.toMatch(/responseMimeType|format/);
  });
});

test('a Gemini is asked in the words of its client', async () => {
  await askFace(server, 'gencompat', { model: 'gemini-3-flash-preview', content: 'Which animal?', stream: false, more: { generationConfig } });
  expect(vendors.requests[0]!.body).toMatchObject({ generationConfig });
});

test.each(['gpt-4o-on-responses', 'gpt-4o', 'deepseek-chat'].flatMap((model) => [[model, false] as const, [model, true] as const]))(
  'the answer of %s may be an array; streamed: %s',
  async (model, stream) => {
    const more = { generationConfig: { responseMimeType: 'application/json', responseSchema: { type: 'ARRAY', items: { type: 'STRING' } } } };
    const answer = await askFace(server, 'gencompat', { model, content: 'List them.', stream, more });
    expect(answer).toMatchObject({ status: 200, complete: true });
    expect(Array.isArray(JSON.parse(answer.text))).toBe(true);
    expect(vendors.requests).toHaveLength(1);
  },
);

const scripted = await scriptedServer((one) => ({ yaml: everyWire(one) }));

describe('an answer', () => {
  const ask = (model: string) => askFace(scripted.server, 'gencompat', { model, content: 'Which?', stream: true, more: { generationConfig } });

  test.each(['chat', 'responses', 'messages'])('of a %s provider that is none of the words is asked for once more', async (model) => {
    scripted.upstream.script(ok({ text: '{"answer":"fox"}' }), ok({ text: '```json\n{"answer":"bear"}\n```' }));
    expect(await ask(model)).toMatchObject({ status: 200, text: 'bear' });
    expect(scripted.upstream.requests).toHaveLength(2);
  });

  test('that is never one of the words is an error', async () => {
    scripted.upstream.script(ok({ text: 'fox' }), ok({ text: 'a fox' }));
    expect((await ask('chat')).status).toBe(502);
  });

  test('of the built-in model is one of the words', async () => {
    expect((await ask('built-in')).text).toMatch(/^(?:owl|bear)$/);
  });
});

test('numbers of a value keep their digits', async () => {
  scripted.upstream.script(ok({ text: '{"answer":[12345678901234567890,1.10]}' }));
  const more = { response_format: { type: 'json_schema', json_schema: { name: 'n', strict: true, schema: { type: 'array', items: { type: 'number' } } } } };
  const answer = await askFace(scripted.server, 'chat', { model: 'responses', content: 'Which?', stream: false, more });
  expect(answer.text).toBe('[12345678901234567890,1.10]');
  expect(answer.headers.get('x-dragoman-warnings')).toBeNull();
});
