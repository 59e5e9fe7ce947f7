/* Images and sounds in answers to clients whose interface has text alone. */
import { describe, expect, test } from 'vitest';
import { askFace, faces, type Face } from '../support/all-faces.ts';
import { on, stream as pieces, type Behaviour } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

const whole = (body: object): Behaviour =>
  on({}, { name: 'whole', answer: () => ({ ...pieces([JSON.stringify(body)]), headers: { 'content-type': 'application/json' } }) });
const framed = (frames: readonly object[]): Behaviour =>
  on({}, { name: 'framed', answer: () => pieces(frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`)) });
const answering = (stream: boolean, frames: readonly object[], body: object): Behaviour => (stream ? framed(frames) : whole(body));

const picture = { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgoA' } };
const note = '[image/png, 9 bytes: answers of this interface hold no images]';
const generated = (parts: readonly object[]) => ({ candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }] });

const asked = async (model: string, streaming: boolean) => {
  const answer = await server.ask('/server/query', { message: 'Draw it.', model, streaming });
  const frames = (await answer.text()).split('@|@sep@|@').map((frame) => JSON.parse(frame) as { message: string });
  return { frames, last: frames.at(-1)!, warnings: answer.headers.get('x-dragoman-warnings') };
};

describe.each([false, true])('streamed: %s', (stream) => {
  test.each([
    ['beside a text', [{ text: 'pic' }, picture], `pic\n${note}\n`],
    ['alone', [picture], `\n${note}\n`],
  ])('a picture %s is named in an answer of the native interface', async (_, parts, message) => {
    upstream.script(answering(stream, [generated(parts)], generated(parts)));
    expect((await asked('gemini', stream)).last).toMatchObject({ message, error: null });
  });

  test('a picture is named in a completion of a prompt', async () => {
    upstream.script(answering(stream, [generated([{ text: 'pic' }, picture])], generated([{ text: 'pic' }, picture])));
    const answer = await server.ask('/v1/completions', { model: 'gemini', prompt: 'Draw it.', stream });
    const said = [...(await answer.text()).matchAll(/"text":("(?:[^"\\]|\\.)*")/g)].map(([, json]) => JSON.parse(json!) as string);
    expect(said.join('')).toBe(`pic\n${note}\n`);
  });

  const audio = { id: 'audio_1', data: 'UklGRg==', transcript: 'hello', expires_at: 1 };
  const chunk = (delta: object, finish: string | null = null) => ({ id: 'c1', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] });
  const chunks = [
    chunk({ role: 'assistant', content: null, audio: { id: 'audio_1', transcript: 'hel' } }),
    chunk({ audio: { transcript: 'lo' } }),
    chunk({ audio: { data: 'UklGRg==' } }),
    chunk({ audio: { data: 'AAAA', expires_at: 1 } }),
    chunk({}, 'stop'),
  ];
  const spoken = (sound: object) => ({
    id: 'c1',
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: null, audio: sound }, finish_reason: 'stop' }],
  });
  const warning = 'audio: answers of this interface hold no sounds, so the words of the sound are sent as text';

  test.each<Face>(['responses', 'messages'])('the words of a sound are the text of an answer to a client of %s', async (face) => {
    upstream.script(answering(stream, chunks, spoken(audio)));
    const { text, complete, headers } = await askFace(server, face, { model: 'chat', content: 'hello', stream });
    expect({ text, complete, warnings: headers.get('x-dragoman-warnings') }).toEqual({ text: 'hello', complete: true, warnings: stream ? null : warning });
  });

  test('they are the message of an answer of the native interface', async () => {
    upstream.script(answering(stream, chunks, spoken(audio)));
    const { last, warnings } = await asked('chat', stream);
    expect(last).toMatchObject({ message: 'hello', error: null });
    expect(warnings?.includes('sound') ?? false).toBe(!stream);
  });

  test('a client of chat gets the sound with its words', async () => {
    upstream.script(answering(stream, chunks, spoken(audio)));
    const { raw } = await askFace(server, 'chat', { model: 'chat', content: 'hello', stream });
    expect(raw).toContain(stream ? '"transcript":"hel"' : '"transcript":"hello"');
    expect(raw).toContain('"expires_at":1');
  });
});

test.each([
  ['UklGRgAA', 'audio/wav'],
  ['SUQzBAAA', 'audio/mpeg'],
  ['//uQxAAA', 'audio/mpeg'],
  ['ZkxhQwAA', 'audio/flac'],
  ['T2dnUwAC', 'audio/ogg'],
  ['AAABAAIA', 'audio/L16;codec=pcm;rate=24000'],
])('a sound that begins with %s is %s to a client of gencompat', async (data, mimeType) => {
  const message = { role: 'assistant', content: null, audio: { id: 'audio_1', data, transcript: 'hello', expires_at: 1 } };
  upstream.script(whole({ id: 'c1', model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }] }));
  const { raw } = await askFace(server, 'gencompat', { model: 'chat', content: 'hello', stream: false });
  expect(raw).toContain(JSON.stringify({ inlineData: { mimeType, data } }));
});

test.each(faces)('a sound without words is no empty success without a warning to a client of %s', async (face) => {
  upstream.script(whole(generated([{ inlineData: { mimeType: 'audio/wav', data: 'UklGRg==' } }])));
  const { raw, headers } = await askFace(server, face, { model: 'gemini', content: 'hello', stream: false });
  const holdsSounds = face === 'chat' || face === 'gencompat';
  expect(raw.includes('UklGRg==')).toBe(holdsSounds);
  expect(headers.get('x-dragoman-warnings')?.includes('the sound is left out') ?? false).toBe(!holdsSounds);
});
