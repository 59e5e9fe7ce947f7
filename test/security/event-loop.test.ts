import { expect, test } from 'vitest';
import { attacks } from './attacks.ts';
import { underAttack } from './under-attack.ts';

const named = (...names: readonly string[]) => attacks.filter(({ name }) => names.some((one) => name.startsWith(one)));

test('a schema, an answer or a body designed to keep the server busy holds its event loop for 50 ms at most', { timeout: 300_000 }, async () => {
  const some = named(
    'a pattern of 2,000 states',
    'a chain that forks,',
    'patterns of names,',
    'a code fence and',
    '100,000 small events, chat to over-gemini',
    'a tool call of 500 KB in pieces, responses to guarded',
    'a tool call of 250,000 new keys, gencompat to gpt-4o-mini',
    'a megabyte of objects of one new key in a',
    'a megabyte of objects of 16 new keys in an answer',
    'three megabytes of short texts in an answer',
    'seven megabytes of base64 in a stream',
    'seven megabytes of escapes in a stream, responses',
    'a megabyte of lists in lists in a',
    'a megabyte of empty objects in an answer',
    'a million zeros as messages, chat',
    '300,000 small objects as contents, generateContent',
    '110,000 keys of small objects',
    '30 MB of line feeds as input',
    'arguments of 900,000 values, chat/completions to guarded',
    '100,000 parts in the other spelling',
    '100,000 headers of a part',
    'a body of white space',
  );
  expect(some.length).toBeGreaterThan(20);
  expect((await underAttack(some)).unbearable).toEqual([]);
});
