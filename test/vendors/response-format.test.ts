import { describe, expect, test } from 'vitest';
import { askFace } from '../support/all-faces.ts';
import { badRequest, ok } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** `responseFormat`, by which google-genai 3.6 asks for JSON, at each wire. */

const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

const schema = { type: 'object', properties: { first_name: { type: 'string' } }, required: ['first_name'] };
const text = { mimeType: 'APPLICATION_JSON', schema };
const ask = (model: string, generationConfig: object, headers: Readonly<Record<string, string>> = {}) =>
  askFace(server, 'gencompat', { model, content: 'Say it in JSON.', stream: false, more: { generationConfig }, headers });
const sent = () => JSON.stringify(upstream.requests.at(-1)!.json);
const strict = { 'x-dragoman-strict': 'true' };

describe.each([
  ['an object', { responseFormat: { text } }],
  ['a list', { responseFormat: [{ text }] }],
  ['in snake_case, as Python writes it', { response_format: [{ text: { mime_type: 'application/json', jsonSchema: schema } }] }],
])('%s', (_, config) => {
  test.each(['chat', 'responses', 'messages'])('is a schema for a model on the %s wire', async (model) => {
    upstream.script(ok({ text: '{"first_name":"Ada"}' }));
    const answer = await ask(model, config, model === 'messages' ? {} : strict);
    expect([answer.status, answer.text]).toEqual([200, '{"first_name":"Ada"}']);
    expect(answer.headers.get('x-dragoman-warnings') ?? '').not.toContain('responseFormat');
    expect(sent()).toContain('first_name');
  });

  test('reaches Gemini as it came', async () => {
    upstream.script(ok({ text: '{"first_name":"Ada"}' }));
    expect((await ask('gemini', config, strict)).status).toBe(200);
    const { generationConfig } = upstream.requests.at(-1)!.json as { readonly generationConfig: object };
    expect(JSON.stringify(generationConfig)).toBe(JSON.stringify(config).replace('response_format', 'responseFormat').replace('mime_type', 'mimeType'));
  });
});

test('without a schema it asks for JSON', async () => {
  upstream.script(ok({ text: '{}' }));
  expect((await ask('chat', { responseFormat: { text: { mimeType: 'APPLICATION_JSON' } } }, strict)).status).toBe(200);
  expect(upstream.requests.at(-1)!.json).toMatchObject({ response_format: { type: 'json_object' } });
});

test.each([[{ text: { mimeType: 'TEXT_PLAIN' } }], [[{ text }, { audio: { mimeType: 'AUDIO_MP3' } }]], [{ image: { aspectRatio: '1:1' } }]])(
  'what asks for anything else is named: %j',
  async (responseFormat) => {
    upstream.script(ok());
    expect((await ask('chat', { responseFormat })).headers.get('x-dragoman-warnings')).toContain('generationConfig.responseFormat: ');
  },
);

test('a refusal of the schema names the field', async () => {
  upstream.script(badRequest({ message: "Invalid schema for response_format 'answer'." }));
  const { status, raw } = await ask('chat', { responseFormat: { text } });
  expect([status, raw]).toEqual([400, expect.stringContaining('generationConfig.responseFormat')]);
});
