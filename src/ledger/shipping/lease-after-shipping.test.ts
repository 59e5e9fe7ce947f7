import { expect, test } from 'vitest';
import type { Account } from '#core/account';
import type { LeaseRequest, LeaseSource } from '#core/lease';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { pass } from '../../../test/support/fakes/journals.ts';
import { leaseAfterShipping } from './lease-after-shipping.ts';

const later = { turn: 1, heard: 0, amount: 0, limit: 10, least: 1, waiting: 1, wish: 1 };
const first = { ...later, isFirst: true } as const;
const ofMonth = (owner: Account['owner']): Account => ({ owner, kind: 'inference', month: '2026-11' });

/** @param ship what the shipper does; how often it was asked to is in `asked` */
function begin(ship: () => Promise<void>) {
  const clock = testClock();
  const done: string[] = [];
  let asked = 0;
  const source: LeaseSource = { lease: async (asks) => asks.map(() => ({ granted: 1, spent: 0, left: 9 })), giveBack: async () => {}, onRecall: () => {} };
  const shipWritten = () => {
    asked++;
    return ship();
  };
  const leases = leaseAfterShipping(source, { shipWritten }, clock);
  const lease = (account: Account, ask: Omit<LeaseRequest, 'account'> = first) => void leases.lease([{ account, ...ask }]).then(() => done.push(account.owner));
  return { clock, done, lease, asked: () => asked };
}

test('only first leases of a month or a day wait for what was written', async () => {
  let shipped = () => {};
  const { clock, done, lease, asked } = begin(() => new Promise((resolve) => (shipped = resolve)));
  lease(ofMonth('user:1'));
  lease(ofMonth('user:2'), later);
  lease({ owner: 'user:3', kind: 'requests', month: '' });
  await pass(clock, 100);
  expect([done, asked()]).toEqual([['user:2', 'user:3'], 1]);
  shipped();
  await pass(clock, 0);
  expect(done).toContain('user:1');
});

test('while shipping takes longer than that, one message waits for a second, not one after the other', async () => {
  let shipped = () => {};
  const shipping = new Promise<void>((resolve) => (shipped = resolve));
  const { clock, done, lease, asked } = begin(() => shipping);
  lease(ofMonth('user:1'));
  await pass(clock, 975);
  expect(done).toEqual([]);
  await pass(clock, 25);
  expect(done).toEqual(['user:1']);
  lease(ofMonth('user:2'));
  await pass(clock, 0);
  expect(done).toEqual(['user:1', 'user:2']);
  shipped();
  await pass(clock, 0);
  lease(ofMonth('user:3'));
  await pass(clock, 0);
  expect([done.length, asked()]).toEqual([3, 2]);
});
