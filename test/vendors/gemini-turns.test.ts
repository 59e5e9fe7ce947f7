import { beforeEach, describe, expect, test } from 'vitest';
import { always, ok } from '../support/fakes/upstream/index.ts';
import { askFace, type Face } from '../support/all-faces.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** What Gemini demands of the order and the content of turns, whoever asks. */

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  google: { dialect: gemini, baseUrl: "${url}/v1beta", apiKeys: [k] }
  gpt: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k] }
models:
  g: { targets: [{ provider: google }] }
  both: { targets: [{ provider: google }, { provider: gpt }] }
routing: { cooldownSeconds: 0 }
`,
}));
beforeEach(() => upstream.script(always(ok())));

const ask = (face: Face, more: object, model = 'g', headers = {}) => askFace(server, face, { model, content: '', stream: false, more, headers });

interface Sent {
  readonly contents: readonly { readonly role: string; readonly parts: readonly Readonly<Record<string, unknown>>[] }[];
  readonly systemInstruction?: { readonly parts: readonly object[] };
}
const sent = () => upstream.requests.at(-1)!.json as Sent;

/** `model: text call` */
const outline = () =>
  sent().contents.map(
    ({ role, parts }) =>
      `${role}: ${parts.map((part) => (typeof part['text'] === 'string' ? `"${part['text']}"` : part['functionCall'] ? 'call' : part['functionResponse'] ? 'result' : 'media')).join(' ')}`,
  );

const call = (id: string) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } });
const tool = (id: string) => ({ role: 'tool', tool_call_id: id, content: id });
const user = (content: unknown) => ({ role: 'user', content });
const assistant = (content: string | null, ...calls: object[]) => ({ role: 'assistant', content, ...(calls.length > 0 ? { tool_calls: calls } : {}) });
const system = (content: string) => ({ role: 'system', content });

describe('neighbours of one role', () => {
  test('are one content, so that calls follow the user and results follow their calls', async () => {
    await ask('chat', {
      messages: [user('a'), user('b'), assistant('I look.'), assistant(null, call('1'), call('2')), tool('1'), tool('2'), user('c'), user('d')],
    });
    expect(outline()).toEqual(['user: "a" "b"', 'model: "I look." call call', 'user: result result', 'user: "c" "d"']);
  });

  test('of codex, which says something between a call and its result', async () => {
    await ask('responses', {
      input: [
        { role: 'user', content: 'a' },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
        { type: 'function_call', call_id: '1', name: 'look', arguments: '{}' },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Looking.' }] },
        { type: 'function_call_output', call_id: '1', output: 'seen' },
      ],
    });
    expect(outline()).toEqual(['user: "a"', 'model: "I look." call "Looking."', 'user: result']);
  });

  test('do not stand between calls and results', async () => {
    await ask('responses', {
      input: [
        { role: 'user', content: 'a' },
        { type: 'function_call', call_id: '1', name: 'look', arguments: '{}' },
        { type: 'function_call', call_id: '2', name: 'look', arguments: '{}' },
        { role: 'developer', content: 'Be quick.' },
        { role: 'user', content: 'well?' },
        { type: 'function_call_output', call_id: '1', output: 'seen' },
        { role: 'user', content: 'hm' },
        { type: 'function_call_output', call_id: '2', output: 'seen' },
      ],
    });
    expect(outline()).toEqual(['user: "a"', 'model: call call', 'user: result result', 'user: "Be quick." "well?" "hm"']);
  });

  test('a conversation that begins with a call begins with the user', async () => {
    await ask('chat', { messages: [assistant(null, call('1')), tool('1')] });
    expect(outline()).toEqual(['user: "."', 'model: call', 'user: result']);
  });

  test('of a client of this wire stay as they came', async () => {
    const contents = [
      { role: 'user', parts: [{ text: 'a' }] },
      { role: 'user', parts: [{ text: 'b' }] },
      { role: 'model', parts: [{ text: 'c' }] },
      { role: 'model', parts: [{ text: 'd' }] },
    ];
    await ask('gencompat', { contents });
    expect(sent().contents).toEqual(contents);
  });
});

describe('a system message inside the conversation', () => {
  test('stays in its place, as text of the user beside no result', async () => {
    const { headers } = await ask('chat', {
      messages: [
        system('First.'),
        user('a'),
        assistant('b'),
        system('Now.'),
        user('c'),
        assistant(null, call('1')),
        tool('1'),
        system('Then.'),
        assistant('d'),
        user('e'),
      ],
    });
    expect(sent().systemInstruction?.parts).toEqual([{ text: 'First.' }]);
    expect(outline()).toEqual(['user: "a"', 'model: "b"', 'user: "Now." "c"', 'model: call', 'user: result', 'user: "Then."', 'model: "d"', 'user: "e"']);
    expect(headers.get('x-dragoman-warnings')).toBe('system: a system message in the middle is sent as text of the user.');
  });

  test('is refused where the client is strict', async () => {
    expect((await ask('chat', { messages: [user('a'), system('Now.'), user('b')] }, 'g', { 'x-dragoman-strict': 'true' })).status).toBe(400);
  });

  test('leaves what comes before it as it was in the turn before', async () => {
    const messages = [system('First.'), user('a'), assistant('b'), user('c')];
    await ask('chat', { messages });
    const before = sent();
    await ask('chat', { messages: [...messages, assistant('d'), system('Now.'), user('e')] });
    expect(sent().systemInstruction).toEqual(before.systemInstruction);
    expect(sent().contents.slice(0, before.contents.length)).toEqual(before.contents);
  });
});

describe('nothing left to say', () => {
  test.each<[Face, object]>([
    ['chat', { messages: [system('Be kind.')] }],
    ['responses', { input: [{ role: 'system', content: 'Be kind.' }] }],
    ['messages', { messages: [{ role: 'system', content: 'Be kind.' }] }],
  ])('the user says the text of the system: %s', async (face, more) => {
    expect((await ask(face, more)).status).toBe(200);
    expect(sent()).toMatchObject({ contents: [{ role: 'user', parts: [{ text: 'Be kind.' }] }] });
    expect(sent()).not.toHaveProperty('systemInstruction');
  });

  test.each<[Face, object]>([
    ['chat', { messages: [user('')] }],
    ['chat', { messages: [system('')] }],
    ['responses', { input: [{ role: 'user', content: '' }] }],
    ['messages', { messages: [user('')] }],
    ['messages', { messages: [user([{ type: 'text', text: '' }])] }],
  ])('an empty text is a full stop: %s %o', async (face, more) => {
    expect((await ask(face, more)).status).toBe(200);
    expect(outline()).toEqual(['user: "."']);
  });

  test('an empty message in the middle is one, too', async () => {
    await ask('chat', { messages: [user('a'), assistant('b'), user('')] });
    expect(outline()).toEqual(['user: "a"', 'model: "b"', 'user: "."']);
  });

  test('a message that loses all its content is refused by its name, and nothing is sent', async () => {
    const file = user([{ type: 'file', file: { file_id: 'file-1' } }]);
    const refused = await ask('chat', { messages: [user('a'), assistant('b'), file] });
    expect([refused.status, refused.raw]).toEqual([400, expect.stringMatching(/messages: a message has nothing but a file.*"param":"messages"/)]);
    expect((await ask('messages', { messages: [user([{ type: 'container_upload', file_id: 'f' }])] })).raw).toContain('part of type \\"container_upload\\"');
    expect(upstream.requests).toHaveLength(0);
  });

  test('another target may carry what this one cannot', async () => {
    const { status, headers } = await ask('chat', { messages: [user([{ type: 'file', file: { file_id: 'file-1' } }])] }, 'both');
    expect([status, headers.get('x-dragoman-provider')]).toEqual([200, 'gpt']);
  });
});

describe('search results and references of Claude', () => {
  const found = {
    type: 'search_result',
    source: 'https://a.example',
    title: 'Walls',
    content: [{ type: 'text', text: 'A wall is a wall.' }],
    citations: { enabled: true },
  };
  const parts = { type: 'document', title: 'Doors', source: { type: 'content', content: [{ type: 'text', text: 'A door is no wall.' }] } };

  test('are text, in results and in turns', async () => {
    const { status, headers } = await ask('messages', {
      tools: [{ name: 'look', input_schema: { type: 'object', properties: {} } }],
      messages: [
        user([found, parts]),
        { role: 'assistant', content: [{ type: 'tool_use', id: '1', name: 'look', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: '1', content: [found, { type: 'tool_reference', tool_name: 'look' }] }] },
      ],
    });
    expect(status).toBe(200);
    const walls = 'Walls\nhttps://a.example\n\nA wall is a wall.';
    expect(sent().contents[0]?.parts).toEqual([{ text: walls }, { text: 'Doors\n\nA door is no wall.' }]);
    expect(sent().contents[2]?.parts).toEqual([{ functionResponse: { id: '1', name: 'look', response: { output: `${walls}\n\nTool: look` } } }]);
    expect(headers.get('x-dragoman-warnings') ?? '').not.toContain('search_result');
  });
});
