import { expect, test } from 'vitest';
import { chat } from '../support/server.ts';
import { scriptedVendors } from '../support/scripted-vendors.ts';

const { vendors, server } = await scriptedVendors();

const call = { id: 'call_1', type: 'function', function: { name: 'work', arguments: '{}' } };
const messages = [
  { role: 'user', content: 'hi' },
  { role: 'assistant', content: 'One.', tool_calls: [call] },
  { role: 'assistant', content: 'Two.', tool_calls: [call] },
  { role: 'tool', tool_call_id: call.id, content: 'first result' },
  { role: 'tool', tool_call_id: call.id, content: 'second result' },
];
const tools = [{ type: 'function', function: { name: 'work', parameters: { type: 'object', properties: {} } } }];

/** Some clients count the calls of each answer anew. */
test.each(['claude-opus-4-6', 'gemini-3-flash-preview', 'gpt-4o-on-responses'])('successive calls with one id each get their result (%s)', async (model) => {
  vendors.reset();
  const answer = await server.ask(chat, { model, messages, tools });
  await answer.text();
  expect([answer.status, answer.headers.get('x-dragoman-warnings')]).toEqual([200, null]);
  const { text } = vendors.requests.at(-1)!;
  const ids = [...text.matchAll(/"(?:tool_use_id|call_id|id)":"(call_1\w*)"/g)].map(([, id]) => id);
  expect(new Set(ids)).toEqual(new Set(['call_1', 'call_1_2']));
  expect(text).toMatch(/"call_1"[^[\]]*"first result"/);
  expect(text).toMatch(/"call_1_2"[^[\]]*"second result"/);
});
