import { expect, test } from 'vitest';
import { ReusedBytes } from './reused-bytes.ts';

test('the same memory is given again, and other memory once it was left or is too small', () => {
  const memory = new ReusedBytes();
  const first = memory.take(1000);
  expect(first).toHaveLength(1000);
  expect(memory.take(10).buffer).toBe(first.buffer);
  memory.leave();
  const second = memory.take(1000);
  expect(second.buffer).not.toBe(first.buffer);
  const larger = memory.take(100_000);
  expect(larger).toHaveLength(100_000);
  expect(memory.take(130_000).buffer).toBe(larger.buffer);
  expect(memory.take(0)).toHaveLength(0);
});

test('what is very large is not kept', () => {
  const memory = new ReusedBytes();
  const large = memory.take(5_000_000);
  expect(large).toHaveLength(5_000_000);
  expect(memory.take(5_000_000).buffer).not.toBe(large.buffer);
});
