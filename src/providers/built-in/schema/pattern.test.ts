import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readPattern } from './pattern.ts';
import { cpuMilliseconds } from '../../../../test/support/cpu-time.ts';

/** Patterns built of supported syntax. */
const { pattern } = fc.letrec<{ pattern: string }>((tie) => ({
  pattern: fc.oneof(
    { depthSize: 'small', maxDepth: 4 },
    fc.constantFrom('a', 'b', '7', '-', '\\d', '\\w', '\\s', '.', '[a-c]', '[^a]', '[\\d_]', '\\.', '\\p{Lu}', '\\u0041', '\\/', '[-x]', '[\\]\\\\]'),
    fc.array(tie('pattern'), { minLength: 1, maxLength: 3 }).map((all) => all.join('')),
    fc.tuple(tie('pattern'), fc.constantFrom('*', '+', '?', '{2}', '{1,3}', '{2,}', '*?')).map(([one, times]) => `(?:${one})${times}`),
    fc.tuple(tie('pattern'), tie('pattern')).map(([one, other]) => `(${one}|${other})`),
  ),
}));
const anchored = fc.tuple(pattern, fc.constantFrom(['', ''], ['^', '$'], ['^', ''], ['', '$'])).map(([one, [start, end]]) => `${start}${one}${end}`);

describe('a pattern', () => {
  test('matches what a regular expression matches', () => {
    fc.assert(
      fc.property(anchored, fc.string({ unit: fc.constantFrom(...Array.from('abcAB7-_. /x]\\\n')), maxLength: 8 }), (source, text) => {
        expect(readPattern(source)!.matches(text)).toBe(new RegExp(source, 'u').test(text));
      }),
      { numRuns: 3000 },
    );
  });

  test('matches what a regular expression with lookaround and edges of words matches', () => {
    const looking = fc.letrec<{ looking: string }>((tie) => ({
      looking: fc.oneof(
        { depthSize: 'small', maxDepth: 3 },
        pattern,
        fc.constantFrom('\\b', '\\B'),
        fc.array(tie('looking'), { minLength: 1, maxLength: 3 }).map((all) => all.join('')),
        fc.tuple(fc.constantFrom('?=', '?!', '?<=', '?<!'), tie('looking')).map(([kind, one]) => `(${kind}${one})`),
        fc.tuple(tie('looking'), tie('looking')).map(([one, other]) => `(${one}|${other})`),
      ),
    })).looking;
    const placed = fc.tuple(looking, fc.constantFrom(['', ''], ['^', '$'], ['^', ''], ['', '$'])).map(([one, [start, end]]) => `${start}${one}${end}`);
    fc.assert(
      fc.property(placed, fc.string({ unit: fc.constantFrom(...Array.from('abcAB7-_. /x]\\\n')), maxLength: 8 }), (source, text) => {
        expect(readPattern(source)!.matches(text)).toBe(new RegExp(source, 'u').test(text));
      }),
      { numRuns: 3000 },
    );
  });

  test('gives texts that it matches', () => {
    fc.assert(
      fc.property(anchored, fc.nat(3), fc.nat(20), (source, extra, variant) => {
        expect(readPattern(source)!.sample(extra, variant)).toMatch(new RegExp(source, 'u'));
      }),
      { numRuns: 2000 },
    );
  });

  test.each([
    '(?=a)*',
    '(?<!a)+',
    '(?=a',
    '(?=a)\\1',
    '\\1',
    '(a',
    'a)',
    '[a',
    '*',
    'a{3,2}',
    '\\b+',
    '[b-a]',
    '\\p{Nothing}',
    '(?i:a)',
    'a{2000}{2000}',
    '((){9999}){9999}',
    '(?:(?=a{999})b){9}',
  ])('%s is not understood', (source) => expect(readPattern(source)).toBeUndefined());

  test.each([
    ['(?<=€)\\d+', `${'x'.repeat(2000)}€1`],
    ['(?<=(?<!\\p{L})€)\\d+', `${'x'.repeat(2000)} €1`],
    ['(?=(?<=.*\\s)€)€', `${'😀'.repeat(2000)} €`],
    ['(?<!x)$', `${'x'.repeat(5000)}y`],
  ])('%s looks back in a long text within the work limit', (source, text) => {
    expect(readPattern(source)!.matches(text)).toBe(true);
    expect(readPattern(source)!.matches(text.slice(0, -1))).toBe(new RegExp(source, 'u').test(text.slice(0, -1)));
  });

  test.each(['^(?:(?=(?:|x){400})a)*$', '^(?:(?<=(?:|x){400})a)*$'])('%s costs the work of what it looks at, also where that matches', (source) => {
    let spent = 0;
    readPattern(source)!.matches('a'.repeat(1000), { spend: (steps) => (spent += steps) > 0 });
    expect(spent).toBeGreaterThan((400 * 1000) / 16);
  });

  test.each([
    '^(a+)+$',
    '^(a|a)*$',
    '^(a*)*b$',
    '(x+x+)+y',
    '^(([a-z])+.)+[A-Z]([a-z])+$',
    '^(?=(a+)+$)',
    '(?<=(a|a)*)b',
    '(?<=(?<=(?<=a*)a*)a*)b',
    '(?=(?=(?=.*b)a*)a*)a*b',
    '^(?:(?=(?:|x){400})(?=(?:|x){400})(?=(?:|x){400})(?=(?:|x){400})a)*$',
    '(?:(?=a{1999})b){9}',
  ])('%s is no trap', (source) => {
    const took = cpuMilliseconds(() => {
      readPattern(source)?.matches(`${'a'.repeat(16_000)}!`);
      readPattern(source)?.sample(500, 0);
    });
    expect(took).toBeLessThan(500);
  });
});
