/* Calls of tools that were approved: each is made once, whatever becomes of the answer. */
import { expect, onTestFinished, test } from 'vitest';
import { anyPlace, onBothDatabases } from '../../support/databases.ts';
import { startScriptedMcp, toolNamed } from '../../support/fakes/mcp.ts';
import { badRequest, startUpstream } from '../../support/fakes/upstream/index.ts';
import { person, visited } from '../native/visitors.ts';

const long = 120_000;
const path = '/server/chatcompat/v1/responses';
const tools = [{ type: 'mcp', server_label: 's' }];

interface Item {
  readonly id: string;
  readonly type: string;
}

/** Ada, with a call that waits for her approval, as a response and in a question. */
async function asked(place: Parameters<typeof visited>[0]) {
  const mcp = await startScriptedMcp([toolNamed('one')]);
  const upstream = await startUpstream();
  onTestFinished(upstream.close);
  const all = await visited(place, { upstream: upstream.url, yaml: `outbound: { allow: ["${mcp.origin}"] }\n` });
  const ada = await person(all);
  const server = (await ada.ask('POST', '/server/mine/mcp-servers', { name: 's', url: mcp.url })).body['id'] as number;
  const calls = () => mcp.asked.filter(({ method }) => method === 'tools/call').length;
  const { body } = await ada.ask('POST', path, { model: 'built-in', input: 'Call s__one with x "heron".', tools });
  const request = (body['output'] as Item[]).find(({ type }) => type === 'mcp_approval_request')!;
  const answer = { type: 'mcp_approval_response', approval_request_id: request.id, approve: true };
  const approving = { model: 'built-in', input: [answer], tools, previous_response_id: body['id'] };
  const question = { model: 'built-in', message: 'Call s__one now.', enabled_mcp_tools: { [server]: [['one', true]] } };
  const [call] = (await ada.ask('POST', '/server/query', question)).body['tool_calls_unified'] as [{ id: string }];
  const executing = { ...question, tools_to_execute: [call.id] };
  expect(calls()).toBe(0);
  return { all, ada, upstream, calls, approving, executing };
}

const outputOf = ({ body }: { readonly body: Record<string, unknown> }) => body['output'] as (Item & { readonly output?: string })[];

onBothDatabases('calls that were approved', ({ place }) => {
  test('are made once, and their results are there for the answer that comes at last', { timeout: long }, async () => {
    const { ada, upstream, calls, approving, executing } = await asked(await place());
    const model = 'gpt-4o-mini';
    upstream.script(badRequest());
    expect((await ada.ask('POST', path, { ...approving, model })).status).toBe(400);
    expect(calls()).toBe(1);
    for (const more of [{}, { model, store: false }]) {
      const done = await ada.ask('POST', path, { ...approving, ...more });
      expect([done.status, outputOf(done)[0]]).toMatchObject([200, { type: 'mcp_call', output: 'done' }]);
    }
    expect(calls()).toBe(1);

    upstream.script(badRequest());
    expect((await ada.ask('POST', '/server/query', { ...executing, model })).status).toBe(400);
    expect(calls()).toBe(2);
    const done = await ada.ask('POST', '/server/query', { ...executing, model });
    expect([done.status, done.body['tool_responses']]).toMatchObject([200, [{ name: 's__one', response: 'done', is_error: false }]]);
    expect(calls()).toBe(2);
    expect((await ada.ask('POST', '/server/query', executing)).status).toBe(404);
  });
});

test('are made once though their question was asked twice', { timeout: long }, async () => {
  const { ada, calls, executing } = await asked(await anyPlace());
  const { tools_to_execute: _, ...again } = executing;
  expect((await ada.ask('POST', '/server/query', again)).status).toBe(200);
  const statuses = [(await ada.ask('POST', '/server/query', executing)).status, (await ada.ask('POST', '/server/query', executing)).status];
  expect([statuses, calls()]).toEqual([[200, 404], 1]);
});

test('are not made where the minute of their user is full, and a response in the background waits for the next one', { timeout: long }, async () => {
  const { all, ada, calls, approving, executing } = await asked(await anyPlace());
  await all.admin('PATCH', `/server/admin/users/${ada.id}`, { requestsPerMinute: 1 });
  await expect.poll(async () => (await ada.ask('POST', '/server/query', { message: 'hi' })).status, { timeout: 30_000 }).toBe(429);
  expect((await ada.ask('POST', path, approving)).status).toBe(429);
  expect((await ada.ask('POST', '/server/query', executing)).status).toBe(429);
  const background = await ada.ask('POST', path, { ...approving, background: true });
  expect([background.status, calls()]).toEqual([200, 0]);
  await all.admin('PATCH', `/server/admin/users/${ada.id}`, { requestsPerMinute: null });
  const status = async () => (await ada.ask('GET', `${path}/${String(background.body['id'])}`)).body['status'];
  await expect.poll(status, { timeout: 90_000, interval: 500 }).toBe('completed');
  expect(calls()).toBe(1);
});
