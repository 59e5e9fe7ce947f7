/* What users have of their own: names that nobody could see, and owners who are not there. */
import { afterAll, expect, test } from 'vitest';
import { startTestServer } from '../../support/server.ts';
import { visitorsOf } from './visitors.ts';

const server = await startTestServer();
afterAll(() => server.close());
const { admin, nobody } = visitorsOf(server);
const plugin = { plugin_name: 'p', kind: 'prompt', template: 'x' };
const agent = { mode: 'single', instructions: 'x' };

test.each<[path: string, field: string, body: object]>([
  ['/server/mine/keys', 'name', {}],
  ['/user/user-api-key', 'name', {}],
  ['/server/admin/users/1/keys', 'name', {}],
  ['/server/admin/teams', 'name', { plan: 'unlimited' }],
  ['/server/mine/personas', 'name', { description: 'x', prompt: 'x' }],
  ['/server/mine/plugins', 'title', plugin],
  ['/server/mine/agents', 'name', agent],
  ['/server/mine/mcp-servers', 'name', { url: 'https://mcp.example/mcp' }],
  ['/server/add-mcp-server', 'server_name', { server_url: 'https://mcp.example/mcp' }],
  ['/server/mine/datasets', 'name', {}],
  ['/user/add-dataset', 'dataset', {}],
  ['/server/mine/chats', 'title', {}],
  ['/server/mine/chats', 'folder', { title: 'x' }],
  ['/user/append-chat', 'chat_title', { chats: [] }],
])('%s refuses a blank %s with 400', async (path, field, body) => {
  for (const blank of ['     ', '\u00a0\u3000\u2003\u00a0\u3000']) {
    const { status, body: answer } = await admin('POST', path, { ...body, [field]: blank });
    expect([status, answer['error']]).toEqual([400, expect.stringMatching(new RegExp(`^${field} `))]);
  }
});

test('the title of a chat cannot be changed to a blank one, and one that is made with a blank title has the usual', async () => {
  const id = (await admin('POST', '/user/create-chat-session', { title: '  ' })).body['session_id'] as string;
  const title = async () => (await admin('GET', `/server/mine/chats/${id}`)).body['title'];
  expect(await title()).toBe('New Chat');
  const { status, body } = await admin('POST', '/user/update-chat-session-title', { session_id: id, new_title: '  ' });
  expect([status, body['error']]).toEqual([400, expect.stringMatching(/^new_title /)]);
  expect(await title()).toBe('New Chat');
});

test('a name may have blanks in it and around it', async () => {
  const { status, body } = await admin('POST', '/server/mine/personas', { name: ' a b ', description: 'x', prompt: 'x' });
  expect([status, body['name']]).toEqual([201, ' a b ']);
});

test('things of an owner who is not there are 404 for an administrator, as lists too', async () => {
  const { body } = await nobody('GET', '/openapi.json');
  const paths = Object.entries(body['paths'] as Record<string, { get?: { parameters?: { name: string; in: string }[] } }>);
  const lists = paths.filter(
    ([path, { get }]) => path.startsWith('/server/mine') && !path.includes('{') && get?.parameters?.some(({ name }) => name === 'owner'),
  );
  expect(lists.length).toBeGreaterThan(8);
  for (const [path] of lists) {
    const { status, body: answer } = await admin('GET', `${path}?owner=999999`);
    expect([path, status, answer['error']]).toEqual([path, 404, 'There is no such user.']);
    expect([path, (await admin('GET', `${path}?owner=1`)).status]).toEqual([path, 200]);
  }
});
