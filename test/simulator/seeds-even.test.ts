import { test } from 'vitest';
import { runSeeds } from './seeds.ts';
import { proves } from '../support/proves.ts';

test(
  proves('X-01', 'whatever goes wrong and whenever, the books are right: the even seeds of a thousand (a long run takes ten thousand)'),
  { timeout: 3_600_000 },
  () => runSeeds(1, 2, 1000),
);
