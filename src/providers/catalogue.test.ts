import { Type } from 'typebox';
import { describe, expect, test } from 'vitest';
import { checked } from '#kit/json/check';
import { catalogueDate } from '#core/catalogue-date';
import { abilities } from '#core/target';
import catalogue from './catalogue.json' with { type: 'json' };
import { costOfSearches, dearestOf, hasCountRates, type Price } from '#core/price';
import { catalogued, common, withVendorRates } from './catalogue.ts';

const tokens = Type.Union([Type.Integer({ minimum: 1 }), Type.Null()]);
const amount = Type.Optional(Type.Number({ exclusiveMinimum: 0 }));
const rates = { input: Type.Number({ minimum: 0 }), output: Type.Number({ minimum: 0 }), cached: amount, cacheWrite: amount, cacheWrite1h: amount };
const counts = { picture: amount, second: amount, character: amount };
const searches = { search: Type.Optional(Type.Number({ minimum: 0 })), searchedAnswer: amount };
const strict = { additionalProperties: false };
const Entry = Type.Object(
  {
    limits: Type.Object({ context: tokens, output: tokens }, strict),
    price: Type.Union([
      Type.Object({ ...rates, ...counts, ...searches, long: Type.Optional(Type.Object({ above: Type.Integer({ minimum: 1 }), ...rates }, strict)) }, strict),
      Type.Null(),
    ]),
    abilities: Type.Array(Type.Enum([...abilities]), {
      minItems: 1,
      uniqueItems: true,
    }),
  },
  strict,
);
const Catalogue = Type.Object(
  {
    date: Type.String({ pattern: '^2\\d{3}-[01]\\d-[0-3]\\d$' }),
    vendors: Type.Record(
      Type.String(),
      Type.Object(
        {
          hosts: Type.Union([Type.Array(Type.String({ pattern: '^[a-z*][a-z.-]+$' })), Type.Null()]),
          search: Type.Optional(Type.Number({ exclusiveMinimum: 0 })),
          cacheWrites: Type.Optional(Type.Object({ cacheWrite: Type.Number({ minimum: 1 }), cacheWrite1h: Type.Number({ minimum: 1 }) }, strict)),
          models: Type.Record(Type.String(), Entry),
        },
        strict,
      ),
    ),
  },
  strict,
);

describe('the catalogue', () => {
  test('has the form that is read, and the day that the settings speak of', () => {
    expect(checked(Catalogue, ({ message }) => new Error(message))(catalogue)).toBe(catalogue);
    expect(catalogue.date).toBe(catalogueDate);
  });

  const all = Object.entries(catalogue.vendors).flatMap(([vendor, { models }]) =>
    Object.entries(models).map(([name, entry]) => [vendor, name, entry as Written] as const),
  );

  test('what makes text costs something to say, and nothing that is cached costs more than what is not', () => {
    for (const [, name, { price, abilities }] of all) {
      if (!price || hasCountRates(price)) continue;
      expect(price.input, `of ${name}`).toBeGreaterThan(0);
      expect(price.output > 0, `of ${name}`).toBe(!abilities.includes('embeddings'));
      for (const one of [price, ...(price.long ? [price.long] : [])]) expect(one.cached ?? 0, `of ${name}`).toBeLessThan(one.input);
      if (price.long) expect([price.long.input > price.input, price.long.output > price.output], `of ${name}`).toEqual([true, true]);
    }
  });

  test('no answer is longer than its context, and open models have no price: it is their host who makes it', () => {
    for (const [vendor, name, { limits, price }] of all) {
      expect((limits.output ?? 0) <= (limits.context ?? Infinity), `of ${name}`).toBe(true);
      if (vendor === 'open') expect(price, `of ${name}`).toBeNull();
    }
  });

  // https://platform.claude.com/docs/en/models/opus-4-6/overview
  test('each of Claude has its limits: a request without one would be cut short', () => {
    for (const [vendor, name, { limits }] of all) if (vendor === 'anthropic') expect(limits.output, `of ${name}`).toBeGreaterThanOrEqual(64_000);
    expect(catalogued('https://api.anthropic.com', 'claude-sonnet-4-6')).toMatchObject({ limits: { context: 1_000_000, output: 128_000 } });
  });

  test('an entry counts for the addresses of its vendor only, with a date behind its name too', () => {
    const mini = { limits: { context: 128_000, output: 16_384 }, price: { input: 0.15, output: 0.6, cached: 0.075 } };
    expect(catalogued('https://api.openai.com/v1', 'gpt-4o-mini')).toMatchObject(mini);
    expect(catalogued('https://API.openai.com', 'gpt-4o-mini-2024-07-18')).toMatchObject(mini);
    expect(catalogued('https://api.anthropic.com', 'claude-haiku-4-5-20251001')).toMatchObject({ limits: { output: 64_000 } });
    expect(catalogued('https://{region}-aiplatform.googleapis.com/v1', 'gemini-2.5-flash')).toMatchObject({ price: { input: 0.3 } });
    expect(catalogued('https://aiplatform.googleapis.com/v1', 'gemini-2.5-flash')).toBeDefined();
    for (const address of [
      'http://127.0.0.1:8000/v1',
      'https://api.openai.com.evil.example/v1',
      'https://evil.example/api.openai.com',
      'https://evilaiplatform.googleapis.com.example',
      '',
    ])
      expect(catalogued(address, 'gpt-4o-mini'), `at ${address}`).toBeUndefined();
    for (const name of ['gpt-4o-mini-', 'gpt-4o-mini-x', '__proto__', 'constructor', ''])
      expect(catalogued('https://api.openai.com/v1', name), `of ${name}`).toBeUndefined();
  });

  test('what is unknown is absent and not 0', () => {
    expect(catalogued('http://127.0.0.1:8000/v1', 'openai/gpt-oss-20b')).toEqual({
      limits: { context: 131_072 },
      abilities: ['tools', 'json-schema', 'reasoning'],
    });
    expect(catalogued('https://api.openai.com/v1', 'gpt-5.5')).toEqual({ limits: {}, abilities: ['tools', 'vision', 'json-schema', 'reasoning'] });
  });

  test('what is spoken or written down has its price by the character and the second', () => {
    expect(catalogued('https://api.openai.com/v1', 'tts-1')?.price).toEqual({ input: 0, output: 0, character: 0.000015 });
    expect(catalogued('https://api.openai.com/v1', 'whisper-1')?.price).toEqual({ input: 0, output: 0, second: 0.0001 });
  });

  test('writing into the cache costs 1.25 times a prompt for minutes, with Claude twice for an hour, in long prompts too', () => {
    const claude = all.filter(([vendor]) => vendor === 'anthropic');
    const newest = all.filter(([vendor, name]) => vendor === 'openai' && /^gpt-(5\.[6-9]|[6-9])/.test(name));
    for (const [vendor, name, { price }] of [...claude, ...newest])
      for (const one of price ? [price, ...(price.long ? [price.long] : [])] : []) {
        expect(one.cacheWrite, `of ${name}`).toBeCloseTo(one.input * 1.25, 9);
        if (vendor === 'anthropic') expect(one.cacheWrite1h, `of ${name}`).toBeCloseTo(one.input * 2, 9);
      }
    expect([claude.length > 5, newest.filter(([, , { price }]) => price).length > 5]).toEqual([true, true]);
  });

  test('a price that somebody names for a model at the address of Anthropic has the rates for writing that it leaves out', () => {
    const named = { input: 3, output: 15, long: { above: 200_000, input: 6, output: 22.5, cacheWrite: 7 } };
    expect(withVendorRates(named, 'https://api.anthropic.com/v1')).toEqual({
      ...named,
      search: 0.01,
      cacheWrite: 3.75,
      cacheWrite1h: 6,
      long: { ...named.long, cacheWrite1h: 12 },
    });
    expect(withVendorRates(named, 'https://api.anthropic.com.example')).toBe(named);
    expect(withVendorRates(named, 'https://api.openai.com/v1')).toEqual({ ...named, search: 0.01 });
    expect(withVendorRates({ ...named, search: 1 }, 'https://api.openai.com/v1')).toMatchObject({ search: 1 });
  });

  test('of several targets the smallest limits hold, and what all can do', () => {
    const at = (name: string) => catalogued('https://api.openai.com/v1', name);
    expect(common([at('gpt-5'), at('gpt-5.1')])).toMatchObject({ limits: { context: 400_000 } });
    expect(common([at('gpt-5'), at('gpt-4o')])).toEqual({
      limits: { context: 128_000, output: 16_384 },
      longestOutput: 128_000,
      abilities: ['tools', 'vision', 'json-schema'],
    });
    expect(common([at('gpt-5'), at('gpt-5.1')])).not.toHaveProperty('longestOutput');
    expect(common([at('gpt-5'), undefined])).toBeUndefined();
    expect(common([at('gpt-5'), at('gpt-6.2-sol'), at('claude')])).toBeUndefined();
    expect(common([])).toBeUndefined();
  });
});

interface Written {
  readonly limits: { readonly context: number | null; readonly output: number | null };
  readonly price: Price | null;
  readonly abilities: readonly string[];
}

test('an answer of Gemini 2.5 costs the same however often it searched, one of Gemini 3 each search', () => {
  const google = 'https://generativelanguage.googleapis.com/v1beta';
  const priceOf = (model: string) => withVendorRates(catalogued(google, model)!.price!, google);
  const costs = (price: Price) => [0, 1, 3].map((searches) => Number(costOfSearches(price, searches).toFixed(6)));
  expect(costs(priceOf('gemini-2.5-flash'))).toEqual([0, 0.035, 0.035]);
  expect(costs(priceOf('gemini-3-flash-preview'))).toEqual([0, 0.014, 0.042]);
  expect(costs(dearestOf([priceOf('gemini-2.5-flash'), priceOf('gemini-3-flash-preview')]))[2]).toBeGreaterThan(0.042);
});
