import { expect, test } from 'vitest';
import { askFace, faces, type Face } from '../support/all-faces.ts';
import { always, ok } from '../support/fakes/upstream/index.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** Media that the gateway can't fetch, and addresses that a provider must not be sent: the refusal names the part as the client spelled it. */

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  chat: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k], mediaUrls: fetched }
  responses: { dialect: openai-responses, baseUrl: "${url}/v1", apiKeys: [k], mediaUrls: fetched }
models:
  on-chat: { targets: [{ provider: chat }] }
  on-responses: { targets: [{ provider: responses }] }
routing: { cooldownSeconds: 0 }
`,
}));

const url = 'http://127.0.0.1:1/a.png'; // the guard refuses it

const image: Readonly<Record<Face, object>> = {
  chat: {
    messages: [
      { role: 'system', content: 'Be kind.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look.' },
          { type: 'image_url', image_url: { url } },
        ],
      },
    ],
  },
  responses: {
    instructions: 'Be kind.',
    input: [
      { role: 'user', content: 'Hi.' },
      { role: 'assistant', content: 'Hi.' },
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'Look.' },
          { type: 'input_image', image_url: url },
        ],
      },
    ],
  },
  messages: {
    system: 'Be kind.',
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look.' },
          { type: 'image', source: { type: 'url', url } },
        ],
      },
    ],
  },
  gencompat: { contents: [{ role: 'user', parts: [{ text: 'Look.' }, { fileData: { mimeType: 'image/png', fileUri: url } }] }] },
};
const places: Readonly<Record<Face, string>> = {
  chat: 'messages[1].content[1]',
  responses: 'input[2].content[1]',
  messages: 'messages[0].content[1]',
  gencompat: 'contents[0].parts[1]',
};

const fieldOf = (raw: string): unknown => {
  const { error } = JSON.parse(raw) as {
    readonly error: { readonly param?: unknown; readonly details?: readonly { readonly fieldViolations?: readonly { readonly field: string }[] }[] };
  };
  return error.param ?? error.details?.flatMap(({ fieldViolations = [] }) => fieldViolations)[0]?.field;
};

test.each(faces)('an image of %s that cannot be fetched is named', async (face) => {
  upstream.script(always(ok()));
  const { status, raw } = await askFace(server, face, { model: 'on-chat', content: '', stream: false, more: image[face] });
  expect([status, raw]).toEqual([400, expect.stringContaining(`"${places[face]}: the image at ${url} cannot be fetched`)]);
  if (face !== 'messages') expect(fieldOf(raw)).toBe(places[face]); // whose errors have no member for it
  expect(upstream.requests).toHaveLength(0);
});

test('a part whose address the provider must not be sent is named', async () => {
  const video = {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look.' },
          { type: 'video_url', video_url: { url } },
        ],
      },
    ],
  };
  const screenshot = {
    input: [
      { role: 'user', content: 'Look.' },
      { type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', image_url: url } },
    ],
  };
  for (const [face, model, more, field, what] of [
    ['chat', 'on-chat', video, 'messages[0].content[1]', 'video_url'],
    ['responses', 'on-responses', screenshot, 'input[1]', 'computer_call_output'],
  ] as const) {
    const { status, raw } = await askFace(server, face, { model, content: '', stream: false, more });
    expect([status, fieldOf(raw)]).toEqual([400, field]);
    expect(raw).toContain(`"${field}: ${what} must have its content as a data URL, because this provider is not sent addresses.`);
  }
});
