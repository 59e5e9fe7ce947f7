import { describe, expect, test } from 'vitest';
import { ok } from '../support/fakes/upstream/index.ts';
import { askFace, type Face } from '../support/all-faces.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** Files that were uploaded to one vendor are unknown to the others: their ids are never sent there. */

const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));

const file: Readonly<Record<Face, object>> = {
  chat: {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Read it.' },
          { type: 'file', file: { file_id: 'file-123' } },
        ],
      },
    ],
  },
  responses: {
    input: [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'Read it.' },
          { type: 'input_file', file_id: 'file-123' },
        ],
      },
    ],
  },
  messages: {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Read it.' },
          { type: 'document', source: { type: 'file', file_id: 'file-123' } },
        ],
      },
    ],
  },
  gencompat: {
    contents: [
      {
        role: 'user',
        parts: [
          { text: 'Read it.' },
          { fileData: { mimeType: 'application/pdf', fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/file-123' } },
        ],
      },
    ],
  },
};
const alone: Readonly<Record<Face, object>> = {
  chat: { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-123' } }] }] },
  responses: { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file-123' }] }] },
  messages: { messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'file', file_id: 'file-123' } }] }] },
  gencompat: { contents: [{ role: 'user', parts: [{ fileData: { mimeType: 'application/pdf', fileUri: 'gs://bucket/file-123' } }] }] },
};
const others: readonly (readonly [Face, string])[] = [
  ['chat', 'messages'],
  ['chat', 'gemini'],
  ['responses', 'messages'],
  ['responses', 'gemini'],
  ['messages', 'chat'],
  ['messages', 'responses'],
  ['messages', 'gemini'],
  ['gencompat', 'chat'],
  ['gencompat', 'responses'],
  ['gencompat', 'messages'],
];
const ask = (face: Face, model: string, more: object, headers: Readonly<Record<string, string>> = {}) => {
  upstream.script(ok());
  return askFace(server, face, { model, content: '', stream: false, more, headers });
};

describe.each(others)('a file of a %s client, on the %s wire', (face, wire) => {
  test('is left out with a warning, and refused to a strict client', async () => {
    const { status, headers } = await ask(face, wire, file[face]);
    expect({ status, warnings: headers.get('x-dragoman-warnings') }).toEqual({ status: 200, warnings: expect.stringContaining('file') as string });
    expect(upstream.requests[0]!.body.toString()).toContain('Read it.');
    expect(upstream.requests[0]!.body.toString()).not.toContain('file-123');
    expect((await ask(face, wire, file[face], { 'x-dragoman-strict': 'true' })).status).toBe(400);
  });

  test('that is the whole message is refused, and nothing is sent', async () => {
    const { status, raw } = await ask(face, wire, alone[face]);
    expect([400, 501]).toContain(status);
    expect(raw).toContain('file');
    expect(upstream.requests).toHaveLength(0);
  });
});

test.each([
  ['chat', 'chat'],
  ['chat', 'responses'],
  ['responses', 'responses'],
  ['responses', 'chat'],
  ['messages', 'messages'],
  ['gencompat', 'gemini'],
] as const)('a file of a %s client is sent on the %s wire', async (face, wire) => {
  expect((await ask(face, wire, file[face])).headers.get('x-dragoman-warnings')).toBeNull();
  expect(upstream.requests[0]!.body.toString()).toContain('file-123');
});

test.each(['https://cdn.shop.com/v1/files/manual.pdf', 'https://generativelanguage.googleapis.com.shop.com/v1beta/files/manual.pdf'])(
  'a file of a Gemini client at the address of anybody is sent by that: %s',
  async (fileUri) => {
    const parts = [{ text: 'Read it.' }, { fileData: { mimeType: 'application/pdf', fileUri } }];
    const { status, headers } = await ask('gencompat', 'messages', { contents: [{ role: 'user', parts }] });
    expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, expect.not.stringContaining('file') as string]);
    expect(upstream.requests[0]!.body.toString()).toContain(fileUri);
  },
);
