/* Permits are let go of while a message to the source is under way: the source takes all that was let go of from what it grants for that message. */
import { expect, test } from 'vitest';
import type { Account } from '#core/account';
import { LocalLease } from '../admission/local-lease.ts';
import { MachineLease } from './machine-lease.ts';

const account: Account = { owner: 'user:1', kind: 'requests', month: '' };
const grant = { granted: 6, spent: 0, left: 42 };

function localLease(): LocalLease {
  const lease = new LocalLease(account, 'requests', { last: 0 });
  lease.limit = 48;
  return lease;
}

function received(lease: LocalLease): void {
  lease.acknowledge(0);
  lease.receive(grant.granted, grant.spent, grant.left);
}

test('a process uses no permit that was granted for a message from before it let go of all, and gives it back', () => {
  const lease = localLease();
  lease.report(0);
  lease.lapse(false);
  received(lease);
  expect([lease.free, lease.report(1).amount]).toEqual([0, 6]);
  received(lease);
  expect([lease.free, lease.report(2).amount]).toEqual([6, 0]);
});

test('a worker keeps what it is granted after its parent has let go of all', () => {
  const lease = localLease();
  lease.report(0);
  lease.lapse(true);
  received(lease);
  expect([lease.free, lease.report(1).amount]).toEqual([6, 0]);
});

test('workers get no permit that was granted for a message from before their machine let go of all', () => {
  const lease = new MachineLease(account, { last: 0 });
  const received = () => {
    lease.acknowledge();
    lease.granted(grant);
  };
  lease.nextRequest(0);
  lease.lapse(0);
  received();
  expect([lease.free, lease.nextRequest(1).amount]).toEqual([0, 6]);
  received();
  expect([lease.free, lease.nextRequest(2).amount]).toEqual([6, 0]);
});
