import { expect, test } from 'vitest';
import { stepOf, steps } from './steps.ts';

const ranges = Object.entries(steps).map(([name, range]) => ({ name, from: 0, ...range }));
const holders = new Map<string, { readonly each: number }>([['request', { each: Number.MAX_SAFE_INTEGER }], ...Object.entries(steps)]);

test.each(ranges.flatMap(({ within, ...range }) => within.map((holder) => [range.name, holder, range] as const)))(
  'the range of steps %s fits into a member of %s',
  (_, holder, { from, each, most }) => {
    expect(from + most * each).toBeLessThanOrEqual(holders.get(holder)!.each);
  },
);

test('the steps of checks begin behind all others, and each other step has a range of them', () => {
  const { own, question, inner, checks } = steps;
  expect(own.most * own.each).toBeLessThanOrEqual(question.from);
  expect(question.from + question.most * question.each).toBeLessThanOrEqual(inner.from);
  const end = inner.from + inner.most * inner.each;
  expect(end).toBeLessThanOrEqual(checks.from);
  expect(end).toBeLessThanOrEqual(checks.most);
});

test('an answer has a repair for each candidate that a client can ask for', () => {
  const mostCandidates = 128; // of both wires that take a number of candidates
  expect(steps.repairs.most).toBe(mostCandidates);
});

test('a step that is in several ranges has the sum of their beginnings', () => {
  expect(stepOf(0, 'own', 0)).toBe(0);
  expect(stepOf(stepOf(stepOf(0, 'tier', 2), 'repairableRound', 3), 'repairs', 4)).toBe(20_605);
  expect(stepOf(stepOf(0, 'checks', 20_605), 'check', 6)).toBe(1_000_000_000 + 20_605 * 10_000_000 + 6);
});
