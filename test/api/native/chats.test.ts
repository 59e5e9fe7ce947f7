/* Chats: in the words of the native interface, and as plain REST. */
import { expect, test } from 'vitest';
import { onBothDatabases } from '../../support/databases.ts';
import { proves } from '../../support/proves.ts';
import { person, visited } from './visitors.ts';

const long = 60_000;
const nobodys = '11111111-2222-4333-8444-555555555555';
const asUuid = expect.stringMatching(/^[0-9a-f-]{36}$/) as string;

onBothDatabases('chats', ({ place }) => {
  test(
    proves(
      ['user.get-chats', 'user.get-chat-session', 'user.delete-chat-session', 'service.user-root'],
      'are made, listed without any field, shown and deleted, each in a JSON text and as an object beside it',
    ),
    { timeout: long },
    async () => {
      const all = await visited(await place());
      const [ada, bob] = [await person(all), await person(all)];
      const empty = { chats: [], buttons: [] };
      expect((await ada.ask('POST', '/user/get-chats')).body).toEqual({ response: JSON.stringify(empty), data: empty, status: 200 });
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
    const all = await visited(await place());
    const ada = await person(all);
    for (const [path, body, says] of [
      ['get-chat-session', {}, 'session_id is required'],
      ['get-chat-session', { session_id: 'x' }, 'session_id must be a UUID'],
      ['delete-chat-session', { session_id: 7 }, 'session_id must'],
      ['create-chat-session', { title: 't'.repeat(51) }, 'title must'],
      ['create-chat-session', { json_data: [{ user: 'me' }] }, 'json_data\\[0\\].message is required'],
      ['create-chat-session', { json_data: [{ user: 'me', message: 'a\0b' }] }, 'json_data\\[0\\].message must'],
      ['append-chat', { chat_title: 'x' }, 'chats is required'],
      ['append-chat', { chats: [{ user: 'me', message: 'x' }] }, 'chat_title is required'],
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
    const all = await visited(await place());
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
});
