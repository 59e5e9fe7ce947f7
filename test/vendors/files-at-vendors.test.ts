import { expect, test } from 'vitest';
import { askFace, type Face } from '../support/all-faces.ts';
import { scriptedVendors } from '../support/scripted-vendors.ts';

/** Files that a vendor cannot have, or does not read: each is named. */

const { vendors, server } = await scriptedVendors();

const ask = (face: Face, model: string, more: object) => askFace(server, face, { model, content: '', stream: false, more });

const file = { type: 'input_file', file_id: 'file-123' };
const beside = { input: [{ role: 'user', content: [{ type: 'input_text', text: 'Read it.' }, file] }] };
const alone = { input: [{ role: 'user', content: [file] }] };

test.each(['deepseek-chat', 'kimi-k2-thinking', 'mistral-large-latest', 'gpt-oss-120b', 'glm-5'])(
  '%s is not sent the id of a file that was uploaded to OpenAI: the client is warned, or refused where there is nothing else',
  async (model) => {
    const { status, headers } = await ask('responses', model, beside);
    expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringContaining('file by file id: ')]);
    expect(vendors.requests.map(({ text }) => [text.includes('file-123'), text.includes('Read it.')])).toEqual([[false, true]]);
    vendors.reset();
    const refused = await ask('responses', model, alone);
    expect([400, 501]).toContain(refused.status);
    expect(refused.raw).toContain('file by file id');
    expect(vendors.requests).toHaveLength(0);
  },
);

test('OpenAI is sent it', async () => {
  expect((await ask('responses', 'gpt-4o', beside)).status).toBe(200);
  expect(vendors.requests.at(-1)!.text).toContain('file-123');
});

test('a PDF that Ollama does not read is a refusal that says so', async () => {
  const source = { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0xLjQK' };
  const content = [
    { type: 'text', text: 'Read it.' },
    { type: 'document', source },
  ];
  const { status, raw } = await ask('messages', 'ollama-llama3.3', { messages: [{ role: 'user', content }] });
  expect([status, raw]).toEqual([
    400,
    expect.stringContaining('neither text nor an image or audio, such as a file (400, invalid_request_error). It says: invalid message format'),
  ]);
});
