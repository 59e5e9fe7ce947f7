/* What users have of their own: names that nobody could see, and owners who are not there. */
import { randomUUID } from 'node:crypto';
import { afterAll, expect, test } from 'vitest';
import { startTestServer } from '../../support/server.ts';
import { person, visitorsOf, type Answer } from './visitors.ts';

const server = await startTestServer();
afterAll(() => server.close());
const all = visitorsOf(server);
const { admin, nobody } = all;
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

/** A family in one sign, and a Persian word: both are held together by invisible joiners. */
const joined = '\u{1f468}\u200d\u{1f469}\u200d\u{1f467} \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645';

test.each([
  ['/server/mine/keys', 'name', {}],
  ['/server/admin/teams', 'name', { plan: 'unlimited' }],
  ['/server/mine/personas', 'name', { description: 'x', prompt: 'x' }],
  ['/server/mine/plugins', 'title', plugin],
  ['/server/mine/agents', 'name', agent],
  ['/server/mine/datasets', 'name', {}],
  ['/server/mine/chats', 'title', {}],
  ['/server/mine/chats', 'folder', { title: 'x' }],
  ['/user/create-chat-session', 'title', {}],
  ['/user/append-chat', 'chat_title', { chats: [] }],
  ['/user/user-api-key', 'name', {}],
])('%s takes a %s with joiners in it, and none that is of nothing else, or turns what follows', async (path, field, body) => {
  const { status, body: made } = await admin('POST', path, { ...body, [field]: joined });
  expect([200, 201]).toContain(status);
  expect([undefined, joined]).toContain(made[field]);
  const isNamed = !/session|append/.test(path); // others have a usual title
  for (const odd of ['turned\u202eround', 'a\u0007', ...(isNamed ? ['two\u2028lines', '\u200d\u200c\u200d\u200c'] : [])]) {
    const { status: its, body: answer } = await admin('POST', path, { ...body, [field]: odd });
    expect([its, answer['error']]).toEqual([400, expect.stringMatching(new RegExp(`^${field} `))]);
  }
});

test('a title that a client cut from a message is one line, without half of a character', async () => {
  const cut = '\tWhere do herons\r\n\r\nnest \u{1f600}?'.slice(0, -2);
  expect(cut.endsWith('\ud83d')).toBe(true);
  const title = async ({ body }: Answer) => (await admin('GET', `/server/mine/chats/${body['session_id'] as string}`)).body['title'];
  const session_id = randomUUID();
  expect(await title(await admin('POST', '/user/create-chat-session', { title: cut }))).toBe('Where do herons nest');
  expect(await title(await admin('POST', '/user/append-chat', { chat_title: cut, chats: [{ user: 'me', message: 'x' }] }))).toBe('Where do herons nest');
  await admin('POST', '/user/update-chat-session-json', { session_id, title: cut, json_data: [] });
  expect((await admin('GET', `/server/mine/chats/${session_id}`)).body['title']).toBe('Where do herons nest');
  const { status, body } = await admin('POST', '/user/append-chat', { chat_title: '\n\t\n', chats: [] });
  expect([status, body['error']]).toEqual([400, 'chat_title is required.']);
});

test('the length of a title is counted in characters, of which an emoji is one, also where a copy is cut', async () => {
  const id = (await admin('POST', '/user/create-chat-session', { title: '\u{1f600}'.repeat(50) })).body['session_id'] as string;
  const title = async (chat: string) => (await admin('GET', `/server/mine/chats/${chat}`)).body['title'];
  expect(await title(id)).toBe('\u{1f600}'.repeat(50));
  const change = (text: string) => admin('POST', '/user/update-chat-session-title', { session_id: id, new_title: text });
  expect((await change('\u{1f600}'.repeat(51))).body['error']).toBe('new_title must have at most 50 characters.');
  expect((await change(`${'\u{1f600}'.repeat(30)}\u0007`)).body['error']).toMatch(/^new_title must be a title, without control characters/);

  const long = `x${'\u{1f600}'.repeat(199)}`;
  expect((await admin('PUT', `/server/mine/chats/${id}`, { title: long })).body['title']).toBe(long);
  const { email } = (await admin('GET', '/server/mine')).body;
  await admin('POST', '/user/copy-chat', { chat_id: id, email });
  const { items } = (await admin('GET', '/server/mine/chats?query=Copy')).body as { items: { title: string }[] };
  expect(items.map((chat) => chat.title)).toEqual([`Copy of ${long}`.slice(0, 9) + '\u{1f600}'.repeat(41)]);
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

test('what somebody shared is nobody’s at once when they are deleted', async () => {
  const [ada, bob] = [await person(all), await person(all)];
  const made = {
    agents: { ...agent, name: 'a' },
    chats: { title: 'c' },
    datasets: { name: 'left' },
    'mcp-servers': { name: 'm', url: 'https://mcp.example/mcp' },
    personas: { name: 'p', prompt: 'x' },
    plugins: { ...plugin, title: 'p' },
    secrets: { name: 'S', value: 'x' },
  };
  const seen = async () => {
    const lists = await Promise.all(Object.keys(made).map((kind) => bob.ask('GET', `/server/mine/${kind}`)));
    return lists.map(({ body }) => (body['items'] as { owner: number }[]).filter(({ owner }) => owner === ada.id).length);
  };
  for (const [kind, body] of Object.entries(made)) {
    const { id } = (await ada.ask('POST', `/server/mine/${kind}`, body)).body;
    const given = await ada.ask('PUT', `/server/mine/${kind}/${id as string}/grants`, { items: [{ user: bob.id, right: 'read' }] });
    expect([kind, given.status]).toEqual([kind, 200]);
  }
  expect(await seen()).toEqual(Object.keys(made).map(() => 1));
  expect((await admin('DELETE', `/server/admin/users/${ada.id}`)).status).toBe(200);
  expect(await seen()).toEqual(Object.keys(made).map(() => 0));
});
