import { expect, test } from 'vitest';
import type { Caller } from '#core/context';
import { booksOf } from '../../../test/support/books-of.ts';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { usageRow } from '../../../test/support/usage-rows.ts';
import { openCounters } from './counters.ts';
import { fold } from './upkeep.ts';

const caller: Caller = { userId: 7, email: '', role: 'user', plan: 'p', teamIds: [3], keyId: 1, keyName: '' };

onBothDatabases('counters of the month', ({ shared }) => {
  const store = shared({ migrations: [new URL('.', import.meta.url)] });

  test('say what a user has used, of an application too, and what user and teams have left, as soon as it is booked', async () => {
    const counters = openCounters({ store: store(), planOf: () => ({ monthlyTokens: 1000 }), teamPlan: () => ({ monthlyTokens: 500 }) });
    expect([await counters.inference(7), await counters.training(7), await counters.leftWithOrganisation(caller)]).toEqual([0, 0, 500]);
    const at = Date.now();
    await booksOf(store()).record([
      usageRow({ at, userId: 7, teamIds: [3], app: 'ide', planTokens: 100 }),
      usageRow({ at, userId: 7, app: 'chat', planTokens: 20 }),
      usageRow({ at, userId: 7, balance: 'train', planTokens: 5 }),
      usageRow({ at, userId: 8, teamIds: [3], app: 'ide', planTokens: 150 }),
    ]);
    for (const again of [false, true]) {
      if (again) await fold(store());
      expect([await counters.inference(7), await counters.inference(7, 'ide'), await counters.inference(7, 'none')]).toEqual([120, 100, 0]);
      expect([await counters.training(7), await counters.leftWithOrganisation(caller)]).toEqual([5, 250]);
    }
  });

  test('where nothing limits the largest number is left, and nothing where a plan is not known', async () => {
    const free = openCounters({ store: store(), planOf: () => ({}), teamPlan: () => ({}) });
    expect(await free.leftWithOrganisation(caller)).toBe(9007199254740991);
    const lost = openCounters({ store: store(), planOf: () => ({}), teamPlan: () => undefined });
    expect(await lost.leftWithOrganisation(caller)).toBe(0);
  });
});
