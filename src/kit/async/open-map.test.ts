import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OpenMap } from './open-map.ts';

const name = fc.constantFrom(
  '',
  'a',
  'b',
  'req_0Zz9randomrandom 1',
  'x'.repeat(40),
  `y${'x'.repeat(40)}`,
  ...Array.from({ length: 30 }, (_, at) => `req_${at}`),
);
const step = fc.oneof(
  fc.record({ does: fc.constant('set' as const), name, value: fc.nat() }),
  fc.record({ does: fc.constant('delete' as const), name }),
  fc.record({ does: fc.constant('clear' as const), name }),
);

test('has what a Map has in which a name that is set again comes last', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (all) => {
      const [ours, theirs] = [new OpenMap<number>(), new Map<string, number>()];
      for (const one of all) {
        if (one.does === 'clear') [ours, theirs].forEach((map) => map.clear());
        else {
          const wasThere = theirs.delete(one.name);
          if (one.does === 'delete') expect(ours.delete(one.name)).toBe(wasThere);
          else {
            theirs.set(one.name, one.value);
            ours.set(one.name, one.value);
          }
          expect(ours.get(one.name)).toBe(theirs.get(one.name));
        }
        expect([...ours.entries()]).toEqual([...theirs]);
        expect([ours.size, ours.oldest]).toEqual([theirs.size, theirs.values().next().value]);
      }
    }),
  );
});

test('may be changed while it is gone through', () => {
  const map = new OpenMap<number>();
  for (let at = 0; at < 3000; at++) map.set(`name ${at}`, at);
  const seen: number[] = [];
  for (const [one, value] of map.entries()) {
    if (value < 0) break;
    seen.push(value);
    if (value % 2 === 0) map.delete(one);
    else map.set(one, -value);
  }
  expect(seen).toEqual(Array.from({ length: 3000 }, (_, at) => at));
  expect(Array.from(map.entries(), ([, value]) => -value)).toEqual(seen.filter((value) => value % 2 === 1));
});
