/* Chats: in the words of the native interface, and as plain REST. */
import { expect, test } from 'vitest';
import { onBothDatabases } from '../../support/databases.ts';
import { proves } from '../../support/proves.ts';
import { person, visitedTogether } from './visitors.ts';

const long = 120_000;
const nobodys = '11111111-2222-4333-8444-555555555555';
const asUuid = expect.stringMatching(/^[0-9a-f-]{36}$/) as string;

onBothDatabases('chats', (database) => {
  const together = visitedTogether(database);

  test(
    proves(
      ['user.get-chats', 'user.get-chat-session', 'user.delete-chat-session', 'service.user-root'],
      'are made, listed without any field, shown and deleted, each in a JSON text and as an object beside it',
    ),
    { timeout: long },
    async () => {
      const all = together();
      const [ada, bob] = [await person(all), await person(all)];
      const empty = { chats: [], buttons: [] };
      expect((await ada.ask('POST', '/user/get-chats')).body).toEqual({ response: JSON.stringify(empty), data: empty, status: 200 });
      expect((await ada.ask('POST', '/user/create-chat-session', { title: null, json_data: null, session_id: null })).status).toBe(200);
      const scrap = (await ada.ask('POST', '/user/get-chats')).body['data'] as { chats: { id: string }[] };
      expect((await ada.ask('POST', '/user/delete-chat-session', { session_id: scrap.chats[0]!.id })).status).toBe(200);
      const messages = [
        { user: 'me', message: 'Where do herons nest?', id: 'm1', follows: ['a'] },
        { user: 'gpt', message: 'In trees.', references: '[1] x' },
      ];
      const made = await ada.ask('POST', '/user/create-chat-session', { title: 'Herons', json_data: messages });
      expect(made.body).toEqual({ response: 'Chat session created', session_id: asUuid, status: 200 });
      const id = made.body['session_id'] as string;
      const one = { session_id: id, content: [messages[0], { id: expect.any(Number) as number, ...messages[1] }] };
      const shown = await ada.ask('POST', '/user/get-chat-session', { session_id: id.toUpperCase() });
      expect(shown.body).toEqual({ response: expect.any(String) as string, data: one, status: 200 });
      expect(JSON.parse(shown.body['response'] as string)).toEqual(one);

      const more = await ada.ask('POST', '/user/append-chat', { session_id: id, chats: { chats: [{ user: 'me', message: 'And storks?' }] } });
      expect(more.body).toEqual({ response: 'Chats updated', session_id: id, status: 200 });
      const other = await ada.ask('POST', '/user/append-chat', { chat_title: 'Storks', chats: [{ user: 'me', message: 'Storks?' }] });
      const otherId = other.body['session_id'] as string;
      for (const chats of [[], { chats: [] }]) {
        const made = await ada.ask('POST', '/user/append-chat', { chat_title: 'Empty', chats });
        expect(made.body).toEqual({ response: 'Chats updated', session_id: asUuid, status: 200 });
        const session = { session_id: made.body['session_id'] };
        expect((await ada.ask('POST', '/user/append-chat', { ...session, chats })).body).toEqual({ response: 'Chats updated', ...session, status: 200 });
        expect((await ada.ask('POST', '/user/get-chat-session', session)).body['data']).toEqual({ ...session, content: [] });
        await ada.ask('POST', '/user/delete-chat-session', session);
      }
      expect((await ada.ask('POST', '/user/update-chat-session-title', { session_id: id, new_title: 'Birds' })).body).toEqual({
        response: 'Title updated',
        status: 200,
      });
      const list = (await ada.ask('GET', '/user/get-chats')).body;
      const data = {
        chats: [
          { id, content: -1 },
          { id: otherId, content: -1 },
        ],
        buttons: [
          { key: id, content: 'Birds', mode_type: 'chat' },
          { key: otherId, content: 'Storks', mode_type: 'chat' },
        ],
      };
      expect(list).toEqual({ response: JSON.stringify(data), data, status: 200 });

      for (const session_id of [otherId, nobodys]) {
        const put = await ada.ask('POST', '/user/update-chat-session-json', { session_id, title: 'Put', json_data: [{ user: 'gpt', message: 'new' }] });
        expect(put.body).toEqual({ response: 'Chat content updated', status: 200 });
        const content = ((await ada.ask('POST', '/user/get-chat-session', { session_id })).body['data'] as { content: object[] }).content;
        expect(content).toMatchObject([{ user: 'gpt', message: 'new' }]);
      }
      expect((await ada.ask('POST', '/user/copy-chat', { chat_id: id, email: bob.email.toUpperCase() })).body).toEqual({
        response: 'Chats copied',
        status: 200,
      });
      const copied = (await bob.ask('POST', '/user/get-chats')).body['data'] as { buttons: { key: string; content: string }[] };
      expect(copied.buttons).toEqual([{ key: asUuid, content: 'Copy of Birds', mode_type: 'chat' }]);
      const copy = await bob.ask('GET', `/server/mine/chats/${copied.buttons[0]!.key}`);
      expect(copy.body['messages']).toMatchObject([{ parent: null }, { message: 'In trees.' }, { message: 'And storks?' }]);

      for (const [path, body] of [
        ['get-chat-session', { session_id: id }],
        ['delete-chat-session', { session_id: id }],
        ['append-chat', { session_id: id, message: 'x' }],
        ['update-chat-session-title', { session_id: id, new_title: 'x' }],
        ['copy-chat', { chat_id: id, email: bob.email }],
      ] as const)
        expect([path, (await bob.ask('POST', `/user/${path}`, body)).status]).toEqual([path, 404]);
      expect((await bob.ask('POST', '/user/update-chat-session-json', { session_id: id, json_data: [] })).status).toBe(404);
      const own = await bob.ask('POST', '/user/create-chat-session', { session_id: id });
      expect([own.status, own.body['session_id'] === id]).toEqual([200, false]);

      expect((await ada.ask('POST', '/user/delete-chat-session', { session_id: id })).body).toEqual({ response: 'Chat session deleted', status: 200 });
      expect((await ada.ask('POST', '/user/get-chat-session', { session_id: id })).status).toBe(404);
    },
  );

  test('what is malformed is refused with 400 naming the field, and what is too large with 413', { timeout: long }, async () => {
    const all = together();
    const ada = await person(all);
    for (const [path, body, says] of [
      ['get-chat-session', {}, 'session_id is required'],
      ['get-chat-session', { session_id: 'x' }, 'session_id must be a UUID'],
      ['delete-chat-session', { session_id: 7 }, 'session_id must'],
      ['create-chat-session', { title: 't'.repeat(51) }, 'title must'],
      [
        'create-chat-session',
        {
          json_data: [
            { user: 'me', message: 'x' },
            { user: 'bot', message: 'x' },
          ],
        },
        'json_data\\[1\\].user must',
      ],
      ['append-chat', { chat_title: 'x', chats: [{ user: 'system', message: 'x' }] }, 'chats\\[0\\].user must'],
      ['append-chat', { chat_title: 'x', message: { user: 'bot', message: 'x' } }, 'message.user must'],
      ['create-chat-session', { json_data: [{ user: 'me' }] }, 'json_data\\[0\\].message is required'],
      ['create-chat-session', { json_data: [{ user: 'me', message: 'a\0b' }] }, 'json_data\\[0\\].message must'],
      ['append-chat', { chat_title: 'x' }, 'chats is required'],
      ['append-chat', { chats: [{ user: 'me', message: 'x' }] }, 'chat_title is required'],
      ['append-chat', { chats: [] }, 'chat_title is required'],
      ['update-chat-session-title', { session_id: nobodys, new_title: '' }, 'new_title must'],
      ['copy-chat', { chat_id: nobodys }, 'email is required'],
    ] as const) {
      const answer = await ada.ask('POST', `/user/${path}`, body);
      expect([path, answer.status, answer.body['error']]).toEqual([path, 400, expect.stringMatching(new RegExp(`^${says}`))]);
    }
    const large = Array.from({ length: 17 }, () => ({ user: 'me', message: 'x'.repeat(2 ** 20) }));
    expect((await ada.ask('POST', '/user/create-chat-session', { json_data: large })).status).toBe(413);
    expect((await ada.ask('POST', '/user/get-chats')).body['data']).toEqual({ chats: [], buttons: [] });
    const bad = await ada.ask('POST', '/user/create-chat-session', { session_id: 'no uuid' });
    expect(bad.body['session_id']).toEqual(asUuid);
  });

  test('have folders, a search and branches as plain REST, and are there for nobody else', { timeout: long }, async () => {
    const all = together();
    const [ada, bob] = [await person(all), await person(all)];
    const root = '/server/mine/chats';
    const make = async (body: object) => (await ada.ask('POST', root, body)).body['id'] as string;
    const [work, home] = [await make({ title: 'Work 100%', folder: 'a', mode: 'code' }), await make({})];
    const say = async (user: string, message: string, parent?: number | null) =>
      (await ada.ask('POST', `${root}/${work}/messages`, { user, message, parent })).body;
    const first = await say('me', 'Where do herons nest?');
    const answer = await say('gpt', 'In trees.');
    const branch = await say('gpt', 'Near water.', first['id'] as number);
    const behind = await say('me', 'Why?', branch['id'] as number);
    const whole = await ada.ask('GET', `${root}/${work}`);
    expect(whole.body).toMatchObject({
      id: work,
      title: 'Work 100%',
      folder: 'a',
      mode: 'code',
      owner: ada.id,
      right: 'owner',
      messages: [first, answer, branch, behind],
    });
    expect([first, answer, branch, behind].map(({ parent }) => parent)).toEqual([null, first['id'], first['id'], branch['id']]);

    const ids = async (query: string, who = ada) => ((await who.ask('GET', `${root}?${query}`)).body['items'] as { id: string }[]).map(({ id }) => id);
    expect(await ids('')).toEqual([work, home]);
    for (const query of ['folder=a', 'query=HERONS', 'query=100%25', 'query=work']) expect([query, await ids(query)]).toEqual([query, [work]]);
    for (const query of ['folder=b', 'query=storks', 'query=1_0']) expect([query, await ids(query)]).toEqual([query, []]);
    const page = (await ada.ask('GET', `${root}?limit=1`)).body;
    expect(await ids(`limit=1&cursor=${page['nextCursor'] as string}`)).toEqual([home]);

    const text = await ada.ask('PATCH', `${root}/${work}/messages/${String(answer['id'])}`, { message: 'On poles.' });
    expect(text.body).toEqual({ ...answer, message: 'On poles.' });
    const move = (message: Record<string, unknown>, parent: unknown) => ada.ask('PATCH', `${root}/${work}/messages/${String(message['id'])}`, { parent });
    expect((await move(behind, answer['id'])).body).toEqual({ ...behind, parent: answer['id'] });
    expect((await move(behind, branch['id'])).body).toEqual(behind);
    for (const parent of [first['id'], behind['id']]) {
      const circle = await move(first, parent);
      expect([circle.status, circle.body['error']]).toEqual([400, 'parent must not be the message itself, or one that goes on from it.']);
    }
    expect((await move(first, 999_999)).status).toBe(404);
    expect((await move(branch, null)).body).toEqual({ ...branch, parent: null });
    expect((await move(branch, first['id'])).body).toEqual(branch);
    expect((await ada.ask('DELETE', `${root}/${work}/messages/${String(branch['id'])}`)).body).toEqual(branch);
    expect(((await ada.ask('GET', `${root}/${work}`)).body['messages'] as object[]).length).toBe(2);
    expect((await ada.ask('PUT', `${root}/${work}`, { folder: null })).body).toMatchObject({ title: 'Work 100%', folder: null });
    expect((await ada.ask('POST', `${root}/${home}/messages`, { user: 'me', message: 'x', parent: first['id'] })).status).toBe(404);

    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['PUT', '', {}],
      ['DELETE', '', undefined],
      ['POST', '/messages', { user: 'me', message: 'x' }],
      ['PATCH', `/messages/${String(first['id'])}`, { message: 'x' }],
      ['DELETE', `/messages/${String(first['id'])}`, undefined],
    ] as const)
      expect([method, path, (await bob.ask(method, `${root}/${work}${path}`, body)).status]).toEqual([method, path, 404]);
    expect(await ids('', bob)).toEqual([]);
    expect((await all.admin('GET', `${root}/${work}?owner=${ada.id}`)).body).toMatchObject({ id: work, messages: [] });
    expect(((await all.admin('GET', `${root}?owner=${ada.id}&query=herons`)).body['items'] as object[]).length).toBe(0);
    expect((await ada.ask('DELETE', `${root}/${work}`)).status).toBe(200);
    expect((await ada.ask('GET', `${root}/not-an-id`)).status).toBe(404);
  });

  test('are shared to be read, changed or shared on; only the owner deletes, and administrators see no text', { timeout: long }, async () => {
    const all = together();
    const [ada, bob, eve] = [await person(all), await person(all), await person(all)];
    const root = '/server/mine/chats';
    const chat = `${root}/${(await ada.ask('POST', root, { title: 'Shared' })).body['id'] as string}`;
    const said = (await ada.ask('POST', `${chat}/messages`, { user: 'me', message: 'Where do herons nest?' })).body;
    const share = (...items: object[]) => ada.ask('PUT', `${chat}/grants`, { items });
    expect((await bob.ask('GET', `${chat}/grants`)).status).toBe(404);
    expect((await share({ user: bob.email, right: 'read' })).body).toEqual({ items: [{ user: bob.id, right: 'read' }] });
    expect((await bob.ask('GET', chat)).body).toMatchObject({ owner: ada.id, right: 'read', messages: [said], nextCursor: null });
    expect((await bob.ask('GET', `${root}?query=herons`)).body['items']).toMatchObject([{ title: 'Shared', right: 'read' }]);
    expect((await bob.ask('POST', '/user/get-chats')).body['data']).toEqual({ chats: [], buttons: [] }); // that list has one's own
    const message = `${chat}/messages/${String(said['id'])}`;
    for (const [method, path, body] of [
      ['PUT', chat, { title: 'x' }],
      ['DELETE', chat, undefined],
      ['POST', `${chat}/messages`, { user: 'me', message: 'x' }],
      ['PATCH', message, { message: 'x' }],
      ['DELETE', message, undefined],
      ['GET', `${chat}/grants`, undefined],
      ['PUT', `${chat}/grants`, { items: [] }],
    ] as const)
      expect([method, path, (await bob.ask(method, path, body)).status]).toEqual([method, path, 403]);
    await share({ user: bob.id, right: 'edit' });
    const added = await bob.ask('POST', `${chat}/messages`, { user: 'gpt', message: 'In trees.' });
    expect(added).toMatchObject({ status: 201, body: { parent: said['id'] } });
    expect((await bob.ask('PUT', chat, { title: 'By Bob' })).body).toMatchObject({ title: 'By Bob', right: 'edit' });
    expect((await bob.ask('PUT', `${chat}/grants`, { items: [] })).status).toBe(403);
    await share({ user: bob.id, right: 'admin' });
    expect(
      (
        await bob.ask('PUT', `${chat}/grants`, {
          items: [
            { user: bob.id, right: 'admin' },
            { everybody: true, right: 'read' },
          ],
        })
      ).status,
    ).toBe(200);
    expect((await eve.ask('GET', chat)).body).toMatchObject({ right: 'read' });
    const foundBy = async (who: typeof eve, query: string) => ((await who.ask('GET', `${root}?query=${query}`)).body['items'] as object[]).length;
    // anybody may share with everybody: messages are looked through where a chat is one's own, or was given by name
    expect(await Promise.all([foundBy(ada, 'trees'), foundBy(bob, 'trees'), foundBy(eve, 'trees'), foundBy(eve, 'By Bob')])).toEqual([1, 1, 0, 1]);
    expect((await bob.ask('DELETE', chat)).status).toBe(403);

    const asAdmin = (path: string) => `${path}?owner=${ada.id}`;
    const put = await all.admin('POST', asAdmin(`${chat}/messages`), { user: 'gpt', message: 'From support.' });
    expect(put).toMatchObject({ status: 201, body: { message: 'From support.' } });
    expect((await all.admin('PATCH', asAdmin(message), { user: 'gpt' })).body).toMatchObject({ user: 'gpt', message: '' });
    expect((await all.admin('PATCH', asAdmin(message), { message: 'Gone.' })).body).toMatchObject({ message: 'Gone.' });
    expect((await all.admin('DELETE', asAdmin(`${chat}/messages/${String(added.body['id'])}`))).body).toMatchObject({ message: '' });
    expect((await eve.ask('POST', asAdmin(`${chat}/messages`), { user: 'me', message: 'x' })).status).toBe(404);
    const trail = (await all.admin('GET', '/server/admin/audit?action=chat.share')).body['items'] as { target: object }[];
    expect(trail[0]!.target).toEqual({ kind: 'chat', id: chat.slice(root.length + 1) });
    await share();
    expect((await bob.ask('GET', chat)).status).toBe(404);
    expect((await ada.ask('DELETE', chat)).body).toMatchObject({ right: 'owner' });
  });

  test('of many messages are shown page by page, about a megabyte at a time', { timeout: long }, async () => {
    const all = together();
    const ada = await person(all);
    const content = [...Array.from({ length: 450 }, (_, at) => `short ${at}`), 'x'.repeat(800_000), 'y'.repeat(800_000), 'end'];
    const json_data = content.map((message) => ({ user: 'me', message }));
    const id = (await ada.ask('POST', '/user/create-chat-session', { json_data })).body['session_id'] as string;
    const pages: string[][] = [];
    for (let cursor = ''; ;) {
      const { body } = await ada.ask('GET', `/server/mine/chats/${id}?limit=150${cursor}`);
      pages.push((body['messages'] as { message: string }[]).map(({ message }) => message));
      if (body['nextCursor'] === null) break;
      cursor = `&cursor=${body['nextCursor'] as string}`;
    }
    expect(pages.map(({ length }) => length)).toEqual([150, 150, 150, 2, 1]);
    expect(pages.flat()).toEqual(content);
    expect((await ada.ask('GET', `/server/mine/chats/${id}?cursor=x`)).status).toBe(400);
    const { data } = (await ada.ask('POST', '/user/get-chat-session', { session_id: id })).body as { data: { content: object[] } };
    expect(data.content).toHaveLength(content.length);
  });

  test('nobody is given more copies than there is room for', { timeout: long }, async () => {
    const all = together();
    const [ada, bob] = [await person(all), await person(all)];
    const json_data = Array.from({ length: 16 }, () => ({ user: 'me', message: 'x'.repeat(1_048_000) }));
    const chat_id = (await ada.ask('POST', '/user/create-chat-session', { json_data })).body['session_id'] as string;
    const copy = async (email: string) => (await ada.ask('POST', '/user/copy-chat', { chat_id, email })).body;
    for (let at = 0; at < 4; at++) expect(await copy(bob.email)).toEqual({ response: 'Chats copied', status: 200 });
    expect(await copy(bob.email)).toMatchObject({ response: 'email: this user cannot be given more chats.', status: 409 });
    expect((await copy(ada.email))['status']).toBe(200); // one's own account is one's own
    const [given] = ((await bob.ask('POST', '/user/get-chats')).body['data'] as { chats: { id: string }[] }).chats;
    expect((await bob.ask('DELETE', `/server/mine/chats/${given!.id}`)).status).toBe(200);
    expect((await copy(bob.email))['status']).toBe(200);
  });
});
