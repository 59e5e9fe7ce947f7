import { expect, test } from 'vitest';
import { Fault } from '#core/fault';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { openKeyCooldowns } from './key-cooldowns.ts';

const limit = (retryAfter?: number) => new Fault('rate-limited', 'Too many.', { elsewhere: true, ...(retryAfter === undefined ? {} : { retryAfter }) });

function opened(cooldownSeconds = 1) {
  const clock = testClock();
  return { clock, keys: openKeyCooldowns(() => ({ cooldownSeconds, cooldownMaxSeconds: 60 }), clock) };
}

test('a key cools down for as long as the answer says, for one model', () => {
  const { clock, keys } = opened();
  const [one, other] = [{}, {}];
  keys.limited('m', one, limit(20));
  expect([keys.wait('m', one), keys.wait('m', other), keys.wait('n', one)]).toEqual([20_000, 0, 0]);
  clock.advance(20_000);
  expect(keys.wait('m', one)).toBe(0);
});

test('without a plausible wait it cools down twice as long each time; calls that fail together count once', () => {
  const { clock, keys } = opened();
  const key = {};
  keys.limited('m', key, limit(4000));
  keys.limited('m', key, limit());
  expect(keys.wait('m', key)).toBe(1000);
  clock.advance(1000);
  keys.limited('m', key, limit());
  expect(keys.wait('m', key)).toBe(2000);
});

test('after a cooldown one call at a time uses the key until it is answered; then no key is in cooldown', () => {
  const { clock, keys } = opened();
  const key = {};
  keys.limited('m', key, limit(1));
  keys.accepted('m', key); // a call from before the cooldown
  expect(keys.wait('m', key)).toBe(1000);
  clock.advance(1000);
  keys.used('m', key);
  expect(keys.wait('m', key)).toBe(5000);
  clock.advance(5000);
  expect(keys.wait('m', key)).toBe(0);
  keys.accepted('m', key);
  expect(keys.any).toBe(false);
});

test('no key cools down where cooldowns are disabled, and none after a reset', () => {
  const off = opened(0).keys;
  off.limited('m', {}, limit(20));
  expect(off.any).toBe(false);
  const { keys } = opened();
  keys.limited('m', {}, limit(20));
  keys.reset();
  expect(keys.any).toBe(false);
});
