import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { openTokens } from '#kit/tokens/index';
import type { GenerateCall } from '#core/call';
import type { Part, Turn } from '#core/conversation';
import { callTexts, promptSize, promptTokens } from '#core/measure';

const tokens = await openTokens();
const asking = { caller: { userId: 1 }, signal: new AbortController().signal };
const tokensOf = (one: GenerateCall) => promptTokens(one, tokens.countAll, asking);

const call = (over: Partial<GenerateCall>): GenerateCall => ({
  model: 'm',
  turns: [],
  tools: [],
  output: { type: 'text' },
  sampling: {},
  stream: false,
  extra: {},
  ...over,
});
const turn = (...parts: Part[]): Turn => ({ role: 'user', parts });

const media = { type: 'media', kind: 'image', base64: 'aaaa' } as const;
const text = fc.string({ unit: 'grapheme' }).map((text) => ({ type: 'text', text }) as const);
const part: fc.Arbitrary<Part> = fc.oneof(
  text,
  fc.constant(media),
  fc.record({ type: fc.constant('tool-call' as const), id: fc.string(), name: fc.string(), json: fc.json() }),
  fc.record({ type: fc.constant('tool-result' as const), id: fc.string(), parts: fc.array(fc.oneof(text, fc.constant(media))) }),
  fc.record({ type: fc.constant('thought' as const), text: fc.string() }),
);
const calls = fc
  .record({ turns: fc.array(fc.array(part).map((parts) => turn(...parts))), names: fc.array(fc.string()), schema: fc.dictionary(fc.string(), fc.string()) })
  .map(({ turns, names, schema }) =>
    call({ turns, tools: names.map((name) => ({ type: 'function', name, parameters: schema })), output: { type: 'schema', name: 'answer', schema } }),
  );

describe('the tokens of a prompt', () => {
  test('are those of its texts, 4 per turn and 3 for the answer', async () => {
    const turns = [turn({ type: 'text', text: 'hello world' }), turn({ type: 'text', text: 'again' })];
    expect(await tokensOf(call({ turns }))).toBe(tokens.count('hello world') + tokens.count('again') + 2 * 4 + 3);
  });

  test('count an image as 765, in a tool result too, and never its bytes', async () => {
    const image = { ...media, base64: 'A'.repeat(100_000) };
    expect(await tokensOf(call({ turns: [turn(image)] }))).toBe(765 + 4 + 3);
    expect(await tokensOf(call({ turns: [turn({ type: 'tool-result', id: 'a', parts: [image] })] }))).toBe(765 + 4 + 3);
  });

  test('include tools and the schema of the answer', () => {
    const parameters = { type: 'object' };
    const all = call({
      tools: [
        { type: 'function', name: 'f', description: 'does', parameters },
        { type: 'custom', name: 'c', format: { type: 'text' } },
        { type: 'foreign', dialect: 'd', value: { type: 'x' } },
      ],
      output: { type: 'schema', schema: parameters },
    });
    expect([...callTexts(all)].filter(Boolean)).toEqual(['f', 'does', '{"type":"object"}', 'c', '{"type":"text"}', '{"type":"x"}', '{"type":"object"}']);
  });

  test('are never more than the bound', async () => {
    await fc.assert(
      fc.asyncProperty(calls, async (one) => {
        const { fixed, bytes } = promptSize(one);
        expect(await tokensOf(one)).toBeLessThanOrEqual(fixed + bytes);
      }),
    );
  });

  test('a deep schema is measured like any other', async () => {
    let deep = {};
    for (let level = 0; level < 100_000; level++) deep = { items: deep };
    expect(await tokensOf(call({ output: { type: 'schema', schema: deep } }))).toBeGreaterThan(100_000);
  });
});
