import { join } from 'node:path';
import { expect, test } from 'vitest';
import { claimsOf, disagreements } from './proofs.ts';
import { rows, unproven, unprovenCount } from './rows.ts';

const root = join(import.meta.dirname, '..', '..');
const listed = Object.values(unproven).flat();

test('every row of the plan is proven by a test or listed as unproven, and every test proves a row that is written down', () => {
  const ids = rows.map(({ id }) => id);
  expect(disagreements(ids, listed, claimsOf(root, /[A-Z]-\d\d/))).toEqual([]);
});

test('the list of unproven rows only shrinks', () => {
  expect(listed.length).toBe(unprovenCount);
});
