import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BadJson, parseJson, readJson, scan, splice } from './scan.ts';
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts';
import { proves } from '../../../test/support/proves.ts';

const parse = (text: string | Uint8Array) => parseJson(Buffer.from(text));

describe('a JSON text', () => {
  test('is what JSON.parse makes of it', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), fc.constantFrom(undefined, 1, '\t'), (text, space) => {
        const value = JSON.parse(text) as unknown;
        const spaced = JSON.stringify(value, null, space);
        fc.pre(!hasProto(value));
        expect(parse(spaced)).toEqual(JSON.parse(spaced));
      }),
      { numRuns: 2000 },
    );
  });

  test('may have escaped quotes and backslashes anywhere in a long string', () => {
    const piece = fc.constantFrom('a'.repeat(15), 'a'.repeat(16), 'a'.repeat(70), '"', '\\', '","k":1,"', '\n');
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), fc.array(piece, { maxLength: 4 }), (one, other) => {
        const value = [one.join(''), { k: other.join(''), [`${one.join('')}x`]: 1 }];
        expect(parse(JSON.stringify(value))).toEqual(value);
      }),
      { numRuns: 3000 },
    );
  });

  test('is refused where JSON.parse refuses, whatever is done to its bytes', () => {
    const token = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"b"',
      '"\\u0061"',
      '"\\',
      '"',
      '\\',
      '1',
      '-0',
      '1e5',
      '1e309',
      '1.',
      'true',
      'nul',
      ' ',
      '\n',
      'é',
      '\u0000',
    );
    fc.assert(
      fc.property(fc.array(token, { maxLength: 14 }), (tokens) => {
        const text = tokens.join('');
        const theirs = attempt(() => JSON.parse(text) as unknown);
        const ours = attempt(() => parse(text));
        if (ours.error) expect(ours.error).toBeInstanceOf(BadJson);
        else expect(ours).toEqual(theirs);
        if (ours.error && !theirs.error) expect(ours.error.message).toMatch(/same key twice|out of range/);
      }),
      { numRuns: 20_000 },
    );
  });

  test.each([
    ['', 'The text is empty.'],
    [' \n', 'The text is empty.'],
    ['{', 'The text is not valid JSON.'],
    ['}', 'The text is not valid JSON.'],
    ['{"a":1}}', 'The text is not valid JSON.'],
    ['{"a" 1}', 'The text is not valid JSON.'],
    ['"a', 'The text is not valid JSON.'],
    ['{"a\\":1}', 'The text is not valid JSON.'],
    ['{"\\x":1}', 'The text is not valid JSON.'],
    ['NaN', 'The text is not valid JSON.'],
    ["{'a':1}", 'The text is not valid JSON.'],
    ['\ufeff{}', 'The text starts with a byte order mark.'],
    ['{"a":1,"a":2}', 'An object has the same key twice.'],
    ['{"model":"x","b":{"model":1},"\\u006dodel":"y"}', 'An object has the same key twice.'],
    ['{"\\u006dodel":"y","model":"x"}', 'An object has the same key twice.'],
    ['{"é":1,"\\u00e9":2}', 'An object has the same key twice.'],
    ['[{"a":{"b":1,"c":2,"b":3}}]', 'An object has the same key twice.'],
    ['{"__proto__":{}}', 'An object has the key __proto__.'],
    ['[{"\\u005f_proto__":{}}]', 'An object has the key __proto__.'],
    ['1e309', 'The text has a number that is out of range.'],
    ['[-1E+400]', 'The text has a number that is out of range.'],
    [`{"a":${'9'.repeat(400)}}`, 'The text has a number that is out of range.'],
    ['['.repeat(65), 'The text is nested deeper than 64 levels.'],
    ['{"a":'.repeat(65), 'The text is nested deeper than 64 levels.'],
  ])('%j is refused', (text, message) => {
    expect(() => parse(text)).toThrow(expect.objectContaining({ name: 'BadJson', message }));
  });

  test.each([
    '{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}',
    '{"constructor":{"prototype":{"x":1}},"toString":1,"proto":"__proto__","__proto":1}',
    '{"a":"__proto__","__proto__x":1}',
    '{"a\\"b":1,"a":2,"b":3}',
    '[1e308,-1e308,1e-400,-0,9007199254740993,0.1e1,1E5]',
    `[0.${'1'.repeat(1000)}]`,
    '"\\u0000\\ud800 \\\\\\""',
    '{"":1," ":2}',
    `${'['.repeat(64)}${']'.repeat(64)}`,
    ` \r\n\t{ "a" : [ 1 , 2 ] } `,
    'null',
  ])('%j is taken as it is', (text) => {
    expect(parse(text)).toEqual(JSON.parse(text));
  });

  test.each([[[0x22, 0xff, 0x22]], [[0x22, 0xc0, 0xaf, 0x22]], [[0x22, 0xed, 0xa0, 0x80, 0x22]], [[0xff, 0xfe, 0x7b, 0, 0x7d, 0]], [[0, 0x7b]]])(
    'the bytes %j are no text',
    (bytes) => {
      expect(() => parse(Uint8Array.from(bytes))).toThrow(BadJson);
    },
  );

  test('of many keys is compared key by key, also beyond the sixteenth', () => {
    const keys = Array.from({ length: 40 }, (_, at) => `"k${at}":0`);
    expect(Object.keys(parse(`{${keys.join(',')}}`) as object)).toHaveLength(40);
    for (const again of ['k0', 'k15', 'k16', 'k39', '\\u006b7']) expect(() => parse(`{${keys.join(',')},"${again}":1}`)).toThrow(/twice/);
  });

  test.each<[string, string]>([
    ['many objects of seventeen keys', `[${`{${Array.from({ length: 17 }, (_, at) => `"k${at}":1`).join(',')}},`.repeat(27_000)}1]`],
    ['many objects of thousands of keys', `[${`{${Array.from({ length: 9000 }, (_, at) => `"k${at}":1`).join(',')}},`.repeat(60)}1]`],
    ['many long numbers', `[${`0.${'1'.repeat(300)},`.repeat(99_000)}1]`],
    ['one endless number', `[0.${'1'.repeat(20_000_000)}]`],
  ])(proves('I-02', 'of %s costs too much and is refused'), (_what, text) => {
    expect(() => scan(Buffer.from(text))).toThrow(BadJson);
  });

  test('that was refused leaves nothing behind for the next', () => {
    expect(() => parse('{"a":1,"b":{"c":1,"c":2}}')).toThrow(BadJson);
    expect(parse('{"c":1,"b":{"a":1,"c":2}}')).toEqual({ c: 1, b: { a: 1, c: 2 } });
  });

  test('has limits that can be set', () => {
    expect(() => parseJson(Buffer.from('[[[]]]'), { maxDepth: 2 })).toThrow(/deeper than 2/);
    expect(parseJson(Buffer.from(`${'['.repeat(100)}${']'.repeat(100)}`), { maxDepth: 100 })).toBeDefined();
    expect(() => parseJson(Buffer.from('[1,2,3]'), { maxTokens: 3 })).toThrow(/more than 3 values/);
    expect(parseJson(Buffer.from('[1,2]'), { maxTokens: 3 })).toEqual([1, 2]);
    const weights = { string: 2, list: 3, object: 4, key: 2 };
    expect(parseJson(Buffer.from('[{"a":"b"},1]'), { maxTokens: 12, weights })).toEqual([{ a: 'b' }, 1]);
    expect(() => parseJson(Buffer.from('[{"a":"b"},1]'), { maxTokens: 11, weights })).toThrow(/more than 11 values/);
  });

  test('says nothing of itself when it is refused', () => {
    expect(attempt(() => parse('{"secret": sk-canary}')).error?.message).not.toContain('canary');
  });
});

describe('a bomb is refused before it goes off', () => {
  const size = 10_000_000;
  const bombs: [string, string, number][] = [
    ['10 MB of [', '['.repeat(size), 5],
    ['10 MB of {"a":', '{"a":'.repeat(size / 5), 5],
    ['5 million zeros', `[${'0,'.repeat(size / 2)}0]`, 100],
    ['900,000 keys', `{${Array.from({ length: 900_000 }, (_, at) => `"k${at}":0`).join(',')}}`, 100],
    ['10 MB of digits', '1'.repeat(size), 100],
    ['10 MB of spaces', ' '.repeat(size), 100],
    ['numbers with exponents', `[${'1e300,'.repeat(size / 6)}0]`, 100],
    ['keys with escapes', `[${'{"\\u0061":0},'.repeat(size / 14)}0]`, 100],
    ['an open string of quotes', `"${'\\"'.repeat(size / 2)}`, 100],
    ['an open string of backslashes', `"${'\\'.repeat(size)}`, 100],
  ];

  // Three times the bar, and the best of three: some machines are slow.
  test.each(bombs)('%s', (_, text, milliseconds) => {
    const bytes = Buffer.from(text);
    const taken = Array.from({ length: 3 }, () => cpuMilliseconds(() => expect(() => scan(bytes)).toThrow(BadJson)));
    expect(Math.min(...taken)).toBeLessThan(milliseconds * 3);
  });
});

describe('a member of the outermost object', () => {
  const bytes = Buffer.from(' { "model" : "a\\"b" ,"n":1, "é":{ "model":[2] } ,"\\u0073tream":true,"last":"x" } ');

  test('is found where it stands', () => {
    const { value, places } = readJson(bytes);
    const text = (at: number) => bytes.toString('utf8', places[at], places[at + 1]);
    const members = Array.from({ length: places.length / 4 }, (_, nth) => [JSON.parse(text(nth * 4)) as string, JSON.parse(text(nth * 4 + 2)) as unknown]);
    expect(Object.fromEntries(members)).toEqual(value);
    expect(members.map(([name]) => name)).toEqual(['model', 'n', 'é', 'stream', 'last']);
  });

  test('can be changed while all other bytes stay', () => {
    expect(Buffer.from(splice(bytes, scan(bytes), { stream: 'false', model: '"x"', new: '{"y":1}', more: '0' })).toString()).toBe(
      ' {"new":{"y":1},"more":0, "model" : "x" ,"n":1, "é":{ "model":[2] } ,"\\u0073tream":false,"last":"x" } ',
    );
    expect(splice(bytes, scan(bytes), {})).toBe(bytes);
  });

  test.each(['{}', ' { } '])('can be added to %j', (text) => {
    const empty = Buffer.from(text);
    expect(parseJson(splice(empty, scan(empty), { model: '"x"', a: '1' }))).toEqual({ model: 'x', a: 1 });
  });

  test.each(['[{"model":1}]', '"model"', '7'])('is nowhere in %s', (text) => {
    expect(scan(Buffer.from(text))).toEqual([]);
  });

  test('changed is what changing the value would give', () => {
    const key = fc.constantFrom('model', 'stream', 'é', 'a"b', '');
    fc.assert(
      fc.property(
        fc.dictionary(key, fc.jsonValue(), { noNullPrototype: true }),
        fc.dictionary(key, fc.jsonValue(), { noNullPrototype: true }),
        (object, changes) => {
          fc.pre(!hasProto([object, changes]));
          const text = Buffer.from(JSON.stringify(object, null, 1));
          const values = Object.fromEntries(Object.entries(changes).map(([name, value]) => [name, JSON.stringify(value)]));
          expect(parseJson(splice(text, scan(text), values))).toEqual(JSON.parse(JSON.stringify({ ...object, ...changes })));
        },
      ),
    );
  });
});

function attempt(task: () => unknown): { readonly value?: unknown; readonly error?: Error } {
  try {
    return { value: task() };
  } catch (error) {
    return { error: error as Error };
  }
}

function hasProto(value: unknown): boolean {
  return JSON.stringify(value).includes('__proto__');
}

test('different keys are counted, however often each comes', () => {
  const text = (keys: readonly string[]) => Buffer.from(`[${keys.map((key) => `{"${key}":0}`).join(',')}]`);
  const different = Array.from({ length: 1000 }, (_, at) => `key ${at}`);
  const often = Array.from({ length: 50 }, () => different).flat();
  expect(() => scan(text(often), { maxKeys: 1500 })).not.toThrow(); // of 50,000; keys that share their places are counted more than once, one pair in 750 texts each time
  expect(() => scan(text(often), { maxKeys: 900 })).toThrow('The text has more than 900 different keys.');
  expect(() => scan(text(different), { maxKeys: 900 })).toThrow('The text has more than 900 different keys.'); // those of the text before are forgotten
  expect(() => scan(text(Array.from({ length: 60_000 }, (_, at) => `${at}`)), { maxKeys: 50_000 })).toThrow(BadJson);
});
