import fc from 'fast-check';
import { countTokens, encode } from 'gpt-tokenizer/encoding/cl100k_base';
import { expect, test } from 'vitest';
import { openTokens } from './index.ts';

/** Text that names a control token is plain text to us. */
const plain = { disallowedSpecial: new Set<string>() };
const asking = { owner: '1', signal: new AbortController().signal, vocabulary: 'cl100k' } as const;

const samples = [
  'Hello, world!',
  "I'm sure they'll say it's DON'T — won't you? 'security' 'reality 'LL",
  'Übermäßige Größe, façade, naïve',
  '敏捷的棕色狐狸跳过了懒狗。漢字かな交じり文と、カタカナ。',
  'क्षत्रिय विद्यार्थी ने संस्कृत पढ़ी',
  '👩‍👩‍👧‍👦 family, 🏳️‍🌈 flag, 𝒜𝓫𝓬',
  'const x = items.map((one) => `${one.id}: ${one.name}`);\n\n\t// 1234567 0x1F\r\n',
  '   leading,  double,   triple \n \n\n  \t end   ',
  'CamelCaseHTTPServer snake_case //// ++++ === ---/\n\n/ …',
  '<|endoftext|>',
];

test.each(samples)('the count by cl100k equals gpt-tokenizer for %j', async (text) => {
  expect(await (await openTokens()).countAll([text], asking)).toBe(countTokens(text, plain));
});

test('the count by cl100k equals gpt-tokenizer for any text, and those of several texts are added', async () => {
  const tokens = await openTokens();
  const words = fc.array(fc.constantFrom(...samples.flatMap((text) => text.split(/(\s+)/))), { maxLength: 40 }).map((all) => all.join(''));
  const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 200 }), fc.string({ unit: 'grapheme', maxLength: 200 }), words);
  const all = fc.sample(text, 1000);
  for (const one of all) expect([one, await tokens.countAll([one], asking)]).toEqual([one, countTokens(one, plain)]);
  expect(await tokens.countAll(all, asking)).toBe(all.reduce((sum, one) => sum + countTokens(one, plain), 0));
});

test('tokens become their text again, and others are refused', async () => {
  const decode = await (await openTokens()).decoder();
  for (const text of samples) expect(decode(encode(text, plain))).toBe(text);
  expect(decode(encode('日', plain).slice(0, 1))).toMatch(/^(?:日|\uFFFD+)$/);
  for (const token of [100_256, 100_257, -1, 1.5, NaN]) expect(() => decode([token])).toThrow(RangeError);
});
