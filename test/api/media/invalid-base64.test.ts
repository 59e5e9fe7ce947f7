import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { askFace, everyWay, type Face } from '../../support/all-faces.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

/** The built-in model refuses what providers refuse: media whose content is no base64. */

let server: TestServer;
beforeAll(async () => void (server = await startTestServer()));
afterAll(() => server.close());

const image: Readonly<Record<Face, (data: string) => object>> = {
  chat: (data) => ({
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'See:' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
        ],
      },
    ],
  }),
  responses: (data) => ({
    input: [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'See:' },
          { type: 'input_image', image_url: `data:image/png;base64,${data}` },
        ],
      },
    ],
  }),
  messages: (data) => ({
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'See:' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data } },
        ],
      },
    ],
  }),
  gencompat: (data) => ({ contents: [{ role: 'user', parts: [{ text: 'See:' }, { inlineData: { mimeType: 'image/png', data } }] }] }),
};
const places: Readonly<Record<Face, string>> = {
  chat: 'messages[0].content[1]',
  responses: 'input[0].content[1]',
  messages: 'messages[0].content[1]',
  gencompat: 'contents[0].parts[1]',
};

describe.each(everyWay)('an image of a client of %s, stream %s', (face, stream) => {
  const ask = (data: string) => askFace(server, face, { model: 'built-in', content: '', stream, more: image[face](data) });

  test.each(['not base64!', 'AAAAA', 'AAA=A', 'A===', 'AAAA='])('is refused, and named: %s', async (data) => {
    const { status, raw } = await ask(data);
    expect([status, raw]).toEqual([400, expect.stringContaining(`${places[face]}: the content of the image must be base64.`)]);
  });

  test.each(['AAAA', 'AAA', 'AAA=', 'AA==', '-_-_', 'AAAA\nAAAA\r\n', 'A'.repeat(4_000_000)])('is looked at (%#)', async (data) => {
    expect((await ask(data)).status).toBe(200);
  });
});

test('a sound is, too', async () => {
  const messages = [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'x*', format: 'wav' } }] }];
  const { status, raw } = await askFace(server, 'chat', { model: 'built-in', content: '', stream: false, more: { messages } });
  expect([status, raw]).toEqual([400, expect.stringContaining('messages[0].content: the content of the audio must be base64.')]);
});
