import { expect, test } from 'vitest';
import { testClock } from '../../../test/support/fakes/clock.ts';
import type { Claims, Used } from './claims.ts';
import { openRoom } from './room.ts';

function room(used: Used) {
  const clock = testClock();
  const database = { used, asked: 0 };
  const claims: Pick<Claims, 'used'> = {
    used: () => {
      database.asked++;
      return Promise.resolve(database.used);
    },
  };
  clock.advance(1);
  return { clock, database, room: openRoom(claims, clock) };
}
const full = { code: 'rate-limited', status: 429 };

test('a user with 50,000 keys gets no other one, until some have gone; the database is asked once a minute', async () => {
  const { clock, database, room: one } = room({ keys: 49_999, bytes: 0 });
  await one.enter(1);
  await one.enter(1);
  await expect(one.enter(1)).rejects.toMatchObject(full);
  expect(database.asked).toBe(1);
  database.used = { keys: 10, bytes: 0 };
  clock.advance(60_001);
  await one.enter(1);
  expect(database.asked).toBe(2);
});

test('a user whose answers take more than 256 MiB gets no other key', async () => {
  const { room: one } = room({ keys: 1, bytes: 0 });
  await one.enter(1);
  one.took(1, 256 * 2 ** 20 + 1);
  await expect(one.enter(1)).rejects.toMatchObject(full);
});
