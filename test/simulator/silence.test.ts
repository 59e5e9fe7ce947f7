import { expect, test } from 'vitest';
import { runSilentSeeds } from './silent-seeds.ts';
import { fallSilent } from './silence.ts';
import { proves } from '../support/proves.ts';

test(proves('X-01', 'machines that fall silent, for a while or for good, take no permit with them and use none that was ended'), { timeout: 600_000 }, () =>
  runSilentSeeds(40),
);

test(proves('X-01', 'such a life is the same each time'), { timeout: 120_000 }, async () => {
  expect((await fallSilent(1)).trace).toBe((await fallSilent(1)).trace);
});
