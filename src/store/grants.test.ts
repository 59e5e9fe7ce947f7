import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { allows, forgetGrants, grantsOf, grantTo, includes, levelOf, readableFiles, rightOf, setGrants, takeFrom, type Grant, type Right } from '#store/grants';
import type { Store } from '#store/open';
import { onBothDatabases } from '../../test/support/databases.ts';

const folder = (noun: string) => new URL(`../resources/${noun}/`, import.meta.url);
const rights: readonly Right[] = ['read', 'edit', 'admin'];
/** Numbers from 0 to before `most`, the same in each run. */
const drawn = (seed: number) => (most: number) => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % most;

onBothDatabases('grants', ({ shared }) => {
  const store = shared({ migrations: ['users', 'teams', 'datasets'].map(folder) });

  test('to users, teams and everybody: of 300 random ones none lets in anybody else, nor keeps anybody out', async () => {
    const random = drawn(17);
    const users = await inserted(
      store(),
      sql`insert into users (email, plan) select 'u' || n || '@a.test', 'unlimited' from generate_series(1, 12) n returning id`,
    );
    const teams = await inserted(store(), sql`insert into teams (name, plan) select 't' || n, 'unlimited' from generate_series(1, 4) n returning id`);
    const readers = users.map((userId) => ({ userId, teamIds: teams.filter(() => random(3) === 0) }));
    const things = await store().transaction(async (inside) => {
      const made = [];
      for (let at = 0; at < 30; at++) {
        const owner = users[random(users.length)]!;
        const [dataset] = await inserted(
          inside,
          sql`insert into datasets (owner_id, name, full_name, embedding_model) values (${owner}, ${`d${at}`}, ${`d${at}`}, 'm') returning id`,
        );
        const files = await inserted(
          inside,
          sql`
          insert into dataset_files (dataset_id, filename, narrowed) select ${dataset}::bigint, 'f' || n, n > 1 from generate_series(1, 2) n returning id`,
        );
        const draw = (): Grant => {
          const right = rights[random(3)]!;
          const to = random(8);
          return to < 5 ? { user: users[random(users.length)]!, right } : to < 7 ? { team: teams[random(4)]!, right } : { everybody: true, right };
        };
        const grants = Array.from({ length: 6 }, draw);
        const ofFile = Array.from({ length: random(4) }, draw);
        await setGrants(inside, 'dataset', dataset!, grants);
        await setGrants(inside, 'file', files[1]!, ofFile);
        made.push({ dataset: dataset!, owner, files, grants, ofFile });
      }
      return made;
    });

    const does = (grants: readonly Grant[], right: Right, { userId, teamIds }: (typeof readers)[number]) =>
      grants.some((one) => includes(one.right, right) && (one.everybody === true || one.user === userId || teamIds.includes(one.team ?? 0)));
    for (const reader of readers)
      for (const right of rights) {
        const columns = { id: sql.ref('datasets.id'), owner: sql.ref('datasets.owner_id') };
        const datasets = await inserted(store(), sql`select id from datasets where ${allows('dataset', right, reader, columns)} order by id`);
        expect(datasets).toEqual(things.filter(({ owner, grants }) => owner === reader.userId || does(grants, right, reader)).map(({ dataset }) => dataset));
        const files = await inserted(
          store(),
          sql`select dataset_files.id from dataset_files join datasets on datasets.id = dataset_id where ${readableFiles(reader, right)} order by 1`,
        );
        const seen = things.flatMap(({ owner, files: [open, narrowed], grants, ofFile }) => {
          if (owner === reader.userId || does(grants, 'admin', reader)) return [open!, narrowed!];
          return does(grants, right, reader) ? [open!, ...(does(ofFile, right, reader) ? [narrowed!] : [])] : [];
        });
        expect(files).toEqual(seen);
      }
  });

  test('are changed one by one and all together, and shown without users and teams that are gone', async () => {
    const [one, other] = await inserted(store(), sql`insert into users (email, plan) values ('one@b.test', 'p'), ('other@b.test', 'p') returning id`);
    const [team] = await inserted(store(), sql`insert into teams (name, plan) values ('b', 'p') returning id`);
    await store().transaction((inside) => setGrants(inside, 'persona', 7, [{ user: one!, right: 'read' }, { user: one!, right: 'edit' }, { team: team!, right: 'read' }, { everybody: true, right: 'read' }])); // prettier-ignore
    expect(await grantsOf(store(), 'persona', 7)).toEqual([
      { user: one, right: 'edit' },
      { team, right: 'read' },
      { everybody: true, right: 'read' },
    ]);
    await grantTo(store(), 'persona', 7, other!, 'read');
    await grantTo(store(), 'persona', 7, other!, 'admin');
    expect(await takeFrom(store(), 'persona', 7, one!)).toBe(true);
    expect(await takeFrom(store(), 'persona', 7, one!)).toBe(false);
    await sql`delete from teams where id = ${team}`.execute(store().db);
    expect(await grantsOf(store(), 'persona', 7)).toEqual([
      { user: other, right: 'admin' },
      { everybody: true, right: 'read' },
    ]);
    await forgetGrants(store(), 'persona', [7]);
    expect(await grantsOf(store(), 'persona', 7)).toEqual([]);
  });

  test('say which right somebody has', async () => {
    const [owner, reader, nobody] = await inserted(
      store(),
      sql`insert into users (email, plan) values ('o@c.test', 'p'), ('r@c.test', 'p'), ('n@c.test', 'p') returning id`,
    );
    const [dataset] = await inserted(
      store(),
      sql`insert into datasets (owner_id, name, full_name, embedding_model) values (${owner}, 'c', 'c', 'm') returning id`,
    );
    await grantTo(store(), 'dataset', dataset!, reader!, 'edit');
    const right = async (userId: number) => {
      const level = levelOf('dataset', { userId, teamIds: [] }, { id: sql.ref('datasets.id'), owner: sql.ref('datasets.owner_id') });
      const { rows } = await sql<{ level: number | null }>`select ${level} as level from datasets where id = ${dataset}`.execute(store().db);
      return rows[0]!.level === null ? null : rightOf(rows[0]!.level);
    };
    expect([await right(owner!), await right(reader!), await right(nobody!)]).toEqual(['owner', 'edit', null]);
  });
});

async function inserted({ db }: Pick<Store, 'db'>, statement: ReturnType<typeof sql>): Promise<number[]> {
  const { rows } = await statement.execute(db);
  return rows.map((row) => (row as { readonly id: number }).id);
}
