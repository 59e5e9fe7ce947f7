/* Datasets and who may use them, in the words of the native interface. */
import { expect, test } from 'vitest';
import { onBothDatabases } from '../../support/databases.ts';
import { proves } from '../../support/proves.ts';
import { person, visitedTogether } from '../native/visitors.ts';
import { idOf, newDataset, twoPeopleOf } from './people.ts';

const long = 120_000;
const ok = { status: 200, body: { response: 'OK', status: 200 } };

onBothDatabases('datasets', (database) => {
  const together = visitedTogether(database);

  test(
    proves(
      ['user.add-dataset', 'user.delete-datasets', 'server.get-datasets', 'server.delete-dataset', 'user.get-datasets-with-permissions'],
      'are made, listed and deleted by their full names, at each of the three addresses',
    ),
    { timeout: long },
    async () => {
      const { ada, bob } = await twoPeopleOf(together());
      const made = await ada.ask('POST', '/user/add-dataset', { dataset: 'Reports', classification: 'nonsense', colour: 'unknown' });
      const name = `user_custom_${ada.id}_Reports_content`;
      expect(made).toMatchObject({ status: 200, body: { response: 'OK', status: 200, dataset: name } });
      const more = [await newDataset(ada, 'second one'), await newDataset(ada, 'third one'), await newDataset(ada, 'Circuits')];
      expect((await ada.ask('GET', '/server/get-datasets')).body).toEqual({ response: [name, ...more], status: 200 });
      expect((await bob.ask('POST', '/server/get-datasets')).body).toEqual({ response: [], status: 200 });
      expect((await ada.ask('POST', '/user/get-datasets-with-permissions', {})).body['response']).toEqual(
        [name, ...more].map((dataset) => ({
          dataset,
          classification: /cui/i.test(dataset) ? 'CUI' : 'Unclassified',
          permissions: 'owner',
          is_tabular: false,
        })),
      );
      expect((await ada.ask('POST', '/server/get-dataset-info', { dataset: name })).body['response']).toEqual({
        id: expect.any(Number) as number,
        name,
        classification: 'Unclassified',
        is_tabular: false,
      });
      expect((await bob.ask('POST', '/server/get-dataset-info', { dataset: name })).status).toBe(404);
      for (const path of ['/user/delete-dataset', '/user/delete-datasets'])
        expect([path, (await bob.ask('POST', path, { dataset: name })).status]).toEqual([path, 404]);
      expect(await ada.ask('POST', '/user/delete-dataset', { dataset: more[0] })).toMatchObject(ok);
      expect(await ada.ask('POST', '/user/delete-datasets', { datasets: [more[1], more[2]] })).toMatchObject(ok);
      expect(await ada.ask('DELETE', `/server/dataset?dataset=${encodeURIComponent(name)}`)).toMatchObject(ok);
      expect((await ada.ask('DELETE', '/server/dataset', { dataset: name })).status).toBe(404);
      expect((await ada.ask('POST', '/server/get-datasets')).body['response']).toEqual([]);
      expect(await newDataset(ada, 'Reports')).toBe(name); // the name is free again
    },
  );

  test('names that are malformed, reserved or taken are refused and name the field; nothing is made', { timeout: long }, async () => {
    const { ada } = await twoPeopleOf(together());
    await newDataset(ada, 'taken');
    const wrong: [body: object, status: number][] = [
      [{}, 400],
      [{ dataset: 'abc' }, 400],
      [{ dataset: '    abc    ' }, 400],
      [{ dataset: 'x'.repeat(100) }, 400],
      [{ dataset: 'none' }, 400],
      [{ dataset: 'None' }, 400],
      [{ dataset: 'undefined' }, 400],
      [{ dataset: 'all' }, 400],
      [{ dataset: 'a\u0000bcd' }, 400],
      [{ dataset: 'new\nline' }, 400],
      [{ dataset: 'turned\u202Eround' }, 400],
      [{ dataset: 7 }, 400],
      [{ dataset: ['list'] }, 400],
      [{ dataset: 'fine', is_tabular: 'perhaps' }, 400],
      [{ dataset: 'taken' }, 409],
      [{ dataset: ' taken ' }, 409],
    ];
    for (const [body, status] of wrong) {
      const answer = await ada.ask('POST', '/user/add-dataset', body);
      expect([body, answer.status, answer.body['status']]).toEqual([body, status, status]);
      if (status === 400) expect(answer.body['response']).toMatch(/dataset|is_tabular/);
      if (status === 409) expect(answer.body['response']).toBe('You already have a dataset with this name: choose another dataset.');
    }
    for (const name of ['../../etc', 'C:\\CON', '<img onerror=x>', "o'; drop table datasets", '数据集数据集', 'x'.repeat(99), '$1 \\x00 %2e'])
      expect(await newDataset(ada, name)).toBe(`user_custom_${ada.id}_${name}_content`);
    expect((await ada.ask('POST', '/server/get-datasets')).body['response']).toHaveLength(8);
    for (const body of [{}, { dataset: [] }, { dataset: '' }, { datasets: [{}] }, { dataset: 'unknown' }]) {
      const { status } = await ada.ask('POST', '/user/delete-datasets', body);
      expect([body, status]).toEqual([body, 'dataset' in body && body.dataset === 'unknown' ? 404 : 400]);
    }
    const mixed = [`user_custom_${ada.id}_taken_content`, 'user_custom_1_nothing_content'];
    expect((await ada.ask('POST', '/user/delete-datasets', { datasets: mixed })).status).toBe(404);
    expect((await ada.ask('POST', '/server/get-datasets')).body['response']).toHaveLength(8); // all or none
  });

  test(
    proves(
      ['user.deassign-dataset', 'user.update-permission-dataset'],
      'are shared, with another right, and taken away; each right ends where the next begins',
    ),
    { timeout: long },
    async () => {
      const { all, ada, bob } = await twoPeopleOf(together());
      const eve = await person(all);
      const name = await newDataset(ada, 'shared');
      const rightOf = async ({ ask }: typeof bob) =>
        ((await ask('POST', '/user/get-datasets-with-permissions')).body['response'] as { permissions: string }[]).map(({ permissions }) => permissions);
      const assign = (who: typeof bob, email: string, permissions?: string, path = 'assign-dataset') =>
        who.ask('POST', `/user/${path}`, { dataset: name, email, ...(permissions === undefined ? {} : { permissions }) });

      expect((await assign(bob, bob.email)).status).toBe(404); // to whom it is not shared it is not there
      expect(await assign(ada, 'nobody@example.org')).toMatchObject({ status: 404, body: { response: 'No account.' } });
      expect((await assign(ada, ada.email)).status).toBe(409);
      expect(await assign(ada, bob.email.toUpperCase())).toMatchObject(ok);
      expect((await assign(ada, bob.email)).status).toBe(409);
      expect(await rightOf(bob)).toEqual(['read']);
      expect((await assign(bob, eve.email)).status).toBe(403);
      expect((await bob.ask('POST', '/server/delete-filename-from-dataset', { dataset: name, filename: 'x' })).status).toBe(403);
      expect((await bob.ask('DELETE', '/server/dataset', { dataset: name })).status).toBe(403);

      for (const [word, right] of [
        ['write', 'edit'],
        ['edit', 'edit'],
        ['anything', 'read'],
        ['admin', 'admin'],
      ] as const) {
        expect(await assign(ada, bob.email, word, 'update-permission-dataset')).toMatchObject(ok);
        expect(await rightOf(bob)).toEqual([right]);
      }
      expect(await assign(ada, bob.email, undefined, 'update-permission-dataset')).toMatchObject(ok); // without a word it is to read
      expect(await rightOf(bob)).toEqual(['read']);
      expect(await ada.ask('POST', '/user/update-permission-dataset', { dataset: name, email: bob.email, permissions: null })).toMatchObject(ok);
      expect(await assign(ada, bob.email, 'admin', 'update-permission-dataset')).toMatchObject(ok);
      expect((await bob.ask('DELETE', '/server/dataset', { dataset: name })).status).toBe(403); // only the owner deletes
      expect(await assign(bob, eve.email, 'read')).toMatchObject(ok);
      expect((await bob.ask('POST', '/user/deassign-dataset', { dataset: name, email: ada.email })).body['response']).toBe('Cannot remove dataset owner.');
      expect((await eve.ask('POST', '/user/deassign-dataset', { dataset: name, email: bob.email })).status).toBe(403);
      expect(await eve.ask('POST', '/user/deassign-dataset', { dataset: name })).toMatchObject(ok); // whoever likes may leave
      expect((await eve.ask('POST', '/user/deassign-dataset', { dataset: name })).status).toBe(404);
      expect(await ada.ask('POST', '/user/deassign-dataset', { dataset: name, email: bob.email })).toMatchObject(ok);
      expect((await ada.ask('POST', '/user/deassign-dataset', { dataset: name, email: bob.email })).status).toBe(404);
      expect(await rightOf(bob)).toEqual([]);
      const { body: trail } = await all.admin('GET', '/server/admin/audit?action=dataset.share');
      expect(JSON.stringify(trail['items'])).toContain(`user:${bob.id} admin`);
    },
  );

  test('are found by their name, and files by theirs, in whichever form of Unicode it is written', { timeout: long }, async () => {
    const { ada } = await twoPeopleOf(together());
    const forms = ['caf\u00E9s', 'cafe\u0301s'] as const;
    for (const [made, other] of [forms, [forms[1], forms[0]]] as const) {
      const name = await newDataset(ada, made);
      expect(name).toContain(made);
      const otherName = name.replace(made, other);
      expect((await ada.ask('POST', '/user/add-dataset', { dataset: other })).status).toBe(409);
      expect((await ada.ask('POST', '/server/get-dataset-info', { dataset: otherName })).body['response']).toMatchObject({ name });
      const third = (await ada.ask('POST', '/server/mine/datasets', { name: 'third' })).body['id'] as number;
      expect((await ada.ask('PUT', `/server/mine/datasets/${third}`, { name: other })).status).toBe(409);
      expect((await ada.ask('DELETE', `/server/mine/datasets/${third}`)).status).toBe(200);
      const trained = { data: ['The mill is old.'], dataset: otherName, filename: `${made}.json` };
      expect((await ada.ask('POST', '/server/train-with-array', trained)).status).toBe(200);
      expect(await ada.ask('POST', '/server/query', { message: 'Is the mill old?', dataset: otherName })).toMatchObject({
        status: 200,
        body: { citations: [{ dataset: name, filename: `${made}.json` }] },
      });
      expect((await ada.ask('POST', '/server/get-dataset-results', { message: 'Is the mill old?', dataset: otherName })).body).toMatchObject({ count: 1 });
      expect((await ada.ask('POST', '/server/delete-filename-from-dataset', { dataset: otherName, filename: `${other}.json` })).status).toBe(200);
      expect((await ada.ask('DELETE', '/server/dataset', { dataset: otherName })).status).toBe(200);
    }
  });

  test('with a name of many marks are looked for at once', { timeout: long }, async () => {
    const { ada } = await twoPeopleOf(together());
    const name = `a${'\u0301'.repeat(30_000)}${'\u0323'.repeat(30_000)}`;
    const began = performance.now();
    expect((await ada.ask('POST', '/server/get-dataset-results', { message: name, dataset: [name, `${name}b`] })).status).toBe(404);
    expect(performance.now() - began).toBeLessThan(5000); // to put the marks in order takes seven seconds for each
  });

  test('of somebody who is deleted are nobody’s any more', { timeout: long }, async () => {
    const { all, ada, bob } = await twoPeopleOf(together());
    const name = await newDataset(ada, 'left behind');
    await ada.ask('POST', '/user/assign-dataset', { dataset: name, email: bob.email });
    expect((await all.admin('DELETE', `/server/admin/users/${ada.id}`)).status).toBe(200);
    await expect.poll(async () => (await bob.ask('POST', '/server/get-datasets')).body['response'], { timeout: 30_000 }).toEqual([]);
  });
});

onBothDatabases('datasets as plain REST', (database) => {
  const together = visitedTogether(database);

  test('are made, read, changed, shared and deleted', { timeout: long }, async () => {
    const { all, ada, bob } = await twoPeopleOf(together());
    const root = '/server/mine/datasets';
    const made = await ada.ask('POST', root, { name: 'Notes', isTabular: true });
    expect(made).toMatchObject({
      status: 201,
      body: {
        name: 'Notes',
        dataset: `user_custom_${ada.id}_Notes_content`,
        owner: ada.id,
        right: 'owner',
        classification: 'Unclassified',
        isTabular: true,
        files: 0,
        passages: 0,
        bytes: 0,
        embedding: { model: 'built-in-embedding', dimensions: null, building: null },
      },
    });
    const one = `${root}/${String(made.body['id'])}`;
    expect((await ada.ask('GET', one)).body).toEqual(made.body);
    expect((await ada.ask('PUT', one, { name: 'Notes cui' })).body).toMatchObject({ name: 'Notes cui', classification: 'CUI', isTabular: true });
    expect((await ada.ask('PUT', one, { name: 'Notes', classification: 'Unclassified' })).body).toMatchObject({ classification: 'Unclassified' });
    for (const body of [{}, { name: 'abc' }, { name: 'good', colour: 1 }, { name: 'good', classification: 'Secret' }, { name: 'good', embedding: 'gpt-none' }])
      expect([body, (await ada.ask('POST', root, body)).status]).toEqual([body, 400]);
    expect((await ada.ask('POST', root, { name: 'Notes' })).status).toBe(409);

    for (const [method, path, body] of [
      ['GET', one, undefined],
      ['PUT', one, { name: 'Mine now' }],
      ['DELETE', one, undefined],
      ['GET', `${one}/grants`, undefined],
      ['PUT', `${one}/grants`, { items: [{ everybody: true, right: 'read' }] }],
      ['GET', `${one}?owner=${ada.id}`, undefined],
    ] as const)
      expect([method, path, (await bob.ask(method, path, body)).status]).toEqual([method, path, 404]);

    for (const [items, field] of [
      [[{ right: 'read' }], 'items[0]'],
      [[{ user: bob.id, everybody: true, right: 'read' }], 'items[0]'],
      [[{ user: 999_999, right: 'read' }], 'items[0].user'],
      [
        [
          { user: bob.id, right: 'read' },
          { team: 999_999, right: 'read' },
        ],
        'items[1].team',
      ],
    ] as const)
      expect((await ada.ask('PUT', `${one}/grants`, { items })).body['message']).toContain(field);
    expect((await ada.ask('GET', `${one}/grants`)).body).toEqual({ items: [] });
    const granted = await ada.ask('PUT', `${one}/grants`, { items: [{ user: bob.email, right: 'edit' }] });
    expect(granted.body).toEqual({ items: [{ user: bob.id, right: 'edit' }] });
    expect((await bob.ask('GET', root)).body['items']).toMatchObject([{ id: made.body['id'], right: 'edit' }]);
    expect((await bob.ask('PUT', one, { name: 'By Bob' })).body).toMatchObject({ dataset: `user_custom_${ada.id}_By Bob_content`, right: 'edit' });
    expect((await bob.ask('PUT', `${one}/grants`, { items: [] })).status).toBe(403);
    expect((await bob.ask('DELETE', one)).status).toBe(403);

    const { body: team } = await all.admin('POST', '/server/admin/teams', { name: 'readers', plan: 'unlimited', members: [bob.id] });
    await ada.ask('PUT', `${one}/grants`, { items: [{ team: team['id'], right: 'read' }] });
    expect((await bob.ask('GET', one)).body).toMatchObject({ right: 'read' });
    await all.admin('PATCH', `/server/admin/teams/${String(team['id'])}`, { members: [] });
    await expect.poll(async () => (await bob.ask('GET', one)).status).toBe(404);

    expect((await all.admin('GET', `${one}?owner=${ada.id}`)).body).toMatchObject({ owner: ada.id, right: 'owner' });
    expect((await all.admin('GET', one)).status).toBe(404);
    expect(await ada.ask('DELETE', one)).toMatchObject({ status: 200, body: { name: 'By Bob' } });
    expect((await ada.ask('GET', one)).status).toBe(404);
  });

  test('a thousand are listed page by page, each once', { timeout: 240_000 }, async () => {
    const { ada, bob } = await twoPeopleOf(together());
    const names = Array.from({ length: 1000 }, (_, at) => `dataset ${at}`);
    for (let at = 0; at < names.length; at += 50) await Promise.all(names.slice(at, at + 50).map((name) => newDataset(ada, name)));
    const seen: string[] = [];
    for (let cursor = ''; ;) {
      const { body } = await ada.ask('GET', `/server/mine/datasets?limit=200${cursor}`);
      seen.push(...(body['items'] as { name: string }[]).map(({ name }) => name));
      if (body['nextCursor'] === null) break;
      cursor = `&cursor=${body['nextCursor'] as string}`;
    }
    expect(seen.toSorted()).toEqual(names.toSorted());
    expect((await ada.ask('POST', '/server/get-datasets')).body['response']).toHaveLength(1000);
    expect(await idOf(ada, `user_custom_${ada.id}_dataset 999_content`)).toBeGreaterThan(0);
    expect((await bob.ask('POST', '/server/get-datasets')).body['response']).toEqual([]);
  });
});
