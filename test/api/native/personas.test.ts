/* Personas: the built-in ones, and those that users make. */
import { expect, test } from 'vitest';
import { onBothDatabases } from '../../support/databases.ts';
import { proves } from '../../support/proves.ts';
import { person, visited, visitedTogether } from './visitors.ts';

const long = 120_000;
const pirate = { name: 'Pirate', description: 'Talks like one.', prompt: 'You are a pirate.\nArr.' };

onBothDatabases('personas', (database) => {
  const { place } = database;
  const together = visitedTogether(database);

  test(
    proves('server.get-personas', 'POST /server/get-personas lists twelve built-in personas without a body, the first the default, and then the own ones'),
    { timeout: long },
    async () => {
      const all = await visited(await place());
      const [ada, bob] = [await person(all), await person(all)];
      const list = async (method = 'POST') => (await ada.ask(method, '/server/get-personas')).body;
      const builtIn = await list();
      expect(builtIn).toEqual({
        status: 200,
        response: Array.from({ length: 12 }, (_, at) => ({ id: at + 1, name: expect.any(String) as string, description: expect.any(String) as string })),
      });
      expect(await list('GET')).toEqual(builtIn);

      const made = await ada.ask('POST', '/server/mine/personas', pirate);
      const id = made.body['id'] as number;
      expect(made).toMatchObject({ status: 201, body: { ...pirate, id: 13, owner: ada.id, right: 'owner' } });
      expect(((await list())['response'] as unknown[])[12]).toEqual({ ...pirate, id });
      expect((await bob.ask('POST', '/server/get-personas')).body['response']).toHaveLength(12);

      expect((await ada.ask('GET', `/server/mine/personas/${id}`)).body).toEqual(made.body);
      const changed = await ada.ask('PUT', `/server/mine/personas/${id}`, { name: 'Sailor', prompt: 'Ahoy.' });
      expect(changed).toMatchObject({ status: 200, body: { id, name: 'Sailor', description: '', prompt: 'Ahoy.' } });
      expect((await ada.ask('GET', '/server/mine/personas')).body).toEqual({ items: [changed.body], nextCursor: null });
      for (const [method, body] of [
        ['GET', undefined],
        ['PUT', pirate],
        ['DELETE', undefined],
      ] as const)
        expect([method, (await bob.ask(method, `/server/mine/personas/${id}`, body)).status]).toEqual([method, 404]);
      expect((await all.admin('GET', `/server/mine/personas?owner=${ada.id}`)).body).toEqual({ items: [changed.body], nextCursor: null });
      expect((await bob.ask('GET', `/server/mine/personas?owner=${ada.id}`)).status).toBe(404);

      expect(await ada.ask('DELETE', `/server/mine/personas/${id}`)).toMatchObject({ status: 200, body: changed.body });
      expect((await ada.ask('GET', `/server/mine/personas/${id}`)).status).toBe(404);
      expect(await list()).toEqual(builtIn);
    },
  );

  test('a shared persona is used, changed or shared on as its grants say, and deleted by its owner alone', { timeout: long }, async () => {
    const all = together();
    const [ada, bob] = [await person(all), await person(all)];
    const id = (await ada.ask('POST', '/server/mine/personas', { ...pirate, prompt: 'Always say exactly: ahoy' })).body['id'] as number;
    const root = `/server/mine/personas/${id}`;
    const answer = async () => {
      const { status, body } = await bob.ask('POST', '/server/query', { message: 'What about the weather in Nuuk?', persona: id });
      return [status, status === 200 ? body['message'] : body['error']];
    };
    const share = (right: string) => ada.ask('PUT', `${root}/grants`, { items: [{ user: bob.email, right }] });
    expect(await answer()).toEqual([404, 'There is no such persona.']);
    expect(await share('read')).toMatchObject({ status: 200, body: { items: [{ user: bob.id, right: 'read' }] } });
    expect(await answer()).toEqual([200, 'ahoy']);
    const listed = (await bob.ask('POST', '/server/get-personas')).body['response'] as object[];
    expect(listed[12]).toEqual({ id, name: pirate.name, description: pirate.description });
    expect((await bob.ask('GET', root)).body).toMatchObject({ id, owner: ada.id, right: 'read' });
    expect([(await bob.ask('PUT', root, pirate)).status, (await bob.ask('GET', `${root}/grants`)).status]).toEqual([403, 403]);
    await share('edit');
    expect((await bob.ask('PUT', root, { ...pirate, prompt: 'Always say exactly: land' })).body).toMatchObject({ right: 'edit', owner: ada.id });
    expect(await answer()).toEqual([200, 'land']);
    await share('admin');
    expect((await bob.ask('GET', `${root}/grants`)).body).toEqual({ items: [{ user: bob.id, right: 'admin' }] });
    expect((await bob.ask('DELETE', root)).status).toBe(403);
    await ada.ask('PUT', `${root}/grants`, { items: [] });
    expect(await answer()).toEqual([404, 'There is no such persona.']);
    expect((await bob.ask('GET', `${root}/grants`)).status).toBe(404);
  });

  test('the list of personas comes in pages, and built-in ones are nobody’s to change', { timeout: long }, async () => {
    const all = together();
    const ada = await person(all);
    for (const name of ['a', 'b', 'c']) await ada.ask('POST', '/server/mine/personas', { ...pirate, name });
    const first = (await ada.ask('GET', '/server/mine/personas?limit=2')).body as { items: { name: string }[]; nextCursor: string };
    expect(first.items.map(({ name }) => name)).toEqual(['a', 'b']);
    const rest = (await ada.ask('GET', `/server/mine/personas?limit=2&cursor=${first.nextCursor}`)).body;
    expect(rest).toMatchObject({ items: [{ name: 'c' }], nextCursor: null });
    expect((await ada.ask('PUT', '/server/mine/personas/1', pirate)).status).toBe(404);
    expect((await ada.ask('GET', '/server/mine/personas/13x')).status).toBe(404);
  });

  test('what is no persona is refused with 400 naming the field', { timeout: long }, async () => {
    const all = together();
    const ada = await person(all);
    for (const [body, field] of [
      [{}, 'name'],
      [{ ...pirate, name: '' }, 'name'],
      [{ ...pirate, name: 'a\nb' }, 'name'],
      [{ ...pirate, name: 'n'.repeat(101) }, 'name'],
      [{ ...pirate, prompt: '' }, 'prompt'],
      [{ ...pirate, prompt: 'a\0b' }, 'prompt'],
      [{ ...pirate, prompt: 'p'.repeat(100_001) }, 'prompt'],
      [{ ...pirate, description: 7 }, 'description'],
      [{ ...pirate, id: 7 }, 'id'],
    ] as const) {
      const { status, body: answer } = await ada.ask('POST', '/server/mine/personas', body);
      expect([body, status, answer['error']]).toEqual([body, 400, expect.stringMatching(new RegExp(`^${field} `))]);
    }
    expect((await ada.ask('GET', '/server/mine/personas')).body).toEqual({ items: [], nextCursor: null });
  });
});
