import { beforeEach, describe, expect, test } from 'vitest';
import { always, body, ok, replay } from '../support/fakes/upstream/index.ts';
import { askFace, type Face } from '../support/all-faces.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** What clients of Gemini's interface send to other providers, and what Gemini's models show to other clients. */

const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));
beforeEach(() => upstream.reset());

const ask = (face: Face, model: string, more: object = {}, stream = false) => askFace(server, face, { model, content: 'Hello', stream, more });
const sent = () => upstream.requests.at(-1)!.json as Readonly<Record<string, unknown>>;

test.each(['gemini', 'messages'])('a message without any text is a full stop for a provider of %s', async (model) => {
  upstream.script(always(ok()));
  expect((await ask('gencompat', model, { contents: [{ role: 'user', parts: [{ text: '' }] }] })).status).toBe(200);
  if (model === 'gemini') expect(sent()['contents']).toEqual([{ role: 'user', parts: [{ text: '.' }] }]);
  else expect(sent()['messages']).toEqual([{ role: 'user', content: '.' }]);
});

describe('a text file', () => {
  const contents = [
    { role: 'user', parts: [{ text: 'Read this.' }, { inlineData: { mimeType: 'text/plain', data: Buffer.from('A wall.').toString('base64') } }] },
  ];

  test('is text for a chat completion', async () => {
    upstream.script(always(ok()));
    await ask('gencompat', 'chat', { contents });
    expect(sent()['messages']).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Read this.' },
          { type: 'text', text: 'A wall.' },
        ],
      },
    ]);
  });

  test('is a document for Claude, and as it came for Gemini', async () => {
    upstream.script(always(ok()));
    await ask('gencompat', 'messages', { contents });
    expect(JSON.stringify(sent()['messages'])).toContain('"source":{"type":"text","media_type":"text/plain","data":"A wall."}');
    await ask('gencompat', 'gemini', { contents });
    expect(sent()['contents']).toEqual(contents);
  });

  test('of a chat client stays a file', async () => {
    upstream.script(always(ok()));
    const file = { type: 'file', file: { filename: 'a.txt', file_data: `data:text/plain;base64,${Buffer.from('A wall.').toString('base64')}` } };
    await ask('chat', 'chat', { messages: [{ role: 'user', content: [file] }], temperature: 0.5 });
    expect(sent()['messages']).toEqual([{ role: 'user', content: [file] }]);
  });
});

test.each(['chat', 'responses', 'messages'])('a type of answers that the provider of %s does not have is named', async (model) => {
  upstream.script(always(ok()));
  const generationConfig = { responseMimeType: 'text/x.owl' };
  expect((await ask('gencompat', model, { generationConfig })).headers.get('x-dragoman-warnings')).toContain('responseMimeType:');
  const own = await ask('gencompat', 'gemini', { generationConfig });
  expect([own.headers.get('x-dragoman-warnings'), sent()['generationConfig']]).toEqual([null, generationConfig]);
  expect(sent()).not.toHaveProperty('responseMimeType');
});

const settings = {
  safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'BLOCK_NONE' }],
  labels: { team: 'owls' },
  cachedContent: 'cachedContents/1',
  toolConfig: { retrievalConfig: { languageCode: 'en' } },
  generationConfig: { mediaResolution: 'MEDIA_RESOLUTION_LOW', speechConfig: { languageCode: 'en-US' }, responseModalities: ['TEXT'], audioTimestamp: true },
};

test.each(['chat', 'responses', 'messages'])('settings that the provider of %s does not have are named one by one', async (model) => {
  upstream.script(always(ok()));
  const warnings = (await ask('gencompat', model, settings)).headers.get('x-dragoman-warnings')!.split('; ');
  const names = [
    'safetySettings',
    'labels',
    'cachedContent',
    'toolConfig.retrievalConfig',
    ...Object.keys(settings.generationConfig).map((name) => `generationConfig.${name}`),
  ];
  const named = warnings.map((one) => one.split(': ')[0]!).filter((name) => name !== 'generationConfig.maxOutputTokens');
  expect(new Set(named)).toEqual(new Set(names));
});

test('settings that only Gemini has arrive there as they were', async () => {
  upstream.script(always(ok()));
  expect((await ask('gencompat', 'gemini', settings)).headers.get('x-dragoman-warnings')).toBeNull();
  expect(sent()).toMatchObject(settings);
});

test.each(['chat', 'responses', 'messages', 'built-in'])('code in the history is named where %s does not take it', async (model) => {
  upstream.script(always(ok()));
  const code = [{ executableCode: { language: 'PYTHON', code: '1' } }, { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1' } }];
  const role = model === 'built-in' ? 'user' : 'model';
  const contents = [
    { role, parts: [{ text: 'Let me see.' }, ...code] },
    { role: 'user', parts: [{ text: 'Well?' }] },
  ];
  const warnings = (await ask('gencompat', model, { contents })).headers.get('x-dragoman-warnings');
  expect(warnings).toContain('executableCode:');
  expect(warnings).toContain('codeExecutionResult:');
});

const ran = {
  candidates: [
    {
      content: {
        role: 'model',
        parts: [
          { text: 'Let me see.' },
          { executableCode: { language: 'PYTHON', code: 'print(6 * 7)' } },
          { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '42\n' } },
          { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } },
          { text: 'It is 42.' },
        ],
      },
      finishReason: 'STOP',
    },
  ],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 9, totalTokenCount: 10 },
  modelVersion: 'gemini',
};

describe.each(['chat', 'responses', 'messages', 'gencompat'] as const)('code that Gemini ran, for a %s client', (face) => {
  test.each([false, true])('is there with its result; streamed: %s', async (stream) => {
    upstream.script(stream ? replay([JSON.stringify(ran)]) : body(JSON.stringify(ran)));
    const { status, raw, text } = await askFace(server, face, { model: 'gemini', content: 'hi', stream });
    expect(status).toBe(200);
    if (face === 'gencompat') expect(raw).toMatch(/executableCode.*codeExecutionResult.*inlineData/s);
    else {
      expect(text).toMatch(/Let me see\..*```python\nprint\(6 \* 7\)\n```.*```\n42\n```.*It is 42\./s);
      expect(raw).toContain(face === 'messages' ? '[image/png, ' : 'iVBORw0KGgo=');
    }
  });
});

test('a tool of Gemini is named by its key where it is left out', async () => {
  upstream.script(always(ok()));
  const { headers } = await ask('gencompat', 'chat', { tools: [{ codeExecution: {} }] });
  expect(headers.get('x-dragoman-warnings')).toBe('tools: a tool of type "codeExecution" is supported by gemini only.');
});

test.each([false, true])('an image of Gemini is told to a client of the messages interface, streamed: %s', async (stream) => {
  const parts = [{ text: 'Here: ' }, { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }];
  const answer = JSON.stringify({
    candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2, totalTokenCount: 3 },
  });
  upstream.script(stream ? body(`data: ${answer}\n\n`, 'text/event-stream') : body(answer));
  expect((await ask('messages', 'gemini', {}, stream)).text).toBe('Here: [image/png, 9 bytes: answers of this interface hold no images]');
});

test('more stop sequences than Gemini takes are cut off, with a warning', async () => {
  upstream.script(always(ok()));
  const { headers } = await ask('messages', 'gemini', { stop_sequences: ['a', 'b', 'c', 'd', 'e', 'f'] });
  expect(headers.get('x-dragoman-warnings')).toBe('stop_sequences: the provider accepts 5 stop sequences.');
  expect(sent()['generationConfig']).toMatchObject({ stopSequences: ['a', 'b', 'c', 'd', 'e'] });
});

test('a call without a result has an empty one, for there are as many results as calls', async () => {
  upstream.script(always(ok()));
  const { status, headers } = await ask('responses', 'gemini', {
    input: [
      { role: 'user', content: 'a' },
      { type: 'function_call', call_id: '1', name: 'look', arguments: '{}' },
      { type: 'function_call', call_id: '2', name: 'hear', arguments: '{}' },
      { type: 'function_call_output', call_id: '1', output: 'seen' },
      { role: 'user', content: 'never mind' },
    ],
  });
  expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, 'tool result: a tool call without a result is sent with an empty one.']);
  expect((sent()['contents'] as object[]).slice(2)).toEqual([
    {
      role: 'user',
      parts: [
        { functionResponse: { id: '1', name: 'look', response: { output: 'seen' } } },
        { functionResponse: { id: '2', name: 'hear', response: { output: '' } } },
      ],
    },
    { role: 'user', parts: [{ text: 'never mind' }] },
  ]);
});

describe("a streamed answer that a chat of Google's SDK returns chunk by chunk", () => {
  const model = (...texts: readonly string[]) => ({ role: 'model', parts: texts.map((text) => ({ text })) });
  const user = (text: string) => ({ role: 'user', parts: [{ text }] });
  const contents = [user('hi'), model('It r'), model('\n\n', 'ains'), model(''), user('Where?')];

  test.each([
    ['chat', 'messages', { role: 'assistant', content: 'It r\n\nains' }],
    ['messages', 'messages', { role: 'assistant', content: 'It r\n\nains' }],
    ['responses', 'input', { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'It r\n\nains', annotations: [] }] }],
  ])('is one message for a provider of %s', async (provider, member, message) => {
    upstream.script(always(ok()));
    expect((await ask('gencompat', provider, { contents })).status).toBe(200);
    expect(sent()[member]).toEqual([expect.objectContaining({ role: 'user' }), message, expect.objectContaining({ role: 'user' })]);
  });

  test('keeps its contents for Gemini', async () => {
    upstream.script(always(ok()));
    await ask('gencompat', 'gemini', { contents });
    expect(sent()['contents']).toEqual([user('hi'), model('It r'), model('\n\n', 'ains'), user('Where?')]);
  });
});
