/* Requests that change the same thing at the same time. */
import { randomUUID } from 'node:crypto';
import { describe, expect, inject, test } from 'vitest';
import { onBothDatabases, onServer } from '../../support/databases.ts';
import { connected } from '../../support/held-locks.ts';
import { person, visited, visitedTogether, type Answer, type Asker } from './visitors.ts';

const address = inject('postgres');
const long = 120_000;
const mine = '/server/mine';
const agent = { name: 'Greeter', mode: 'single', instructions: 'Be kind.', model: 'built-in' };

const six = (ask: (at: number) => Promise<Answer>) => Promise.all(Array.from({ length: 6 }, (_, at) => ask(at)));
const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status).toSorted((a, b) => a - b);

/** Makes a thing. @returns how it is deleted */
type Making = (ask: Asker) => Promise<readonly [method: string, path: string, body?: object]>;

const own =
  (noun: string, body: object): Making =>
  async (ask) => ['DELETE', `${mine}/${noun}/${String((await ask('POST', `${mine}/${noun}`, body)).body['id'])}`];

const things: Readonly<Record<string, Making>> = {
  persona: own('personas', { name: 'x', description: 'x', prompt: 'x' }),
  plugin: own('plugins', { plugin_name: 'simultaneous', title: 'x', kind: 'prompt', template: 'x' }),
  agent: own('agents', agent),
  secret: own('secrets', { name: 'SIMULTANEOUS', value: 'x' }),
  'MCP server': own('mcp-servers', { name: 'x', url: 'https://mcp.example/mcp' }),
  dataset: own('datasets', { name: 'simultaneous' }),
  chat: own('chats', { title: 'x' }),
  key: own('keys', { name: 'x' }),
  'chat session': async (ask) => ['POST', '/user/delete-chat-session', { session_id: (await ask('POST', '/user/create-chat-session', {})).body['session_id'] }],
  response: async (ask) => ['DELETE', `/v1/responses/${String((await ask('POST', '/v1/responses', { model: 'built-in', input: 'x' })).body['id'])}`],
  conversation: async (ask) => ['DELETE', `/v1/conversations/${String((await ask('POST', '/v1/conversations', {})).body['id'])}`],
  file: async (ask) => {
    const { body } = await ask('POST', `${mine}/datasets`, { name: 'with a file' });
    const path = `${mine}/datasets/${String(body['id'])}/files`;
    const files = await ask('POST', `${path}?filename=a.txt`, 'The cat sleeps.', { headers: { 'content-type': 'application/octet-stream' } });
    return ['DELETE', `${path}/${String((files.body['items'] as { id: number }[])[0]!.id)}`];
  },
};

onBothDatabases('simultaneous requests', (database) => {
  const together = visitedTogether(database);

  test('for six new versions of an agent make six', { timeout: long }, async () => {
    const { ask } = await person(together());
    const { id } = (await ask('POST', `${mine}/agents`, agent)).body;
    const answers = await six((at) => ask('PUT', `${mine}/agents/${String(id)}`, { ...agent, name: `Greeter ${at}` }));
    expect(statuses(answers)).toEqual([200, 200, 200, 200, 200, 200]);
    expect(answers.map(({ body }) => body['version'] as number).toSorted((a, b) => a - b)).toEqual([2, 3, 4, 5, 6, 7]);
    const { body } = await ask('GET', `${mine}/agents/${String(id)}/versions`);
    expect(body['items']).toHaveLength(7);
  });

  test('to put a chat that is not there yet: each of them does', { timeout: long }, async () => {
    const { ask } = await person(together());
    for (let round = 0; round < 3; round++) {
      const session_id = randomUUID();
      const put = (at: number) => ask('POST', '/user/update-chat-session-json', { session_id, title: 'x', json_data: [{ user: 'me', message: `text ${at}` }] });
      expect(statuses(await six(put))).toEqual([200, 200, 200, 200, 200, 200]);
      expect((await ask('GET', `${mine}/chats/${session_id}`)).body['messages']).toHaveLength(1);
    }
  });

  test.each(Object.entries(things))('to delete a %s: one does, the others do not find it', { timeout: long }, async (_, make) => {
    const { ask } = await person(together());
    for (let round = 0; round < 3; round++) {
      const [method, path, body] = await make(ask);
      expect(statuses(await six(() => ask(method, path, body)))).toEqual([200, 404, 404, 404, 404, 404]);
      if (path.includes('/files/')) await ask('DELETE', path.slice(0, path.indexOf('/files/')));
    }
  });
});

// The embedded database does one thing after the other.
describe.skipIf(!address)('requests that wait for the same row', () => {
  test.each([
    ['a secret', 'secrets', 'secret', { name: 'WAITED_FOR', value: 'x' }],
    ['an MCP server', 'mcp-servers', 'mcp_server', { name: 'waited for', url: 'https://mcp.example/mcp' }],
  ] as const)('a change of %s that waits keeps nobody who refers to its owner waiting', { timeout: long }, async (_, noun, table, body) => {
    const place = await onServer(address!).place();
    const { ask, id: owner } = await person(await visited(place));
    const { id } = (await ask('POST', `${mine}/${noun}`, body)).body;
    const { client, waiting } = await connected(place.databaseUrl!);
    await client.query(`begin; select from ${table} where id = ${String(id)} for update`);
    const changed = ask('PUT', `${mine}/${noun}/${String(id)}`, body);
    await expect.poll(waiting).toBe(1);
    await client.query(`select from users where id = ${owner} for key share nowait`); // as a foreign key does; whoever deletes the thing would wait in a circle
    await client.query('commit');
    expect((await changed).status).toBe(200);
  });

  test('headers that an MCP server has by now do not go to the address that it had before', { timeout: long }, async () => {
    const place = await onServer(address!).place();
    const all = await visited(place);
    const { ask } = await person(all);
    const [before, after] = ['https://before.example/mcp', 'https://after.example/mcp'];
    const { id } = (await ask('POST', `${mine}/mcp-servers`, { name: 'moved', url: before })).body;
    const { client, waiting } = await connected(place.databaseUrl!);
    await client.query(`begin; select from mcp_server where id = ${String(id)} for update`);
    const moved = ask('PUT', `${mine}/mcp-servers/${String(id)}`, { name: 'moved', url: after, headers: { 'x-key': 'for the new address' } });
    await expect.poll(waiting).toBe(1);
    const kept = ask('PUT', `${mine}/mcp-servers/${String(id)}`, { name: 'moved', url: before });
    await expect.poll(waiting).toBe(2);
    await client.query('commit');
    expect([(await moved).status, (await kept).status]).toEqual([200, 200]);
    const { rows } = await client.query(`select url, headers is null as "without" from mcp_server where id = ${String(id)}`);
    expect(rows).toEqual([{ url: before, without: true }]);
  });
});
