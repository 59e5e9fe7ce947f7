import { join } from 'node:path';
import { expect, test } from 'vitest';
import { promiseIds, unprovenPromises } from './promises.ts';
import { claimsOf, disagreements, unknownClaims } from './proofs.ts';
import { rowIds, unprovenRows } from './rows.ts';

const claims = claimsOf(join(import.meta.dirname, '..', '..'));

test('of the promises of the specification, as many are proven as are said to be', () => {
  expect(disagreements(promiseIds, unprovenPromises, claims)).toEqual([]);
});

test('of the rows of the reliability and security plan, as many are proven as are said to be', () => {
  expect(disagreements(rowIds, unprovenRows, claims)).toEqual([]);
});

test('no test claims to prove what nobody promised', () => {
  expect(unknownClaims([...promiseIds, ...rowIds], claims)).toEqual([]);
});
