/* Images that come with a question: as images to models that see, as their text to all others. */
import { expect, test } from 'vitest';
import { documentBytes } from '../../support/documents.ts';
import type { Upstream } from '../../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../../support/scripted-server.ts';

const others = (url: string) => `models:
  blind: { targets: [{ provider: chat }], abilities: [tools] }
  unknown: { targets: [{ provider: chat, model: a-model-of-no-catalogue }] }
  "gemma3:27b": { targets: [{ provider: chat }] }
  llama3.3: { targets: [{ provider: chat }] }
  of-two: { targets: [{ provider: chat, model: "gemma3:27b" }, { provider: chat, model: llama3.3 }] }
${/^models:\n([\s\S]*)/m.exec(everyWire({ url }, 'abilities: [vision], limits: { output: 4096 }'))![1]!}`;
const settings = ({ url }: Pick<Upstream, 'url'>) => everyWire({ url }).replace(/^models:[\s\S]*/m, others(url));

const { upstream, server } = await scriptedServer((fake) => ({ yaml: settings(fake) }));
const long = 120_000;

type File = readonly [name: string, content: Uint8Array<ArrayBuffer>];

async function ask(model: string, files: readonly File[], path = '/server/query_with_file') {
  const form = new FormData();
  for (const [name, value] of Object.entries({ message: 'What is on channel nine?', model })) form.append(name, value);
  for (const [name, content] of files) form.append('file', new Blob([content]), name);
  const answer = await fetch(server.url + path, { method: 'POST', headers: { 'x-access-tokens': server.key }, body: form });
  const request = upstream.requests.at(-1);
  const sent = request && (JSON.parse(request.body.toString('utf8')) as Sent);
  return { status: answer.status, warnings: answer.headers.get('x-dragoman-warnings'), body: (await answer.json()) as { error: string | null }, sent };
}

interface Sent {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  readonly input: readonly { readonly role: string; readonly content: unknown }[];
  readonly contents: readonly { readonly role: string; readonly parts: unknown }[];
}

/** The last turn of the user, as each wire has it. */
const lastTurn: Readonly<Record<string, (sent: Sent) => unknown>> = {
  chat: ({ messages }) => messages.findLast(({ role }) => role === 'user')!.content,
  responses: ({ input }) => input.findLast(({ role }) => role === 'user')!.content,
  messages: ({ messages }) => messages.findLast(({ role }) => role === 'user')!.content,
  gemini: ({ contents }) => contents.findLast(({ role }) => role === 'user')!.parts,
};

/** An image as each wire has it. */
const inWire: Readonly<Record<string, (mediaType: string, data: string) => object>> = {
  chat: (mediaType, data) => ({ type: 'image_url', image_url: expect.objectContaining({ url: `data:${mediaType};base64,${data}` }) as object }),
  responses: (mediaType, data) => expect.objectContaining({ type: 'input_image', image_url: `data:${mediaType};base64,${data}` }) as object,
  messages: (mediaType, data) => expect.objectContaining({ type: 'image', source: { type: 'base64', media_type: mediaType, data } }) as object,
  gemini: (mediaType, data) => expect.objectContaining({ inlineData: expect.objectContaining({ mimeType: mediaType, data }) as object }) as object,
};

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');

test.each(['chat', 'responses', 'messages', 'gemini'])(
  'a model that sees is given images as %s has them, before the question',
  { timeout: long },
  async (wire) => {
    const [png, jpeg] = await Promise.all([documentBytes('scan.png'), documentBytes('scan.jpg')]);
    for (const path of ['/server/query', '/server/query_with_file']) {
      const { status, warnings, sent } = await ask(
        wire,
        [
          ['scan.png', png],
          ['misnamed.txt', jpeg],
        ],
        path,
      );
      expect([status, warnings]).toEqual([200, null]);
      const turn = lastTurn[wire]!(sent!) as object[];
      expect(turn).toEqual(expect.arrayContaining([inWire[wire]!('image/png', base64(png)), inWire[wire]!('image/jpeg', base64(jpeg))]));
      expect(JSON.stringify(turn.at(-1))).toContain('What is on channel nine?');
      expect(JSON.stringify(sent)).not.toContain('call the pilot on channel nine');
    }
  },
);

test.each(['blind', 'unknown', 'llama3.3', 'of-two'])(
  'the model %s, which is not known to see, is given the text of an image',
  { timeout: long },
  async (model) => {
    const png = await documentBytes('scan.png');
    const { status, sent } = await ask(model, [['scan.png', png]]);
    expect(status).toBe(200);
    expect(JSON.stringify(sent)).toContain('call the pilot on channel nine');
    expect(JSON.stringify(sent)).not.toContain(base64(png).slice(0, 100));
  },
);

test('a model of the catalogue that sees needs no settings', async () => {
  const png = await documentBytes('scan.png');
  const { sent } = await ask('gemma3:27b', [['scan.png', png]]);
  expect(lastTurn['chat']!(sent!)).toContainEqual(inWire['chat']!('image/png', base64(png)));
});

test('documents beside an image are text, also for a model that sees', async () => {
  const png = await documentBytes('scan.png');
  const { sent } = await ask('chat', [
    ['scan.png', png],
    ['birds.txt', new Uint8Array(Buffer.from('The cormorant nests on the old lighthouse.'))],
  ]);
  expect(lastTurn['chat']!(sent!)).toContainEqual(inWire['chat']!('image/png', base64(png)));
  expect(JSON.stringify(sent)).toContain('The cormorant nests on the old lighthouse.');
});

/** The image with bytes behind its end, which no reader looks at. */
async function padded(bytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const image = new Uint8Array(bytes);
  image.set(await documentBytes('scan.png'));
  return image;
}

test('images that are too large, alone or together, are read as text, and a warning says so', { timeout: long }, async () => {
  const large = await ask('chat', [['large.png', await padded(20 * 2 ** 20 + 1)]]);
  expect([large.status, large.warnings]).toEqual([200, expect.stringMatching(/^file: large\.png .* 20971520 bytes/)]);
  expect(JSON.stringify(large.sent)).toContain('call the pilot on channel nine');

  const [first, second] = [await padded(15 * 2 ** 20), await documentBytes('scan.jpg')];
  const together = await ask('chat', [
    ['first.png', first],
    ['second.png', await padded(6 * 2 ** 20)],
    ['third.jpg', second],
  ]);
  expect([together.status, together.warnings]).toEqual([200, expect.stringMatching(/^file: second\.png /)]);
  const images = (lastTurn['chat']!(together.sent!) as { readonly type: string }[]).filter(({ type }) => type === 'image_url');
  expect(images).toEqual([inWire['chat']!('image/png', base64(first)), inWire['chat']!('image/jpeg', base64(second))]);
});

test('an image without text is refused where the model cannot see it, saying so', { timeout: long }, async () => {
  const blank = new Uint8Array(Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64'));
  const before = upstream.requests.length;
  const { status, body } = await ask('blind', [['blank.png', blank]]);
  expect([status, body.error]).toEqual([422, expect.stringMatching(/^file blank\.png: .*text/)]);
  expect(upstream.requests.length).toBe(before);
  expect((await ask('chat', [['blank.png', blank]])).status).toBe(200);
});
