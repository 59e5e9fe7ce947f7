/* A minute instead of seconds. */
import { describe, inject, test } from 'vitest';
import { onServer } from '../support/databases.ts';
import { away } from './outages.ts';
import { proves } from '../support/proves.ts';

const address = inject('postgres');

describe.skipIf(!address)('the database', () => {
  test(proves(['D-04', 'D-05'], 'away for 60 s under load: leases go on, then 503, never a 401, and the books are whole afterwards'), async () =>
    away(await onServer(address!).place(), 60),
  );
});
