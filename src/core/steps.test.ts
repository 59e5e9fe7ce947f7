import { expect, test } from 'vitest';
import { steps } from './steps.ts';

test('every range of steps holds those within it, and the last number is one that JSON can carry', () => {
  const mostCandidates = 128; // of both wires that take a number of candidates
  expect(1 + mostCandidates).toBeLessThanOrEqual(steps.round);
  expect(steps.mostRounds).toBeLessThanOrEqual(steps.take);
  expect(steps.mostTakes * steps.take).toBeLessThanOrEqual(steps.alternative);
  expect(steps.mostRounds * steps.round).toBeLessThanOrEqual(steps.tier);
  expect(steps.mostOfTier * steps.tier).toBeLessThanOrEqual(steps.alternative);
  expect(steps.mostAlternatives * steps.alternative).toBeLessThanOrEqual(steps.firstCheck);
  expect(steps.mostChecks).toBeLessThanOrEqual(steps.alternative);
  expect(steps.mostAlternatives * steps.alternative).toBeLessThanOrEqual(steps.check);
  expect(Number.isSafeInteger(steps.firstCheck + steps.check * steps.mostAlternatives * steps.alternative)).toBe(true);
});
