import { describe, expect, test } from 'vitest';
import { askFace } from '../support/all-faces.ts';
import { always, ok } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** OpenAI's models look at the bytes of an image, others at what the client calls it, too: vybestack/llxprt-code#2130, ogkalu2/comic-translate#399. */

const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));

const base64 = (...bytes: readonly (number | string)[]) =>
  Buffer.concat([...bytes.map((one) => (typeof one === 'string' ? Buffer.from(one, 'latin1') : Buffer.of(one))), Buffer.alloc(16)]).toString('base64');
const png = base64(0x89, 'PNG\r\n', 0x1a, '\n');
const jpeg = base64(0xff, 0xd8, 0xff, 0xe0);
const webp = base64('RIFF', 0x10, 0, 0, 0, 'WEBPVP8 ');
const gif = base64('GIF89a');
const unknown = base64('????');

const content = (url: string) => [
  { type: 'text', text: 'Look.' },
  { type: 'image_url', image_url: { url } },
];
const sent = () => upstream.requests.at(-1)!.body.toString();

async function ask(model: string, url: string): Promise<string | null> {
  upstream.script(always(ok()));
  const { status, headers } = await askFace(server, 'chat', {
    model,
    content: 'x',
    stream: false,
    more: { messages: [{ role: 'user', content: content(url) }] },
  });
  expect(status).toBe(200);
  return headers.get('x-dragoman-warnings');
}

describe.each([
  ['messages', (type: string, data: string) => `"media_type":"${type}","data":"${data}"`],
  ['gemini', (type: string, data: string) => `"mimeType":"${type}","data":"${data}"`],
])('a provider of %s', (model, shown) => {
  test.each([
    ['data:image/jpeg;base64,', png, 'image/png'],
    ['data:image/png;base64,', jpeg, 'image/jpeg'],
    ['data:application/octet-stream;base64,', webp, 'image/webp'],
    ['data:image/webp;base64,', gif, 'image/gif'],
    ['data:image/jpg;base64,', unknown, 'image/jpeg'],
    ['data:IMAGE/PNG;base64,', unknown, 'image/png'],
    ['DATA:image/png;Base64,', png, 'image/png'],
    ['data:;base64,', webp, 'image/webp'],
    ['data:image/png;name=a.png;base64,', png, 'image/png'],
    ['data:image/webp;charset=utf-8;name=a;base64,', webp, 'image/webp'],
  ])('gets an image that begins with %s by its type', async (head, data, type) => {
    expect((await ask(model, head + data)) ?? '').not.toContain('image');
    expect(sent()).toContain(shown(type, data));
  });
});

test('an image whose data URL is not base64 is left out with a warning, and not sent as an address', async () => {
  for (const model of ['messages', 'gemini']) {
    expect(await ask(model, 'data:image/svg+xml,%3Csvg/%3E')).toContain("image: the provider's API does not support this address.");
    expect(sent()).not.toContain('svg');
  }
});

test('what a client of the same interface wrote stays as it is', async () => {
  upstream.script(always(ok()));
  const source = { type: 'base64', media_type: 'image/jpeg', data: png };
  await askFace(server, 'messages', {
    model: 'messages',
    content: 'x',
    stream: false,
    more: { messages: [{ role: 'user', content: [{ type: 'image', source }] }] },
  });
  expect(sent()).toContain(JSON.stringify(source));
  const inlineData = { mimeType: 'image/jpg', data: png };
  await askFace(server, 'gencompat', { model: 'gemini', content: 'x', stream: false, more: { contents: [{ role: 'user', parts: [{ inlineData }] }] } });
  expect(sent()).toContain(JSON.stringify(inlineData));
});

test('a sound is called by its bare format, and one that came as a data URL is its content', async () => {
  upstream.script(always(ok()));
  const inlineData = { mimeType: 'audio/OGG; codecs=opus', data: 'T2dnUw==' };
  await askFace(server, 'gencompat', { model: 'chat', content: 'x', stream: false, more: { contents: [{ role: 'user', parts: [{ inlineData }] }] } });
  expect(sent()).toContain('{"data":"T2dnUw==","format":"ogg"}');
  const sound = { type: 'input_audio', input_audio: { data: 'data:;base64,UklGRg==', format: 'wav' } };
  await askFace(server, 'chat', { model: 'gemini', content: 'x', stream: false, more: { messages: [{ role: 'user', content: [sound] }] } });
  expect(sent()).toContain('{"mimeType":"audio/wav","data":"UklGRg=="}');
});

test('a file whose address has parameters is read', async () => {
  upstream.script(always(ok()));
  const file = { filename: 'a.txt', file_data: `data:text/plain;charset=utf-8;base64,${Buffer.from('A wall.').toString('base64')}` };
  await askFace(server, 'chat', { model: 'messages', content: 'x', stream: false, more: { messages: [{ role: 'user', content: [{ type: 'file', file }] }] } });
  expect(sent()).toContain('"media_type":"text/plain","data":"A wall."');
});

test.each([
  ['charset=iso-8859-1', Buffer.from('Größe', 'latin1')],
  ['charset="UTF-16LE"', Buffer.from('Größe', 'utf16le')],
  ['name=a; charset=unheard-of', Buffer.from('Größe')],
])('a file of text is read by its %s', async (parameter, bytes) => {
  upstream.script(always(ok()));
  const [mimeType, data] = [`text/plain;${parameter}`, bytes.toString('base64')];
  const file = { filename: 'a.txt', file_data: `data:${mimeType};base64,${data}` };
  await askFace(server, 'chat', { model: 'messages', content: 'x', stream: false, more: { messages: [{ role: 'user', content: [{ type: 'file', file }] }] } });
  expect(sent()).toContain('"data":"Größe"');
  const contents = [{ role: 'user', parts: [{ inlineData: { mimeType, data } }] }];
  await askFace(server, 'gencompat', { model: 'chat', content: 'x', stream: false, more: { contents } });
  expect(sent()).toContain('Größe');
});
