import type { LookupAddress } from 'node:dns';
import { describe, expect, test } from 'vitest';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { rememberingLookup } from './dns-cache.ts';
import { proves } from '../../../test/support/proves.ts';

const one: LookupAddress[] = [{ address: '192.0.2.1', family: 4 }];
const two: LookupAddress[] = [{ address: '192.0.2.2', family: 4 }];

/** A lookup whose answers the test gives, in order. */
function looking() {
  const clock = testClock();
  const lookups: ((answer: LookupAddress[] | Error) => void)[] = [];
  const find = rememberingLookup(
    clock,
    (_host, _options, then) => void lookups.push((answer) => (answer instanceof Error ? then(answer, []) : then(null, answer))),
  );
  const addressOf = (host: string) =>
    new Promise<unknown>((resolve) =>
      find(host, { all: true }, (error, addresses) => resolve(error ? error.message : (addresses as LookupAddress[])[0]?.address)),
    );
  return { clock, lookups, addressOf, find };
}

describe('a name', () => {
  test('is looked up once, whoever waits for it', async () => {
    const { lookups, addressOf } = looking();
    const all = [addressOf('a'), addressOf('a'), addressOf('a')];
    expect(lookups).toHaveLength(1);
    lookups[0]!(one);
    expect(await Promise.all(all)).toEqual(['192.0.2.1', '192.0.2.1', '192.0.2.1']);
  });

  test('that was found is known for 30 s, then looked up again', async () => {
    const { clock, lookups, addressOf } = looking();
    const first = addressOf('a');
    lookups[0]!(one);
    await first;
    clock.advance(29_999);
    expect(await addressOf('a')).toBe('192.0.2.1');
    expect(lookups).toHaveLength(1);
    clock.advance(1);
    const second = addressOf('a');
    lookups[1]!(two);
    expect(await second).toBe('192.0.2.2');
  });

  test(proves('F-02', 'that was found before is as it was while the system is slow or fails'), async () => {
    const { clock, lookups, addressOf } = looking();
    const first = addressOf('a');
    lookups[0]!(one);
    await first;
    clock.advance(60_000);
    const slow = addressOf('a');
    clock.advance(500);
    expect(await slow).toBe('192.0.2.1');
    const failing = addressOf('a');
    lookups[1]!(new Error('EAI_AGAIN'));
    expect(await failing).toBe('192.0.2.1');
    clock.advance(3_600_000);
    const late = addressOf('a');
    lookups[2]!(new Error('EAI_AGAIN'));
    expect(await late).toBe('EAI_AGAIN');
  });

  test(proves('F-02', 'that was not found is asked for anew by the next who wants it'), async () => {
    const { lookups, addressOf } = looking();
    const first = addressOf('a');
    lookups[0]!(new Error('ENOTFOUND'));
    expect(await first).toBe('ENOTFOUND');
    const second = addressOf('a');
    lookups[1]!(one);
    expect(await second).toBe('192.0.2.1');
  });

  test('is answered with a single address where that is asked for', async () => {
    const { lookups, find } = looking();
    const found = new Promise((resolve) => find('a', {}, (_error, address, family) => resolve([address, family])));
    lookups[0]!(one);
    expect(await found).toEqual(['192.0.2.1', 4]);
  });
});
