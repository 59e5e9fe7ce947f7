/* What passwords cost when many sign in at once: with hashes at their full cost. */
import { scryptSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { unscaledCpuMilliseconds, unscaledCpuMillisecondsUntil } from '../../support/cpu-time.ts';
import { embedded } from '../../support/databases.ts';
import { visited } from './visitors.ts';

const long = 60_000;
const session = '/server/session';
const password = 'correct horse';

test('many who sign in at once are checked a few at a time, and too many from one network are told to wait', { timeout: long }, async () => {
  const all = await visited(await embedded.place(), { yaml: 'trustedProxies: [127.0.0.0/8]' });
  const asked = (at: number) =>
    all.nobody('POST', session, { email: `person-${at}@example.org`, password }, { headers: { 'x-forwarded-for': `2001:db8:0:7::${at.toString(16)}` } });
  const onThisThread = unscaledCpuMilliseconds(() => scryptSync(password, 'salt', 32, { N: 32_768, r: 8, p: 3, maxmem: 67_108_864 }));
  let statuses: number[] = [];
  const spent = await unscaledCpuMillisecondsUntil(async () => {
    statuses = (await Promise.all(Array.from({ length: 60 }, (_, at) => asked(at)))).map(({ status }) => status);
  });
  const count = (wanted: number) => statuses.filter((status) => status === wanted).length;
  expect([count(401), count(503)]).toEqual([20, 40]);
  expect(spent).toBeLessThan(10 * onThisThread); // 20 hashes are made, on other threads
});
