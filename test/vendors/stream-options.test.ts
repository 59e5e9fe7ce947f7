import { expect, test } from 'vitest';
import { chat } from '../support/server.ts';
import { scriptedVendors } from '../support/scripted-vendors.ts';

/** Clients that ask for the usage of a stream get it, also from a vendor that refuses to be asked: opencode and the AI SDK always ask. */
const { vendors, server } = await scriptedVendors();

const ask = (model: string, options: object, headers = {}) =>
  server.ask(chat, { model, messages: [{ role: 'user', content: 'hello' }], stream: true, stream_options: options }, { headers });
const sent = () => vendors.requests.map(({ status, body }) => [status, body.stream_options]);

test.each([
  ['mistral-large-latest', undefined],
  ['deepseek-v4', { include_usage: true }],
  ['gpt-oss-120b', { include_usage: true }],
])('the usage of a stream of %s', async (model, options) => {
  const answer = await ask(model, { include_usage: true });
  expect([answer.status, answer.headers.get('x-dragoman-warnings')]).toEqual([200, null]);
  const text = await answer.text();
  expect(text).toContain('"usage":{"prompt_tokens":');
  expect(text).toMatch(/data: \[DONE\]\s*$/);
  expect(sent()).toEqual([[200, options]]);
});

test('further options that the vendor refuses are left out, with a warning, or refused where the client is strict', async () => {
  const options = { include_usage: true, include_obfuscation: false };
  const answer = await ask('mistral-large-latest', options);
  expect([answer.status, answer.headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringContaining('stream_options.include_obfuscation')]);
  await answer.text();
  expect(sent()).toEqual([[200, undefined]]);
  const strict = await ask('mistral-large-latest', options, { 'x-dragoman-strict': 'true' });
  expect([strict.status, await strict.text()]).toEqual([400, expect.stringContaining('stream_options.include_obfuscation')]);
});
