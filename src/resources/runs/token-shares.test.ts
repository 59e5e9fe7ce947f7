import { expect, test } from 'vitest';
import { TokenShares } from './token-shares.ts';

const signal = new AbortController().signal;
const left = () => 100;

test('answers that are made at once have no more together than is left, and one that does not fit waits for the others', async () => {
  const shares = new TokenShares();
  expect(await shares.take({ left, tokens: 60, signal })).toBe(60);
  expect(await shares.take({ left, tokens: 40, signal })).toBe(40);
  const got: number[] = [];
  const third = shares.take({ left, tokens: 50, signal }).then((share) => got.push(share));
  shares.give(40);
  await new Promise(setImmediate);
  expect(got).toEqual([]);
  shares.give(60);
  await third;
  expect(got).toEqual([50]);
});

test('an answer alone has what there is, and one token where there is nothing', async () => {
  const shares = new TokenShares();
  expect(await shares.take({ left, tokens: 1000, signal })).toBe(100);
  shares.give(100);
  expect(await shares.take({ left: () => -5, tokens: 1000, signal })).toBe(1);
});

test('one that is cancelled while it waits takes nothing', async () => {
  const shares = new TokenShares();
  const leaving = new AbortController();
  await shares.take({ left, tokens: 100, signal });
  const cancelled = shares.take({ left, tokens: 100, signal: leaving.signal });
  leaving.abort(new Error('left'));
  await expect(cancelled).rejects.toThrow('left');
  const next = shares.take({ left, tokens: 100, signal });
  shares.give(100);
  expect(await next).toBe(100);
});
