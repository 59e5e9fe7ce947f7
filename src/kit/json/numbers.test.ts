import { describe, expect, test } from 'vitest';
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts';
import { readLargeJson } from './large.ts';
import { asWritten, isInexact, parseAsWritten, roundedIn, textAsWritten } from './numbers.ts';
import { BadJson, readJson } from './scan.ts';

const numbers = ['12345678901234567890', '1.10', '1.0', '-0', '1e5', '1E+2', '0.00000010', '0.0000001', '9007199254740993', '1234567.12345678901', '-0.50'];
const exact = ['0', '-1', '12', '0.5', '-0.25', '10', '100.25', '9007199254740991', '0.1234567890123456', '0.000001', '1.05'];

describe('numbers', () => {
  test.each(numbers)('%s would be written differently', (number) => expect(isInexact(number)).toBe(true));
  test.each(exact)('%s would be written as it is', (number) => expect(isInexact(number)).toBe(false));

  const text = `{"a":[${numbers.join(',')}],"b":{"c":{"d":1.10,"e":"1.10 \\" 2.20"}},"f":[[],[${exact.join(',')}]],"é":"😀"}`;

  test.each<[string, (text: string) => unknown]>([
    ['a string', parseAsWritten],
    ['bytes', (one) => readJson(Buffer.from(one), { numbersAsWritten: true }).value],
  ])('are the same for whoever reads %s, and are written as they were', (_, parse) => {
    const value = parse(text);
    expect(value).toEqual(JSON.parse(text));
    expect(textAsWritten(value)).toBe(text);
    expect(textAsWritten((value as { b: { c: object } }).b.c)).toBe('{"d":1.10,"e":"1.10 \\" 2.20"}');
    expect(JSON.stringify(value)).toBe(JSON.stringify(JSON.parse(text)));
  });

  test('of a large text are kept, beside long strings', async () => {
    const long = 'x'.repeat(70_000);
    const large = `{"s":"${long}","n":12345678901234567890,"t":["${long}",1.10,"${long}"],"u":2.50}`;
    const { value } = await readLargeJson(Buffer.from(large), { numbersAsWritten: true });
    expect(textAsWritten(value)).toBe(large);
    expect(textAsWritten((await readLargeJson(Buffer.from(large))).value)).toBe(JSON.stringify(JSON.parse(large)));
  });

  test('a number alone, and what is no JSON', () => {
    expect(parseAsWritten('1.10')).toBe(1.1);
    for (const bad of ['{"a":1.10', '{"a":"1.10', '1.10.10', '{"a":1.10,}', '{1.10:1}', '[1.10 2]', '[01.10]', '[+1.10]'])
      expect(() => parseAsWritten(bad)).toThrow(SyntaxError);
  });

  test('a large text with a number in the place of a name is no JSON', async () => {
    for (const bad of ['{1.10:1}', '[1.10 2]', '{"a":1.10.1}'])
      await expect(readLargeJson(Buffer.from(bad), { numbersAsWritten: true })).rejects.toThrow(BadJson);
  });

  test('that are parsed as others are found wherever they are, and none that are only spelled differently', () => {
    const same = [
      '5.0',
      '0.5e1',
      '1.10',
      '1e21',
      '1E+2',
      '-0',
      '0e5',
      '-0.0',
      '12345678901234567000',
      '9007199254740992',
      '0.00000010',
      '1.7976931348623157e308',
    ];
    expect(roundedIn(parseAsWritten(`[${same.join(',')}]`))).toEqual([]);
    const others =
      '{"a":9007199254740993,"b":[{"c":5.00000000000000000001}],"d":1e400,"e":-1e-400,"f":12345678901234567890.5,"g":0.1000000000000000055511151231257827}';
    expect(roundedIn(parseAsWritten(others)).toSorted((a, b) => a.number - b.number)).toEqual([
      { number: -0, isWhole: false },
      { number: 0.1, isWhole: false },
      { number: 5, isWhole: false },
      { number: 9007199254740992, isWhole: true },
      { number: 12345678901234567000, isWhole: false },
      { number: Infinity, isWhole: true },
    ]);
  });

  test('a value without such numbers is itself', () => {
    const value = parseAsWritten('{"a":1}');
    expect(asWritten(value)).toBe(value);
  });

  test('a name that is in every object is a name like others', () => {
    const value = parseAsWritten('{"__proto__":1.10,"a":{"__proto__":{"x":2.0}}}');
    expect(textAsWritten(value)).toBe('{"__proto__":1.10,"a":{"__proto__":{"x":2.0}}}');
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });

  test.each(['1.10', '0.1', '0.12345678901234567', '12345678901234567890'])('a megabyte of %s takes no longer than it may', (number) => {
    const many = `[${Array.from({ length: 1_000_000 / (number.length + 1) }, () => number).join(',')}]`;
    expect(cpuMilliseconds(() => textAsWritten(parseAsWritten(many)))).toBeLessThan(150);
    expect(cpuMilliseconds(() => readJson(Buffer.from(many), { numbersAsWritten: true }))).toBeLessThan(150);
  });
});
