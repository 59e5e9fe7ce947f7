import { describe, expect, test } from 'vitest';
import { claimsIn, disagreements, unknownClaims } from './proofs.ts';

const ids = (source: string, path = 'a.test.ts') => claimsIn(path, source).map(({ id }) => id);

describe('a test claims the ids of its title', () => {
  test.each([
    ["test(proves('a.b', 'x'), () => {});", ['a.b']],
    ["it(proves(['a.b', 'C-01'], 'x'), async () => {});", ['a.b', 'C-01']],
    ["describe('x', () => { test(proves('a.b', 'y'), run); });", ['a.b']],
    ["test(proves('a.b', 'x'), { timeout: 5 }, () => {});", ['a.b']],
    ["test(proves('a.b', 'x'), () => {}, 5_000);", ['a.b']],
    ["test.each([1, 2])(proves('a.b', '%i'), (n) => {});", ['a.b']],
    ["test.each`a\n${1}`(proves('a.b', '$a'), () => {});", ['a.b']],
    ["test.each<[x: number]>([[1]])(proves('a.b', '%i'), (x: number) => {});", ['a.b']],
    ["test.skipIf(process.platform === 'win32')(proves('a.b', 'x'), () => {});", ['a.b']],
    ["test.concurrent(proves('a.b', 'x'), () => {});", ['a.b']],
    ["test(proves('a.b', 'x ' + name), () => {});", ['a.b']],
    ["for (const one of all) test(proves('a.b', `${one}`), () => {});", ['a.b']],
    ["test(proves('a.b', 'x'), { skip: false }, () => {});", ['a.b']],
  ])('%s', (source, claimed) => {
    expect(ids(source)).toEqual(claimed);
  });
});

describe('nothing is claimed by', () => {
  test.each([
    ['a comment', "// test(proves('a.b', 'x'), () => {});\n/* test(proves('a.b', 'x'), () => {}); */"],
    ['a skipped test', "test.skip(proves('a.b', 'x'), () => {});"],
    ['a skipped table', "test.skip.each([1])(proves('a.b', 'x'), () => {}); test.each([1]).skip(proves('a.b', 'x'), () => {});"],
    ['a test to be written', "test.todo(proves('a.b', 'x')); test(proves('a.b', 'x'));"],
    ['a test that is expected to fail', "test.fails(proves('a.b', 'x'), () => {}); test(proves('a.b', 'x'), { fails: true }, () => {});"],
    ['a test switched off by its options', "test(proves('a.b', 'x'), { skip: true }, () => {}); test(proves('a.b', 'x'), { todo: why }, () => {});"],
    [
      'a test inside a skipped group',
      "describe.skip('x', () => { test(proves('a.b', 'y'), () => {}); describe('z', () => { it(proves('a.b', 'w'), () => {}); }); });",
    ],
    ['the title of a group', "describe(proves('a.b', 'x'), () => { test('y', () => {}); });"],
    ['brackets in a title', "test('x [a.b]', () => {});"],
    ['a call elsewhere', "test('x', () => { expect(proves('a.b', 'x')).toBe('x [a.b]'); });"],
  ])('%s', (_what, source) => {
    expect(ids(source)).toEqual([]);
  });
});

test('a Python check claims in the first string of check(…), and nowhere else', () => {
  const source = [
    '"""A text. check("[no.doc]")"""',
    '# check("[no.comment]")',
    'check("x [a.b]", 1)',
    'check(\n    f"{name} [c.d]", say("[no.other]"))',
    "name = '# [no.string]'",
    'check("# [e.f]", 2)',
  ];
  expect(ids(source.join('\n'), 'a.py')).toEqual(['a.b', 'c.d', 'e.f']);
});

test('a claim says where it stands', () => {
  expect(claimsIn('src/a.test.ts', "\n\ntest(proves('F-06', 'x'), () => {});")).toEqual([{ id: 'F-06', where: 'src/a.test.ts:3' }]);
});

describe('a table, the numbers that may be unproven, and the claims', () => {
  const claim = (id: string) => ({ id, where: 'here:1' });

  test('agree when each group lacks as many proofs as it may', () => {
    expect(disagreements(['a.1', 'a.2', 'B-01'], { a: 1, B: 0 }, [claim('a.1'), claim('a.1'), claim('B-01')])).toEqual([]);
  });

  test.each<[readonly string[], number, readonly string[], string]>([
    [['a.1', 'a.2'], 1, [], 'a: 2 have no proof, 1 may: a.1, a.2.'],
    [['a.1'], 1, ['a.1'], 'a: 0 have no proof: lower its number from 1.'],
    [['a.1', 'a.1'], 0, ['a.1'], 'a.1 is in the table twice.'],
  ])('disagree: %j, %i may be unproven, claimed %j', (known, most, claimed, sentence) => {
    expect(disagreements(known, { a: most }, claimed.map(claim))).toEqual([sentence]);
  });

  test('a claim of what is in no table is found', () => {
    expect(unknownClaims(['a.1'], [claim('a.1'), claim('a.3')])).toEqual(['here:1 claims to prove a.3, which is in no table.']);
  });
});
