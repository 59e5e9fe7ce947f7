import { test } from 'vitest';
import { runSeeds } from './seeds.ts';

test('whatever goes wrong and whenever, the books are right: the odd seeds [X-01]', { timeout: 3_600_000 }, () => runSeeds(0, 2, 3000));
