import { test } from 'vitest';
import { runSilentSeeds } from './silent-seeds.ts';

test('machines that fall silent take no permit with them and use none that was ended, three hundred times [X-01]', { timeout: 3_600_000 }, () =>
  runSilentSeeds(300),
);
