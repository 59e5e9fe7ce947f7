import { expect, test } from 'vitest';
import { ByteBudget } from './byte-budget.ts';

const kilobyte = 1024;
const large = 100 * kilobyte;

function budgetOf(total: number, each: number) {
  const budget = new ByteBudget({ total: total * large, each: each * large });
  const request = (owner: number) => {
    let held = 0;
    return {
      take(bytes: number) {
        if (!budget.hasRoom(owner, held, held + bytes)) return false;
        budget.change(owner, held, held + bytes);
        held += bytes;
        return true;
      },
      end: () => budget.change(owner, held, (held = 0)),
    };
  };
  return { budget, request };
}

test('an owner has a share, all have the total, and what is given back is there again', () => {
  const { budget, request } = budgetOf(4, 2);
  const first = [request(1), request(1), request(1)];
  expect(first.map((one) => one.take(large))).toEqual([true, true, false]);
  const second = [request(2), request(2)];
  expect(second.map((one) => one.take(large))).toEqual([true, true]);
  expect(request(3).take(large)).toBe(false);
  first[0]!.end();
  expect([request(3).take(large), budget.held]).toEqual([true, 4 * large]);
});

test('a small request is never refused, and counts as its owner’s when it grows large', () => {
  const { budget, request } = budgetOf(2, 1);
  const [one, other] = [request(1), request(1)];
  expect([one.take(large), other.take(60 * kilobyte)]).toEqual([true, true]);
  expect(other.take(10 * kilobyte)).toBe(false);
  one.end();
  expect(other.take(10 * kilobyte)).toBe(true);
  expect(request(1).take(large)).toBe(false);
  other.end();
  expect(budget.held).toBe(0);
});

test('the only large request of an owner may hold more than the share, and the only one of all more than the total', () => {
  const { request } = budgetOf(4, 2);
  const alone = request(1);
  expect([alone.take(3 * large), alone.take(3 * large)]).toEqual([true, true]);
  expect([request(1).take(large), request(2).take(large)]).toEqual([false, false]);
});
