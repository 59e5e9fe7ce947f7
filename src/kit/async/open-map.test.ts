import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OpenMap } from './open-map.ts';

const name = fc.constantFrom(
  '',
  'a',
  'req_0Zz9randomrandom 1',
  'AaAa', // has the hash of the next two
  'BBBB',
  'AaBB',
  ...Array.from({ length: 20 }, (_, at) => `req_${at}`),
);
const step = fc.oneof(
  { weight: 20, arbitrary: fc.record({ does: fc.constantFrom('set', 'delete'), name, value: fc.nat() }) },
  { weight: 1, arbitrary: fc.constant({ does: 'clear', name: '', value: 0 }) },
);

test('has what a Map has in which a name that is set again comes last', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (all) => {
      const [ours, theirs] = [new OpenMap<number>(), new Map<string, number>()];
      for (const { does, name: one, value } of all) {
        const wasThere = does === 'clear' ? theirs.clear() : theirs.delete(one);
        if (does === 'clear') ours.clear();
        else if (does === 'delete') expect(ours.delete(one)).toBe(wasThere);
        else {
          theirs.set(one, value);
          ours.set(one, value);
        }
        expect(ours.get(one)).toBe(theirs.get(one));
        expect(ours.values()).toEqual([...theirs.values()]);
        expect([ours.size, ours.oldest?.name]).toEqual([theirs.size, theirs.keys().next().value]);
      }
    }),
  );
});

test('holds more than it has buckets, and lets go in any order', () => {
  const map = new OpenMap<number>();
  for (let at = 0; at < 5000; at++) map.set(`name ${at}`, at);
  for (let at = 0; at < 5000; at += 2) expect(map.delete(`name ${(at * 7) % 5000}`)).toBe(true);
  expect(map.values()).toEqual(Array.from({ length: 2500 }, (_, at) => 2 * at + 1));
  map.clear();
  expect([map.size, map.oldest, map.get('name 1')]).toEqual([0, undefined, undefined]);
});
