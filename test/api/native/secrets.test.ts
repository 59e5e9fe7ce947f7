/* Secrets: kept, named, filled in, and never given back. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { sealer } from '#kit/crypto/sealing';
import { systemClock } from '#kit/async/clock';
import { audit } from '#resources/audit/store';
import { openSecrets } from '#resources/secrets/store';
import { openStore } from '#store/open';
import { migrations } from '../../../src/app/database.ts';
import { onBothDatabases } from '../../support/databases.ts';
import { proves } from '../../support/proves.ts';
import { person, visited } from './visitors.ts';

const long = 120_000;
const root = '/server/mine/secrets';
const value = 'sk-canary-4711';

onBothDatabases('secrets', ({ place }) => {
  test(
    proves(['server.get-secrets', 'K-16'], 'get-secrets gives the names of the own secrets, and nothing gives their values'),
    { timeout: long },
    async () => {
      const at = await place();
      const all = await visited(at);
      const [ada, bob] = [await person(all), await person(all)];
      const names = async (method = 'POST') => (await ada.ask(method, '/server/get-secrets')).body;
      expect(await names()).toEqual({ status: 200, response: [] });
      const made = await ada.ask('POST', root, { name: 'TOKEN', value });
      expect(made).toMatchObject({ status: 201, body: { name: 'TOKEN', owner: ada.id, right: 'owner' } });
      const id = made.body['id'] as number;
      await ada.ask('POST', root, { name: 'Another_1', value: 'x' });
      expect(await names()).toEqual({ status: 200, response: ['Another_1', 'TOKEN'] });
      expect(await names('GET')).toEqual(await names());
      expect((await bob.ask('POST', '/server/get-secrets')).body['response']).toEqual([]);
      for (const method of ['GET', 'PUT', 'DELETE'])
        expect([method, (await bob.ask(method, `${root}/${id}`, method === 'PUT' ? { name: 'T', value: 'v' } : undefined)).status]).toEqual([method, 404]);
      expect((await bob.ask('GET', `${root}?owner=${ada.id}`)).status).toBe(404);

      await ada.ask('PUT', `${root}/${id}/grants`, { items: [{ user: bob.id, right: 'admin' }] });
      const answers = [
        made,
        await ada.ask('GET', root),
        await ada.ask('GET', `${root}/${id}`),
        await ada.ask('PUT', `${root}/${id}`, { name: 'TOKEN', value: `${value}-new` }),
        await bob.ask('GET', root),
        await bob.ask('GET', `${root}/${id}`),
        await all.admin('GET', `${root}?owner=${ada.id}`),
        await all.admin('GET', '/server/admin/audit'),
      ];
      expect(answers.every(({ status }) => status < 300)).toBe(true);
      expect(JSON.stringify(answers)).not.toContain('canary');
      const trail = answers.at(-1)!.body['items'] as { action: string; target: { kind: string } }[];
      expect(trail.filter(({ target }) => target.kind === 'secret').map(({ action }) => action)).toEqual([
        'secret.change',
        'secret.share',
        'secret.create',
        'secret.create',
      ]);

      expect(await ada.ask('DELETE', `${root}/${id}`)).toMatchObject({ status: 200, body: { name: 'TOKEN' } });
      expect((await ada.ask('GET', `${root}/${id}`)).status).toBe(404);
      expect((await names())['response']).toEqual(['Another_1']);
      await all.server.close();
      expect(await filesWith(at.folder, 'canary')).toEqual([]);
    },
  );

  test('a shared secret is used by its grants, changed by editors, and deleted by its owner alone', { timeout: long }, async () => {
    const all = await visited(await place());
    const [ada, bob] = [await person(all), await person(all)];
    const id = (await ada.ask('POST', root, { name: 'TOKEN', value })).body['id'] as number;
    const one = `${root}/${id}`;
    await ada.ask('PUT', `${one}/grants`, { items: [{ user: bob.email, right: 'read' }] });
    expect((await bob.ask('GET', root)).body).toMatchObject({ items: [{ id, name: 'TOKEN', owner: ada.id, right: 'read' }] });
    expect([(await bob.ask('PUT', one, { name: 'T', value: 'v' })).status, (await bob.ask('GET', `${one}/grants`)).status]).toEqual([403, 403]);
    await ada.ask('PUT', `${one}/grants`, { items: [{ user: bob.email, right: 'edit' }] });
    expect(await bob.ask('PUT', one, { name: 'TOKEN', value: 'new' })).toMatchObject({ status: 200, body: { owner: ada.id, right: 'edit' } });
    expect((await bob.ask('DELETE', one)).status).toBe(403);
  });

  test('what is no secret is refused with 400 naming the field, and a name that is taken with 409', { timeout: long }, async () => {
    const all = await visited(await place());
    const ada = await person(all);
    for (const [body, field] of [
      [{}, 'name'],
      [{ name: '', value }, 'name'],
      [{ name: '1A', value }, 'name'],
      [{ name: 'A-B', value }, 'name'],
      [{ name: '__proto__', value }, 'name'],
      [{ name: 'n'.repeat(65), value }, 'name'],
      [{ name: 'A' }, 'value'],
      [{ name: 'A', value: '' }, 'value'],
      [{ name: 'A', value: 'a\0b' }, 'value'],
      [{ name: 'A', value: 'v'.repeat(65_537) }, 'value'],
      [{ name: 'A', value: 7 }, 'value'],
      [{ name: 'A', value, owner: 7 }, 'owner'],
    ] as const) {
      const { status, body: answer } = await ada.ask('POST', root, body);
      expect([body, status, answer['error']]).toEqual([body, 400, expect.stringMatching(new RegExp(`^${field} `))]);
    }
    const made = await Promise.all(Array.from({ length: 10 }, () => ada.ask('POST', root, { name: 'A', value })));
    expect(made.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, ...Array<number>(9).fill(409)]);
    const other = (await ada.ask('POST', root, { name: 'B', value })).body['id'] as number;
    expect((await ada.ask('PUT', `${root}/${other}`, { name: 'A', value })).status).toBe(409);
    expect((await ada.ask('GET', root)).body['items']).toHaveLength(2);
  });

  test('a member of a team has its secrets filled in, an own one of the same name first, and nobody else has', { timeout: long }, async () => {
    const store = await openStore({ migrations, clock: systemClock, ...(await place()) });
    try {
      const seal = sealer(randomBytes(32));
      const { rows } = await sql<{ id: number }>`
        insert into users (email, plan, role) values ('a@x.org', 'free', 'user'), ('b@x.org', 'free', 'user'), ('c@x.org', 'free', 'user') returning id`.execute(
        store.db,
      );
      const [ada, bob, eve] = rows.map(({ id }) => id) as [number, number, number];
      const team = (await sql<{ id: number }>`insert into teams (name, plan) values ('t', 'free') returning id`.execute(store.db)).rows[0]!.id;
      await sql`insert into team_members (team_id, user_id) values (${team}, ${bob})`.execute(store.db);
      const secrets = openSecrets({ store, seal, audit });
      const by = { userId: ada, keyId: 0, requestId: null, address: null };
      const { id } = await secrets.add(ada, { name: 'T', value: 'of $& {{secret.U}} ada' }, by);
      await secrets.add(ada, { name: 'U', value: 'inner' }, by);
      await sql`insert into grants (kind, thing_id, team_id, level) values ('secret', ${id}, ${team}, 1)`.execute(store.db);
      expect(await secrets.resolve(ada, 'Bearer {{secret.T}}/{{secret.U}}')).toBe('Bearer of $& {{secret.U}} ada/inner');
      expect(await secrets.resolve(bob, 'Bearer {{secret.T}}')).toBe('Bearer of $& {{secret.U}} ada');
      await expect(secrets.resolve(eve, '{{secret.T}}')).rejects.toMatchObject({ code: 'invalid', message: expect.stringContaining('no secret T') as string });
      await expect(secrets.resolve(bob, '{{secret.U}}')).rejects.toMatchObject({ code: 'invalid' });
      expect(await secrets.resolve(ada, '{{ secret.U }}{{secret.U  }}')).toBe('innerinner');
      await expect(secrets.resolve(eve, '{{ secret.T }}')).rejects.toMatchObject({ code: 'invalid' });
      expect(await secrets.resolve(eve, '{{secret.}} {{secret .T}} {secret.T}')).toBe('{{secret.}} {{secret .T}} {secret.T}');
      await sql`insert into grants (kind, thing_id, everybody, level) values ('secret', ${(await secrets.add(eve, { name: 'V', value: 'for everybody' }, by)).id}, true, 1)`.execute(
        store.db,
      );
      expect(await secrets.resolve(bob, '{{secret.V}}')).toBe('for everybody');
      const teams = await secrets.add(ada, { name: 'V', value: 'for the team' }, by);
      await sql`insert into grants (kind, thing_id, team_id, level) values ('secret', ${teams.id}, ${team}, 1)`.execute(store.db);
      expect(await secrets.resolve(bob, '{{secret.V}}')).toBe('for the team');
      await secrets.add(bob, { name: 'T', value: 'own' }, by);
      expect(await secrets.resolve(bob, '{{secret.T}}')).toBe('own');
      await sql`delete from team_members`.execute(store.db);
      await sql`update secret set owner_id = ${eve} where owner_id = ${bob}`.execute(store.db);
      await expect(secrets.resolve(bob, '{{secret.T}}')).rejects.toMatchObject({ code: 'invalid' });
      await expect(secrets.resolve(eve, '{{secret.T}}')).rejects.toThrow('does not open'); // sealed for its owner
    } finally {
      await store.close();
    }
  });
});

/** The files below a folder that hold a text. */
async function filesWith(folder: string, text: string): Promise<readonly string[]> {
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const found = await Promise.all(files.map(async ({ parentPath, name }) => ((await readFile(join(parentPath, name))).includes(text) ? [name] : [])));
  return found.flat();
}
