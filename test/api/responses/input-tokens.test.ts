import { expect, test } from 'vitest';
import { always, ok } from '../../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../../support/scripted-server.ts';

/** `POST /responses/input_tokens`: what a request would cost before it is made. */

const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

// oxlint-disable-next-line typescript/no-explicit-any -- answers are read as a client in JavaScript does
type Any = any;
const path = '/server/chatcompat/v1/responses';

async function post(address: string, body: unknown): Promise<Any> {
  const answer = await server.ask(address, body);
  return { http: answer.status, ...((await answer.json()) as object) };
}
const count = (more: object) => post(`${path}/input_tokens`, { model: 'built-in', ...more });

test('the tokens of a request are those that its response reports as input, and no answer is asked for', async () => {
  const asked = { model: 'built-in', input: 'Say exactly: hello', instructions: 'Be brief.' };
  const { usage, id } = await post(path, asked);
  expect(await count(asked)).toEqual({ http: 200, object: 'response.input_tokens', input_tokens: usage.input_tokens });
  const more = { model: 'built-in', input: 'Say exactly: goodbye', previous_response_id: id };
  expect((await count(more)).input_tokens).toBe((await post(path, more)).usage.input_tokens);
  expect((await count({ previous_response_id: id })).input_tokens).toBeGreaterThan((await count({ input: 'x' })).input_tokens);
  upstream.script(always(ok()));
  expect((await count({ ...asked, model: 'chat' })).http).toBe(200);
  expect(upstream.requests).toEqual([]);
});

test.each([
  ['input', {}, 400],
  ['input', { input: [] }, 400],
  ['model', { model: 'nobody', input: 'x' }, 404],
  ['previous_response_id', { input: 'x', previous_response_id: 'resp_0000000000000000000000' }, 404],
])('a refusal names %s: %j', async (param, body, http) => {
  const { error, ...answer } = await count(body);
  expect([answer.http, error.param]).toEqual([http, param]);
});
