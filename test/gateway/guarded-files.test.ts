import { describe, expect, test } from 'vitest';
import { faces, requestOf, type Face } from '../support/all-faces.ts';
import { scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer(({ url }) => ({
  upstream: url,
  yaml: `
  free: { targets: [{ provider: fake }] }
guard:
  checks:
    - { name: secrets, when: [before], kind: regex, pattern: "AKIA[0-9A-Z]{16}", action: deny, models: [gpt-4o-mini] }
    - { name: personal, when: [before], kind: pii, entities: [email], action: mask, models: [gpt-4o-mini] }
`,
}));

const key = ['AKIA', '0123456789ABCDEF'].join(''); // no text of ours has the form of a key
const base64 = (text: string | Uint8Array) => Buffer.from(text).toString('base64');

/** A file as each interface takes it, and the field that a refusal names. */
const files: Readonly<Record<Face, { readonly field: string; readonly body: (type: string, data: string) => object }>> = {
  chat: {
    field: 'messages',
    body: (type, data) => ({ messages: [{ role: 'user', content: [{ type: 'file', file: { filename: 'a', file_data: `data:${type};base64,${data}` } }] }] }),
  },
  responses: {
    field: 'input',
    body: (type, data) => ({ input: [{ role: 'user', content: [{ type: 'input_file', filename: 'a', file_data: `data:${type};base64,${data}` }] }] }),
  },
  messages: {
    field: 'messages',
    body: (type, data) => ({ messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'base64', media_type: type, data } }] }] }),
  },
  gencompat: { field: 'contents', body: (type, data) => ({ contents: [{ role: 'user', parts: [{ inlineData: { mimeType: type, data } }] }] }) },
};

describe.each(faces)('a file in a request of %s', (face) => {
  const send = (type: string, data: string, model = 'gpt-4o-mini') => {
    const { path, body } = requestOf(face, { model, content: '', stream: false, more: files[face].body(type, data) });
    return server.ask(path, body);
  };

  /** Files of other interfaces are sent as text, those of the provider's own as they came. */
  const shown = (text: string) => (face === 'chat' ? base64(text) : text);

  test.each(['text/plain', 'text/csv', 'application/json', 'application/vnd.api+json'])('is read by the applicable checks if it is text (%s)', async (type) => {
    const denied = await send(type, base64(`{"a":"${key}"}`));
    expect(await denied.text()).toContain('secrets');
    expect(denied.status).toBe(400);
    expect(upstream.requests).toHaveLength(0);
    await (await send(type, base64('write to ann@example.com'))).text();
    const sent = upstream.requests[0]?.body.toString();
    expect(sent).toContain(shown('write to [EMAIL]'));
    expect(sent).not.toContain(shown('write to ann@example.com'));
  });

  test('is refused if it is unreadable text, and forwarded if no check applies', async () => {
    for (const data of [base64(Uint8Array.of(0xff, 0xfe, 0x41, 0)), `QUJD*${base64(key)}`]) {
      const refused = await send('text/plain', data);
      const text = await refused.text();
      expect({ status: refused.status, text }).toMatchObject({
        status: 400,
        text: expect.stringContaining(`${files[face].field} must contain only UTF-8 text files`),
      });
      expect(upstream.requests).toHaveLength(0);
    }
    await (await send('text/plain', base64(key), 'free')).text();
    expect(upstream.requests[0]?.body.toString()).toContain(shown(key));
  });

  test('is forwarded unchanged if it is not text', async () => {
    const data = base64(Uint8Array.of(0x25, 0x50, 0x44, 0x46, 0xff, 0xfe));
    await (await send('application/pdf', data)).text();
    expect(upstream.requests[0]?.body.toString()).toContain(data);
  });
});

test.each([
  ['percent signs', `data:text/plain,${encodeURIComponent(key)}`],
  ['a character set', `data:text/plain;charset=utf-8;base64,${base64(key)}`],
  ['capital letters', `DATA:Text/Plain;BASE64,${base64(key)}`],
  ['no type', `data:,${key}`],
])('a file in a data: URL with %s is checked too', async (_, url) => {
  const { path, body } = requestOf('chat', {
    model: 'gpt-4o-mini',
    content: '',
    stream: false,
    more: { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] },
  });
  const answer = await server.ask(path, body);
  expect(await answer.text()).toContain('secrets');
  expect(upstream.requests).toHaveLength(0);
});
