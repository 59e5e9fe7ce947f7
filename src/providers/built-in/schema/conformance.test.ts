import { afterAll, describe, expect, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import type { JsonObject } from '#core/json';
import { openConformance } from './conformance.ts';

const conformance = openConformance(systemClock);
afterAll(() => conformance.close());
const { signal } = new AbortController();
const conforms = async (text: string, schema: JsonObject, owner = '1') => conformance.against(schema, { owner, signal })(text);

const numbers = (count: number) => JSON.stringify(Array.from({ length: count }, (_, at) => at));
const integers: JsonObject = { type: 'array', items: { type: 'integer' } };
/** A schema that doubles with each of its definitions. */
const endless: JsonObject = {
  $ref: '#/$defs/a0',
  $defs: {
    ...Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`a${at}`, { allOf: [{ $ref: `#/$defs/a${at + 1}` }, { $ref: `#/$defs/a${at + 1}` }] }])),
    a60: { type: 'string' },
  },
};

describe('a text that is held against a schema', () => {
  test('is judged at once where both are small, and later where they are not', async () => {
    expect(conformance.against(integers, { owner: '1', signal })('[1, 2]')).toBe(true);
    expect(conformance.against(integers, { owner: '1', signal })('[1, 2.5]')).toBe(false);
    expect(await conforms(numbers(50_000), integers)).toBe(true);
    expect(await conforms(numbers(50_000).replace(',49999]', ',"x"]'), integers)).toBe(false);
  });

  test('is no value where it is no JSON, however long', async () => {
    expect(await conforms('[1', integers)).toBe(false);
    expect(await conforms('['.repeat(100_000), integers)).toBe(false);
  });

  test('does not conform where that takes too long, and nobody else waits for it', async () => {
    let others = 0;
    const hostile = Array.from({ length: 5 }, () => conforms('"x"', endless).finally(() => others++));
    expect(await conforms(numbers(50_000), integers, '2')).toBe(true);
    expect(others).toBeLessThanOrEqual(2);
    expect(await Promise.all(hostile)).toEqual([false, false, false, false, false]);
  });

  test('is refused with a schema of more than 20,000 values, before anybody is asked', () => {
    expect(() => conformance.against({ enum: Array.from({ length: 20_001 }, (_, at) => at) }, { owner: '1', signal })).toThrow(
      expect.objectContaining({ code: 'invalid' }),
    );
  });

  test('is judged no more once all is closed, whoever waits', async () => {
    const own = openConformance(systemClock);
    const waiting = Array.from({ length: 3 }, async () => own.against(endless, { owner: '1', signal })('"x"'));
    const ends = Promise.allSettled(waiting);
    await own.close();
    expect((await ends).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  });
});
