import fc from 'fast-check';
import { countTokens, encode } from 'gpt-tokenizer/encoding/o200k_base';
import { beforeAll, describe, expect, test } from 'vitest';
import { cpuMillisecondsUntil, slowness } from '../../../test/support/cpu-time.ts';
import { quickest } from '../../../test/support/quickest.ts';
import { openTokens, type Tokens } from './index.ts';

/** Text that names a control token is plain text to us. */
const plain = { disallowedSpecial: new Set<string>() };

const samples = [
  '',
  'Hello, world!',
  "I'm sure they'll say it's DON'T — won't you?",
  'Übermäßige Größe, façade, naïve, Ærøskøbing',
  'Съешь ещё этих мягких французских булок, да выпей чаю.',
  '敏捷的棕色狐狸跳过了懒狗。漢字かな交じり文と、カタカナ。',
  'ขอให้มีความสุขมากๆ นะครับ',
  'क्षत्रिय विद्यार्थी ने संस्कृत पढ़ी',
  'الخط العربي جميل جدًّا ١٢٣',
  'שָׁלוֹם עֲלֵיכֶם',
  '👩‍👩‍👧‍👦 family, 🏳️‍🌈 flag, 🇫🇷, 𝒜𝓫𝓬',
  'const x = items.map((one) => `${one.id}: ${one.name}`);\n\n\t// 1234567 0x1F\r\n',
  '   leading,  double,   triple \n \n\n  \t end   ',
  'CamelCaseHTTPServer snake_case_name kebab-case //// ++++ === --- …',
  '<|endoftext|> <|im_start|>',
  'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0',
];

const { signal } = new AbortController();
const asking = { owner: '1', signal };

let tokens: Tokens;
beforeAll(async () => {
  tokens = await openTokens();
});

describe('a count', () => {
  test.each(samples)('equals gpt-tokenizer for %j', (text) => {
    expect(tokens.count(text)).toBe(countTokens(text, plain));
  });

  test('equals gpt-tokenizer for any text', () => {
    const words = fc.array(fc.constantFrom(...samples.flatMap((text) => text.split(/(\s+)/))), { maxLength: 40 }).map((all) => all.join(''));
    const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 200 }), fc.string({ unit: 'grapheme', maxLength: 200 }), words);
    fc.assert(
      fc.property(text, (one) => {
        expect(tokens.count(one)).toBe(countTokens(one, plain));
      }),
      { numRuns: 2000 },
    );
  });

  test('equals gpt-tokenizer where a piece is long enough for the heap', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'e', 't', 'o'), minLength: 49, maxLength: 1500 });
    fc.assert(
      fc.property(text, (one) => {
        expect(tokens.count(one)).toBe(countTokens(one, plain));
      }),
      { numRuns: 200 },
    );
  });

  test('is never more than the bytes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(tokens.count(text)).toBeLessThanOrEqual(Buffer.byteLength(text));
      }),
    );
  });
});

describe('the tokens of a text', () => {
  test('are as many as its count says, and joined they are the text', () => {
    const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 100 }), fc.constantFrom(...samples));
    fc.assert(
      fc.property(text, (one) => {
        const split = tokens.split(one);
        expect(split).toHaveLength(tokens.count(one));
        expect(split.join('')).toBe(one.toWellFormed());
      }),
      { numRuns: 1000 },
    );
  });

  test.each(samples.filter((text) => encode(text, plain).length < 12))('are those of gpt-tokenizer for %j', (text) => {
    expect(tokens.split(text)).toHaveLength(encode(text, plain).length);
  });
});

describe('the sum over many texts', () => {
  test('is the same whichever thread counts', async () => {
    const long = samples.join('\n').repeat(100);
    expect(await tokens.countAll([long], asking)).toBe(countTokens(long, plain));
    expect(await tokens.countAll([...samples, long, '', 'a'], asking)).toBe(
      samples.reduce((sum, text) => sum + tokens.count(text), tokens.count(long) + tokens.count('a')),
    );
    expect(
      await tokens.countAll(
        Array.from({ length: 10_000 }, () => 'hello world'),
        asking,
      ),
    ).toBe(20_000);
  });

  test('of a small text does not wait for a large one', async () => {
    const ended: string[] = [];
    const large = tokens.countAll(['q'.repeat(4_000_000)], asking).then(() => ended.push('large'));
    const small = tokens.countAll(['small '.repeat(4000)], asking).then(() => ended.push('small'));
    await Promise.all([large, small]);
    expect(ended).toEqual(['small', 'large']);
  });

  test('of one user does not wait for the many texts of another', async () => {
    const ended: string[] = [];
    const count = (owner: string, length: number) => tokens.countAll(['q'.repeat(length)], { owner, signal }).then(() => ended.push(owner));
    const many = Array.from({ length: 30 }, () => count('1', 100_000));
    await Promise.all([...many, count('2', 200_000)]);
    expect(ended.indexOf('2')).toBeLessThan(5);
  });

  test('is given up between two pieces when its client leaves, and the next is counted', async () => {
    const client = new AbortController();
    const large = tokens.countAll(['q'.repeat(20_000_000)], { owner: '1', signal: client.signal });
    await tokens.countAll(['small '.repeat(4000)], { owner: '2', signal });
    client.abort(new Error('gone'));
    await expect(large).rejects.toThrow('gone');
    expect(await tokens.countAll(['hello world '.repeat(5000)], asking)).toBeGreaterThan(9999);
  });

  test('is refused where too many texts of its user are being counted', async () => {
    const client = new AbortController();
    const one = 'q'.repeat(20_000);
    const many = Array.from({ length: 1000 }, () => tokens.countAll([one], { owner: '1', signal: client.signal }));
    const ends = Promise.allSettled(many);
    await expect(tokens.countAll([one], asking)).rejects.toMatchObject({ name: 'QueueFull', whose: 'owner' });
    expect(await tokens.countAll([one], { owner: '2', signal })).toBeGreaterThan(0);
    client.abort(new Error('gone'));
    await ends;
  });

  test.each(
    Object.entries({
      'one letter': 'a',
      spaces: ' ',
      newlines: '\n',
      emoji: '😀',
      'a mix': 'aA1 ',
      'one ideograph': '中',
      'combining marks': '\u0301',
      'lone surrogates': '\ud83d',
      apostrophes: "'",
      'broken lines': ' \r\n\t',
    }),
  )('of 1 MB of %s is quick and leaves the event loop free', async (_, unit) => {
    const text = unit.repeat(1_000_000 / Buffer.byteLength(unit));
    const began = performance.now();
    expect(await tokens.countAll([text], asking)).toBeGreaterThan(0);
    expect(performance.now() - began).toBeLessThan(5000 * slowness()); // 0.1–0.5 s alone; the machine may be busy
    const onThisThread = () => cpuMillisecondsUntil(() => tokens.countAll([text], asking));
    expect(await quickest(50, onThisThread)).toBeLessThan(50); // 3 ms: handing the text over
  });
});
