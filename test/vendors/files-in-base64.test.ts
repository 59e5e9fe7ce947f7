import { expect, test } from 'vitest';
import { askFace, type Face } from '../support/all-faces.ts';
import { always, ok } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** Files whose base64 came without a MIME type, as both interfaces of OpenAI allow: other wires refuse them, or read them wrongly. */

const { upstream, server } = await scriptedServer((at) => ({ yaml: everyWire(at) }));

const pdf = { filename: 'a.pdf', file_data: 'JVBERi0=' };
const text = { filename: 'a.txt', file_data: 'aGk=' };
const table = { filename: 'A.CSV', file_data: 'YSxi' };
const unnamed = { file_data: 'JVBERi0=' };

const inline = (mimeType: string, data: string) => ({ inlineData: { mimeType, data } });
const document = (source: object, title?: string) => ({ type: 'document', source, ...(title === undefined ? {} : { title }) });
const plain = (data: string) => ({ type: 'text', media_type: 'text/plain', data });

test.each([
  ['responses', pdf, { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' }],
  ['responses', unnamed, { type: 'input_file', filename: 'document.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' }],
  ['responses', table, { type: 'input_file', filename: 'A.CSV', file_data: 'data:text/csv;base64,YSxi' }],
  ['messages', pdf, document({ type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' }, 'a.pdf')],
  ['messages', text, document(plain('hi'), 'a.txt')],
  ['messages', table, document(plain('a,b'), 'A.CSV')],
  ['gemini', unnamed, inline('application/pdf', 'JVBERi0=')],
  ['gemini', table, inline('text/csv', 'YSxi')],
] as const)('to the %s wire, %o has the type that its bytes or its name tell', async (model, file, arrives) => {
  for (const face of ['chat', 'responses'] as const) {
    upstream.script(always(ok()));
    expect((await sentBy(face, model, file)).status).toBe(200);
    expect(JSON.stringify(upstream.requests.at(-1)!.json)).toContain(JSON.stringify(arrives).slice(1, -1));
  }
});

test('to the chat wire, a file of the responses interface has a type', async () => {
  upstream.script(always(ok()));
  expect((await sentBy('responses', 'chat', pdf)).status).toBe(200);
  expect(JSON.stringify(upstream.requests.at(-1)!.json)).toContain('data:application/pdf;base64,JVBERi0=');
});

test('to the chat wire, a file of the chat interface goes as it came', async () => {
  upstream.script(always(ok()));
  expect((await sentBy('chat', 'chat', pdf)).status).toBe(200);
  expect(upstream.requests.at(-1)!.json).toMatchObject({ messages: [{ content: [{ type: 'text' }, { type: 'file', file: pdf }] }] });
});

function sentBy(face: Face & ('chat' | 'responses'), model: string, file: object) {
  const question = {
    chat: [
      { type: 'text', text: 'Read it.' },
      { type: 'file', file },
    ],
    responses: [
      { type: 'input_text', text: 'Read it.' },
      { type: 'input_file', ...file },
    ],
  };
  const turns = [{ role: 'user', content: question[face] }];
  return askFace(server, face, { model, content: '', stream: false, more: face === 'chat' ? { messages: turns } : { input: turns } });
}
