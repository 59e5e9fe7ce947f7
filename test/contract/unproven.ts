/** Prints the promises and rows that no test proves yet: `node bin/run.js test/contract/unproven.ts`. */
import { join } from 'node:path';
import { promiseIds } from './promises.ts';
import { claimsOf, unprovenOf } from './proofs.ts';
import { rowIds } from './rows.ts';

const unproven = unprovenOf([...promiseIds, ...rowIds], claimsOf(join(import.meta.dirname, '..', '..')));
for (const [group, ids] of Object.entries(unproven)) console.log(`${group}: ${ids.join(', ')}`);
