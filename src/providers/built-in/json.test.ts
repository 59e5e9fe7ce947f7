import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ask, capital, distinct, holds, textOf, word } from '../../../test/support/built-in-model.ts';

const text = { type: 'string' };
const json = async (...asked: Parameters<typeof textOf>): Promise<unknown> => JSON.parse(await textOf(...asked));

describe('rules 2 and 7, JSON', () => {
  const person = {
    type: 'object',
    properties: { name: text, age: { type: 'integer' }, city: text },
    required: ['name', 'age', 'city'],
    additionalProperties: false,
  };

  test('values come from the message', () =>
    holds(fc.tuple(distinct(2), fc.integer({ min: 0, max: 999_999 })), async ([[name, city], age]) => {
      const output = { type: 'schema', schema: person } as const;
      expect(await json(`name: ${name}, the age is ${age} and city = "${city} ${city}"`, { output })).toEqual({ name, age, city: `${city} ${city}` });
      expect(await json(`${capital(name!)} is ${age} years old and lives in ${capital(city!)}.`, { output })).toEqual({
        name: capital(name!),
        age,
        city: capital(city!),
      });
    }));

  test('what is not in the message conforms all the same', async () =>
    expect(await json('json', { output: { type: 'schema', schema: person } })).toEqual({ name: 'unknown', age: 0, city: 'unknown' }));

  test('JSON that conforms and is asked to be repeated is the answer', () =>
    holds(fc.tuple(word, fc.nat()), async ([name, age]) => {
      const value = { name, age, city: 'Zürich "old town"' };
      expect(await json(`Say exactly: ${JSON.stringify(value)}`, { output: { type: 'schema', schema: person } })).toEqual(value);
      expect(await json(`Say exactly: ${JSON.stringify(value)}`, { output: { type: 'json' } })).toEqual(value);
    }));

  test('without a schema it is an object, with the keys that the message wants', () =>
    holds(distinct(3), async ([a, b, value]) => {
      expect(await json(`Answer in JSON with the keys "${a}" and "${b}". ${a}: ${value}.`, { output: { type: 'json' } })).toEqual({
        [a!]: value,
        [b!]: 'unknown',
      });
      expect(await json('Tell me a joke as JSON.', { output: { type: 'json' } })).toEqual({ answer: expect.stringContaining('built-in model') });
    }));

  test.each(['"', "'", '`'])('the mark %s that ends a quotation begins no value', (mark) =>
    holds(distinct(3), async ([a, b, c]) => {
      const [one, two, three] = [a, b, c].map((key) => `${mark}${key}${mark}`);
      const output = { type: 'json' } as const;
      const unknown = { [a!]: 'unknown', [b!]: 'unknown' };
      expect(await json(`Return JSON with the keys ${one} and ${two}`, { output })).toEqual(unknown);
      expect(await json(`Give me an object with the keys ${one}, ${two} and ${three}`, { output })).toEqual({ ...unknown, [c!]: 'unknown' });
      expect(await json(`JSON with the keys ${one} and ${two}; use ${a} ${three}`, { output })).toEqual({ ...unknown, [a!]: c });
    }),
  );

  test('a value ends where the next one is named', () =>
    holds(distinct(5), async ([a, b, one, two, three]) => {
      const output = { type: 'schema', schema: { type: 'object', properties: { [a!]: text, [`${b}_${b}`]: text } } } as const;
      const expected = { [a!]: `${one} ${two}`, [`${b}_${b}`]: three };
      for (const said of [
        `${a}=${one} ${two} ${b}_${b}=${three}`,
        `${a} = ${one} ${two} ${b}_${b} = ${three}`,
        `${a}: ${one} ${two} ${b}_${b}: ${three}`,
        `${a}: ${one} ${two} ${b} ${b}: ${three}`,
        `the ${a} is ${one} ${two} ${b} ${b} is ${three}`,
        `${a}: ${one} ${two},${b}-${b}: ${three}`,
        `"${a}": "${one} ${two}" "${b}_${b}": "${three}"`,
        `${a}=${one} ${two} other=${one} ${b}_${b}: ${three}`,
      ])
        expect(await json(said, { output })).toEqual(expected);
      expect(await json(`${a}: New ${capital(one!)}: ${two}`, { output })).toMatchObject({ [a!]: `New ${capital(one!)}` });
      expect(await json(`${a}: 10:30 ${b}-${b}: x=1`, { output })).toEqual({ [a!]: '10:30', [`${b}_${b}`]: 'x=1' });
    }));

  test('what looks like a label but is none of the schema is part of a value, or ends it at the colon', () =>
    holds(distinct(4), async ([name, one, two, three]) => {
      const output = { type: 'schema', schema: { type: 'object', properties: { [name!]: text } } } as const;
      const rows = [
        [`${name}: SELECT ${one} FROM ${two} WHERE id=5`, `SELECT ${one} FROM ${two} WHERE id=5`],
        [`${name}: select ${one} where ${two} = 3`, `select ${one} where ${two} = 3`],
        [`the ${name} is make ${capital(one!)}=${two} ${three}`, `make ${capital(one!)}=${two} ${three}`],
        [`${name}: ^${one}=${two}$`, `^${one}=${two}$`],
        [`${name}: ${one} ${two}: ${three}`, `${one} ${two}`],
        [`${name}: the ${one}: first ${two}…`, `the ${one}`],
        [`${name}=${one} ${two}=${three}`, one],
        [`${name}=${one}=${two} ${three}`, `${one}=${two} ${three}`],
      ] as const;
      for (const [said, value] of rows) expect(await json(said, { output })).toEqual({ [name!]: value });
    }));

  test('a list ends where the next value is named', () =>
    holds(distinct(5), async ([list, a, one, two, three]) => {
      const output = { type: 'schema', schema: { type: 'object', properties: { [list!]: { type: 'array', items: text }, [a!]: text } } } as const;
      for (const said of [`${list}: ${one}, ${two} ${a}: ${three}`, `${list}=${one},${two} ${a}=${three}`, `${list}: ${one} and ${two}, ${a}: ${three}`])
        expect(await json(said, { output })).toEqual({ [list!]: [one, two], [a!]: three });
    }));

  test('a member for the answer holds what would have been said', async () => {
    const schema = { type: 'object', properties: { answer: text }, required: ['answer'] };
    expect(await json('My name is Ada. What is my name?', { output: { type: 'schema', schema } })).toEqual({ answer: 'You told me: “My name is Ada.”' });
  });

  test('a schema that nothing satisfies is named', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string', minLength: 3, maxLength: 2 } }, required: ['a'] };
    await expect(ask('x', { output: { type: 'schema', schema } })).rejects.toMatchObject({
      code: 'invalid',
      details: { field: 'output.schema' },
      message: expect.stringContaining('#/properties/a'),
    });
  });
});
