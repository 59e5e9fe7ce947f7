import type { Json, JsonObject } from '#core/json';

const times = <Item>(count: number, item: (at: number) => Item) => Array.from({ length: count }, (_, at) => item(at));
const members = (count: number, member: Json): JsonObject => Object.fromEntries(times(count, (at) => [`k${at}`, member]));
/** A level that repeats what is inside of it is written down as often: 2¹⁴ times are half a megabyte of JSON. */
const deep = (levels: number, level: (inner: JsonObject) => JsonObject) =>
  times(levels, () => 0).reduce<JsonObject>((inner) => level(inner), { type: 'string' });
const long = (unit: string, length: number) => unit.repeat(Math.ceil(length / unit.length));
const object = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({ type: 'object', properties, ...more });

/** A row of definitions of which each names the next one. */
const chain = (length: number, link: (next: string, at: number) => JsonObject, last: JsonObject): JsonObject => ({
  $ref: '#/$defs/a0',
  $defs: { ...Object.fromEntries(times(length, (at) => [`a${at}`, link(`#/$defs/a${at + 1}`, at)])), [`a${length}`]: last },
});

/** A schema, and an answer that is held against it. */
export type Hostile = readonly [name: string, schema: JsonObject, answer: Json];

/** What clients may send as a JSON Schema to keep a server busy, of up to a megabyte each. */
export const hostileSchemas: readonly Hostile[] = [
  ['a pattern that backtracks', object({ a: { type: 'string', pattern: '^(a+)+$' } }), { a: `${long('a', 5000)}!` }],
  ['a pattern of 2,000 states', object({ a: { type: 'string', pattern: '^(a?){900}a{900}$' } }), { a: long('a', 30_000) }],
  ['a pattern of large classes', object({ a: { type: 'string', pattern: `^[${long('abcdefghij', 900)}]*x$` } }), { a: long('z', 30_000) }],
  ['a pattern for each of many items', { type: 'array', items: { type: 'string', pattern: '(x+x+)+y' } }, times(5000, () => 'xxxxxxxxxxxxxx')],
  ['a pattern that is everywhere', { type: 'array', items: { allOf: times(500, () => ({ pattern: '^(x|y)*z?$' })) } }, times(1000, () => 'xyxyxyxy')],
  [
    '3,000 different patterns',
    object(Object.fromEntries(times(3000, (at) => [`k${at}`, { type: 'string', pattern: `^(a{1,500}b?){1,3}${at}$` }]))),
    { k0: 'aaa' },
  ],
  ['patterns of unicode classes', object(members(500, { type: 'string', pattern: long('\\p{L}', 995) })), { k0: long('é', 20_000) }],
  ['patterns of negated classes', object(Object.fromEntries(times(2000, (at) => [`k${at}`, { type: 'string', pattern: `${long('[^a]', 900)}${at}` }]))), {}],
  ['patterns of names', { type: 'object', patternProperties: Object.fromEntries(times(3000, (at) => [`^(a|b)*${at}`, {}])) }, members(2000, 1)],
  [
    'patterns of names that are required',
    { type: 'object', patternProperties: members(3000, { type: 'string' }), required: times(3000, (at) => `ab${at}`) },
    {},
  ],
  ['a sample that repeats', object({ a: { type: 'string', pattern: '^(\\w{1,50}\\s){30,}$', minLength: 60_000 } }), { a: long('ab ', 60_000) }],
  ['long samples', object(members(500, { type: 'string', minLength: 60_000, pattern: '^[ab]+$' })), {}],
  ['a chain of 10,000 references', chain(9990, ($ref) => ({ $ref }), { type: 'string' }), 'x'],
  ['a chain that forks', chain(60, ($ref) => ({ allOf: [{ $ref }, { $ref }] }), { type: 'string' }), 'x'],
  ['a chain that forks and fails', chain(60, ($ref) => ({ anyOf: [{ $ref }, { $ref }] }), { type: 'number' }), 'x'],
  ['a chain of one of two', chain(60, ($ref) => ({ oneOf: [{ $ref }, { $ref }] }), { type: 'string' }), 'x'],
  ['a chain of denials', chain(60, ($ref) => ({ not: { allOf: [{ $ref }, { $ref }] } }), { type: 'string' }), 'x'],
  ['2⁴⁰ members', chain(40, ($ref) => object({ l: { $ref }, r: { $ref } }, { required: ['l', 'r'] }), { type: 'string' }), { l: {}, r: {} }],
  ['2⁴⁰ items', chain(40, ($ref) => ({ type: 'array', items: { $ref }, minItems: 2 }), { type: 'string' }), [[], []]],
  ['references of 100 KB', { anyOf: times(8, (at) => ({ $ref: `#/${long('a/', 100_000)}${at}` })) }, 'x'],
  ['many long references', { anyOf: times(900, (at) => ({ $ref: `#/$defs/${long('~1', 1000)}${at}` })) }, 'x'],
  ['references of many steps', { anyOf: times(900, () => ({ $ref: `#${long('/anyOf/0', 1000)}` })) }, 'x'],
  ['a reference to itself', { $ref: '#' }, 'x'],
  ['a reference to all of itself', { allOf: [{ $ref: '#' }, { $ref: '#' }] }, 'x'],
  ['itself as an item', { type: 'array', items: { $ref: '#' }, minItems: 3 }, [[[], [], []], [], []]],
  ['5,000 choices that all fit', { oneOf: times(5000, () => ({ type: 'string' })) }, 'x'],
  ['9,000 choices that fail', { anyOf: times(9000, () => ({ type: 'string', minLength: 3, maxLength: 2 })) }, 'abc'],
  ['choices of many items', { type: 'array', items: { anyOf: times(2000, (at) => ({ const: at })) } }, times(5000, () => 'x')],
  ['choices of large objects', { ...object(members(2000, {})), anyOf: times(900, (at) => object({ [`k${at}`]: { type: 'string' } })) }, {}],
  [
    'choices beside many keywords',
    { ...Object.fromEntries(times(5000, (at) => [`x-${at}`, 1])), anyOf: times(3000, () => ({ type: 'null', const: 1 })) },
    null,
  ],
  ['3³⁰ ways to fail', { allOf: [...times(30, (at) => ({ anyOf: [{ minLength: at + 1 }, { maxLength: 99 - at }] })), { maxLength: 0 }] }, 'abc'],
  [
    'conditions inside of conditions',
    chain(50, ($ref) => Object.fromEntries(['if', 'then', 'else'].map((keyword) => [keyword, { $ref }])), { type: 'string' }),
    'x',
  ],
  ['14 levels of all, each of them twice', deep(14, (one) => ({ allOf: [one, one, { minLength: 1 }] })), 'x'],
  ['50 levels of lists', deep(25, (items) => ({ type: 'array', items, minItems: 4 })), times(4, () => times(4, () => []))],
  ['50 levels of members', deep(25, (a) => object({ a, b: { type: 'array', items: { type: 'string' }, minItems: 500 } }, { required: ['a', 'b'] })), {}],
  ['an enumeration of 9,000', { type: 'array', items: { enum: times(9000, (at) => `value${at}`) } }, times(9000, () => 'value')],
  ['an enumeration of objects', { type: 'array', items: { enum: times(500, (at) => members(10, at)) } }, times(500, () => members(10, 'x'))],
  ['an enumeration of long texts', { enum: times(900, (at) => `${long('ab cD', 1000)}${at}`) }, `${long('ab cD', 1000)}!`],
  ['a constant that is repeated', { type: 'array', minItems: 2000, items: { const: long('x', 100_000) } }, ['x']],
  ['a constant object that is repeated', { type: 'array', minItems: 2000, items: { const: members(4000, 'abc') } }, [members(4000, 'abc')]],
  ['a default that is repeated', { type: 'array', minItems: 2000, items: { type: 'string', default: long('x', 60_000) } }, ['x']],
  ['items that must differ', { type: 'array', uniqueItems: true, minItems: 9000 }, times(9000, (at) => ({ b: [at, { d: at, c: 1 }], a: 'x' }))],
  ['different long texts', { type: 'array', items: { type: 'string', minLength: 50_000 }, minItems: 10_000, uniqueItems: true }, []],
  ['long texts', { type: 'array', items: { type: 'string', minLength: 65_000 }, minItems: 15_000 }, []],
  ['a list of a million', { type: 'array', items: { type: 'null' }, minItems: 1_000_000 }, []],
  ['lists of lists', { type: 'array', minItems: 1000, items: { type: 'array', minItems: 1000, items: { type: 'boolean' } } }, [[true]]],
  ['what a list must contain', { type: 'array', contains: { enum: times(5000, (at) => at) }, minContains: 10_000 }, times(9000, () => 'x')],
  ['9,000 required members', object(members(9000, { type: 'string' }), { required: times(9000, (at) => `k${at}`) }), members(9000, 'x')],
  ['9,000 optional members', object(members(9000, { type: 'string' }), { required: [] }), members(9000, 1)],
  ['9,000 dates', object(members(9000, { type: 'string', format: 'email' })), members(9000, 'a@b.example')],
  ['9,000 numbers', object(members(9000, { type: 'number', minimum: 1e9 })), members(9000, 1)],
  ['9,000 members and a minimum', object(members(9000, {}), { minProperties: 9000, required: [] }), {}],
  [
    'members that need others',
    { type: 'object', dependentRequired: Object.fromEntries(times(900, (at) => [`k${at}`, times(100, (to) => `k${to}`)])) },
    members(900, 1),
  ],
  ['names of 100 KB', object(Object.fromEntries(times(9, (at) => [`${at}${long('kA_', 100_000)}`, { type: 'string' }]))), {}],
  ['names of names', { type: 'object', propertyNames: { anyOf: times(900, (at) => ({ const: `${at}` })) } }, members(5000, 1)],
  ['a type of 9,000 words', { type: times(9000, (at) => `word${at}`) }, 'x'],
  ['a type of 100 KB', { type: 'array', items: { type: long('String', 100_000) } }, times(5000, () => 'x')],
  ['lengths of 100 KB', { type: 'array', items: { minLength: long('1', 100_000) } }, times(5000, () => 'x')],
  ['a format of 100 KB', { type: 'array', items: { type: 'string', format: long('date', 100_000) } }, times(5000, () => 'x')],
  ['multiples', { type: 'array', minItems: 5000, items: { type: 'number', multipleOf: 0.000_1, minimum: 5e-324 } }, times(5000, () => 0.1)],
];
