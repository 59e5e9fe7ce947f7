/* Fifty kills instead of five. */
import { test } from 'vitest';
import { onBothDatabases } from '../support/databases.ts';
import { killed } from './killings.ts';
import { proves } from '../support/proves.ts';

onBothDatabases('a server killed fifty times under mixed load', ({ place }) => {
  test(proves(['A-01', 'A-02'], 'has booked each answered call once and each cut one as died, and its sums agree'), async () => killed(await place(), 50));
});
