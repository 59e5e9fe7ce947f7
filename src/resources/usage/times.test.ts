import { expect, test } from 'vitest';
import { sql } from 'kysely';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { quantiles, quantilesReader, texts, type Quantiles } from './times.ts';

const entry = (bucket: number, many: number) => many * 256 + bucket;

test('nothing has no quantiles', async () => {
  expect(await quantilesReader()('')).toEqual({ half: null, most: null });
});

test('one reader reads one histogram after the other', async () => {
  const read = quantilesReader();
  const slow = await read(`${entry(200, 3)}`);
  expect(await read(`${entry(8, 1)}`)).not.toEqual(slow);
  expect(await read(`${entry(200, 1)},${entry(200, 1)}`)).toEqual(slow);
});

test('long histograms are read in several turns, whole', { timeout: 60_000 }, async () => {
  const pieces = Array.from({ length: 400_000 }, (_, at) => entry(40 + (at % 100), 1 + (at % 5)));
  const rare = Array.from({ length: 60_000 }, () => entry(230, 1));
  let turns = 0;
  const tick = setInterval(() => turns++, 0);
  const read = quantilesReader();
  const both = [await read([...pieces, ...rare].join(',')), await read([...rare, ...pieces].join(','))];
  clearInterval(tick);
  expect(both[0]).toEqual(both[1]);
  expect(turns).toBeGreaterThan(3);
});

test('many short histograms are read in several turns', { timeout: 60_000 }, async () => {
  let turns = 0;
  const tick = setInterval(() => turns++, 0);
  const read = quantilesReader();
  for (let count = 0; count < 100_000; count++) await read('');
  clearInterval(tick);
  expect(turns).toBeGreaterThan(3);
});

onBothDatabases('histograms as texts', ({ shared }) => {
  const store = shared({ migrations: [new URL('.', import.meta.url)] });
  const ofDatabase = async (text: string) => {
    const { rows } =
      await sql<Quantiles>`with times(id, its) as (values (1, ${text})) ${sql`select half, most from (${quantiles(texts, sql`its`)}) as one`}`.execute(
        store().db,
      );
    return rows[0];
  };

  test('the database and this process read the same time out of every bucket', async () => {
    const read = quantilesReader();
    const { rows } = await sql<Quantiles & { id: number }>`
      with times(id, its) as (select n, (256 | n)::text from generate_series(0, 239) as n) ${quantiles(texts, sql`its`)} order by id`.execute(store().db);
    const here = await Promise.all(Array.from({ length: 240 }, (_, bucket) => quantilesReader()(`${entry(bucket, 1)}`)));
    expect(rows.map(({ half, most }) => ({ half, most }))).toEqual(here);
    expect(await read(`${entry(239, 1)}`)).toEqual(here[239]);
  });

  test('of billions of calls are those of the database', async () => {
    const text = [entry(0, 2 ** 32 - 1), entry(17, 2 ** 31), entry(80, 7), entry(17, 3), entry(239, 2 ** 29)].join(',');
    expect(await quantilesReader()(text)).toEqual(await ofDatabase(text));
  });

  test('are the sum of arrays that hold the same', async () => {
    const { rows } = await sql<{ short: string; added: string; none: string }>`
      select times_short(array[(0::bigint << 32) | 5, (17::bigint << 32) | 4294967295]) as short, times_added('1280,273,1280') as added,
        times_short('{}') || times_added(null) || times_added('') as none`.execute(store().db);
    expect(rows).toEqual([{ short: `${entry(0, 5)},${entry(17, 4294967295)}`, added: `${entry(0, 10)},${entry(17, 1)}`, none: '' }]);
  });
});
