import { describe, expect, test } from 'vitest';
import { claimsIn, disagreements } from './proofs.ts';

const ids = (source: string, path = 'a.test.ts') => claimsIn(path, source, /[a-z]+\.[a-z]+/).map(({ id }) => id);

describe('a test claims what stands in brackets in its title', () => {
  test.each([
    ["test('x [a.b]', () => {});", ['a.b']],
    ["it('x [a.b] [c.d]', async () => {});", ['a.b', 'c.d']],
    ["describe('x', () => { test('y [a.b]', run); });", ['a.b']],
    ["test('x [a.b]', { timeout: 5 }, () => {});", ['a.b']],
    ["test('x [a.b]', () => {}, 5_000);", ['a.b']],
    ["test.each([1, 2])('%i [a.b]', (n) => {});", ['a.b']],
    ["test.each`a\n${1}`('$a [a.b]', () => {});", ['a.b']],
    ["test.each<[x: number]>([[1]])('%i [a.b]', (x: number) => {});", ['a.b']],
    ["test.skipIf(process.platform === 'win32')('x [a.b]', () => {});", ['a.b']],
    ["test.concurrent('x [a.b]', () => {});", ['a.b']],
    ["test('x ' + name + ' [a.b]', () => {});", ['a.b']],
    ['test(`x ${name} [a.b]`, () => {});', ['a.b']],
    ['for (const one of all) test(`${one} [a.b]`, () => {});', ['a.b']],
    ["test('x [a.b]', { skip: false }, () => {});", ['a.b']],
  ])('%s', (source, claimed) => {
    expect(ids(source)).toEqual(claimed);
  });
});

describe('nothing is claimed by', () => {
  test.each([
    ['a comment', "// test('x [a.b]', () => {});\n/* test('x [a.b]', () => {}); */"],
    ['a skipped test', "test.skip('x [a.b]', () => {});"],
    ['a skipped table', "test.skip.each([1])('x [a.b]', () => {}); test.each([1]).skip('x [a.b]', () => {});"],
    ['a test to be written', "test.todo('x [a.b]'); test('x [a.b]');"],
    ['a test that is expected to fail', "test.fails('x [a.b]', () => {}); test('x [a.b]', { fails: true }, () => {});"],
    ['a test switched off by its options', "test('x [a.b]', { skip: true }, () => {}); test('x [a.b]', { todo: why }, () => {});"],
    ['a test inside a skipped group', "describe.skip('x', () => { test('y [a.b]', () => {}); describe('z', () => { it('w [a.b]', () => {}); }); });"],
    ['the title of a group', "describe('x [a.b]', () => { test('y', () => {}); });"],
    ['a string elsewhere', "test('x', () => { expect('[a.b]').toBe(title('[a.b]')); });"],
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
  expect(claimsIn('src/a.test.ts', "\n\ntest('x [F-06]', () => {});", /[A-Z]-\d\d/)).toEqual([{ id: 'F-06', where: 'src/a.test.ts:3' }]);
});

describe('a table, its unproven list and the claims', () => {
  const claim = (id: string) => ({ id, where: 'here:1' });

  test('agree when every id is claimed or listed, and none is both', () => {
    expect(disagreements(['a', 'b'], ['b'], [claim('a'), claim('a')])).toEqual([]);
  });

  test.each<[readonly string[], readonly string[], readonly string[], string]>([
    [['a'], [], [], 'a has no test, and unproven does not list it.'],
    [['a'], ['a'], ['a'], 'a is proven at here:1: take it out of unproven.'],
    [[], [], ['a'], 'here:1 claims to prove a, which is not in the table.'],
    [[], ['a'], [], 'unproven lists a, which is not in the table.'],
    [['a', 'a'], ['a'], [], 'a is in the table twice.'],
    [['a'], ['a', 'a'], [], 'a is in unproven twice.'],
  ])('disagree: %j, unproven %j, claimed %j', (known, unproven, claimed, sentence) => {
    expect(disagreements(known, unproven, claimed.map(claim))).toEqual([sentence]);
  });
});
