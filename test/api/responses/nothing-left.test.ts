import { expect, test } from 'vitest';
import { always, ok } from '../../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../../support/scripted-server.ts';

/** Conversations of which a provider of another API can be sent nothing. */

const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

test.each([
  ['chat', 'messages', [{ role: 'user', content: '.' }]],
  ['messages', 'messages', [{ role: 'user', content: '.' }]],
  ['gemini', 'contents', [{ role: 'user', parts: [{ text: '.' }] }]],
])('a provider of %s gets a message where every item is one that only the Responses API knows', async (model, member, said) => {
  upstream.script(always(ok()));
  const answer = await server.ask('/server/chatcompat/v1/responses', { model, input: [{ type: 'compaction', encrypted_content: 'x' }] });
  expect([answer.status, answer.headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringContaining('compaction: ')]);
  expect((upstream.requests.at(-1)!.json as Record<string, unknown>)[member]).toEqual(said);
});
