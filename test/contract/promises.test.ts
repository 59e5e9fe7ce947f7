import { join } from 'node:path';
import { expect, test } from 'vitest';
import { promises, unproven, unprovenCount } from './promises.ts';
import { claimsOf, disagreements } from './proofs.ts';

const root = join(import.meta.dirname, '..', '..');
const listed = Object.values(unproven).flat();

test('every promise is proven by a test or listed as unproven, and every test proves a promise that was made', () => {
  const claims = claimsOf(root, /[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+/);
  const ids = promises.map(({ id }) => id);
  expect(disagreements(ids, listed, claims)).toEqual([]);
});

test('the list of unproven promises only shrinks', () => {
  expect(listed.length).toBe(unprovenCount);
});

test('an id begins with its area', () => {
  expect(promises.filter(({ area }) => !(area in unproven))).toEqual([]);
});
