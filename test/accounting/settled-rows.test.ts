/* Rows as the journal writes them, which the database reads. */
import { expect, test } from 'vitest';
import { settledJson } from '../../src/ledger/journal/record.ts';
import { booksOf } from '../support/books-of.ts';
import { onBothDatabases } from '../support/databases.ts';
import { usageRow } from '../support/usage-rows.ts';

onBothDatabases('a row of the journal', ({ shared }) => {
  const store = shared({ migrations: [new URL('../../src/resources/usage/', import.meta.url)] });

  test('omits empty members, and is booked as the complete row is', async () => {
    const books = booksOf(store());
    const userId = 71;
    const empty = usageRow({ userId, queueMs: 0, firstTokenMs: null });
    const full = usageRow({
      userId,
      teamIds: [72],
      region: 'eu',
      cachedTokens: 1,
      cacheWriteTokens: 2,
      cacheWrite1hTokens: 3,
      thoughtTokens: 4,
      balance: 'train',
      costUsd: 0.25,
      queueMs: 0.125,
      tags: { team: 'x' },
      route: 'smart',
    });
    const ship = (journal: string, rows: readonly string[]) =>
      books.ship({ holder: 'nobody', journal: `nobody/${journal}`, from: 0, to: 100, rows: Buffer.from(`[${rows.join()}]`) });
    const members = [
      'teamIds',
      'region',
      'cachedTokens',
      'cacheWriteTokens',
      'cacheWrite1hTokens',
      'thoughtTokens',
      'balance',
      'costUsd',
      'queueMs',
      'firstTokenMs',
    ];
    for (const member of members) {
      expect(JSON.parse(settledJson(empty))).not.toHaveProperty(member);
      expect(JSON.parse(settledJson({ ...full, firstTokenMs: 5 }))).toHaveProperty(member);
    }
    expect(await ship('short', [empty, full].map(settledJson))).toEqual([]);
    expect(await books.record([empty, full])).toEqual([]); // a row that differed would be named
    expect(
      await books.record([
        { ...empty, region: 'eu' },
        { ...full, region: '' },
      ]),
    ).toEqual([0, 1]);
    expect(await books.spentOf(`user:${userId}`, '2026-11')).toMatchObject({ requests: 2, inference: 10, train: 10, usd: 0.25 });
  });
});
