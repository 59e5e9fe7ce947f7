import { test } from 'vitest';
import { runSilentSeeds } from './silent-seeds.ts';
import { proves } from '../support/proves.ts';

test(proves('X-01', 'machines that fall silent take no permit with them and use none that was ended, three hundred times'), { timeout: 3_600_000 }, () =>
  runSilentSeeds(300),
);
