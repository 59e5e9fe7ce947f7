import { expect, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { openLessons } from './store.ts';

const by = { userId: 0, keyId: 0, requestId: null, address: null };
const lesson = (until = Date.now() + 60_000) => ({
  fields: ['temperature'],
  learned: { without: ['temperature'] },
  quirks: { without: ['temperature'] },
  until,
});

onBothDatabases('lessons', ({ shared }) => {
  const store = shared({ migrations: [new URL('./', import.meta.url)] });
  const open = (version = '1', log = (_problem: string, _cause: unknown) => {}) =>
    openLessons({ store: store(), audit: async () => {}, clock: systemClock, version, log });

  test('are shared by all processes, and forgotten by all', async () => {
    const [one, two] = [await open(), await open()];
    const [mine, theirs] = [one.of('p', 'w', 'a'), two.of('p', 'w', 'a')];
    mine.keep('m', lesson());
    expect(mine.get('m')?.quirks).toEqual({ without: ['temperature'] });
    await expect.poll(() => theirs.get('m')?.quirks).toEqual({ without: ['temperature'] });
    expect(two.list()).toMatchObject([{ provider: 'p', wire: 'w', model: 'm', fields: ['temperature'] }]);
    expect(await two.forget('all', by)).toBe(1);
    await expect.poll(() => mine.get('m')).toBeUndefined();
    one.close();
    two.close();
  });

  test('are kept in memory where the database cannot take them', async () => {
    const broken = { ...store(), db: store().db, subscribe: store().subscribe.bind(store()), transaction: () => Promise.reject(new Error('away')) };
    const one = await openLessons({ store: broken, audit: async () => {}, clock: systemClock, version: '1', log: () => {} });
    one.of('p', 'w', 'a').keep('m', lesson());
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(one.of('p', 'w', 'a').get('m')).toBeDefined();
    one.close();
  });

  test('that the database refuses are logged once and dropped, and cost no others', async () => {
    const logged: string[] = [];
    const one = await open('1', (problem, cause) => void logged.push(`${problem} ${String(cause)}`));
    const place = one.of('p', 'w', 'a');
    const unfit = { ...lesson(), learned: { without: ['a\0b'] } };
    place.keep('unfit', unfit);
    place.keep('fit', lesson());
    await expect.poll(() => one.list().map(({ model }) => model), { timeout: 30_000 }).toEqual(['fit']);
    await expect.poll(() => logged).toHaveLength(1);
    expect(logged[0]).toMatch(/the model unfit of p: it is not kept\. .*U\+0000/);
    place.keep('unfit', unfit);
    place.keep('later', lesson());
    await expect.poll(() => one.list().length, { timeout: 30_000 }).toBe(2);
    expect(logged).toHaveLength(1);
    await one.forget('all', by);
    one.close();
  });

  test('of another address or version do not count', async () => {
    const one = await open();
    one.of('p', 'w', 'a').keep('m', lesson());
    await expect.poll(() => one.list()).toHaveLength(1);
    const [same, next] = [await open(), await open('2')];
    expect(same.of('p', 'w', 'a').get('m')).toBeDefined();
    expect(same.of('p', 'w', 'b').get('m')).toBeUndefined();
    expect(next.of('p', 'w', 'a').get('m')).toBeUndefined();
    await one.forget('all', by);
    for (const each of [one, same, next]) each.close();
  });

  test('that a client makes under many names do not grow without bound', async () => {
    const one = await open();
    const place = one.of('p', 'w', 'a');
    for (let at = 0; at < 3000; at++) place.keep(`m${at}`, lesson());
    expect(place.get('m0')).toBeUndefined();
    expect(place.get('m2999')).toBeDefined();
    await expect.poll(() => one.list().length, { timeout: 30_000 }).toBeGreaterThan(500);
    expect(one.list().length).toBeLessThanOrEqual(2000);
    one.close();
  });
});
