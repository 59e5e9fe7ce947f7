import { beforeEach, describe, expect, test } from 'vitest';
import { askFace, type Face } from '../support/all-faces.ts';
import { flattening } from '#dialects/shared/flat-root';
import { schemaBudget } from '#dialects/shared/schema-budget';
import type { JsonObject } from '#core/json';
import { cpuMilliseconds } from '../support/cpu-time.ts';
import { quickest } from '../support/quickest.ts';
import { always, ok } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** Tools of MCP servers with alternatives at the root of their schema, which OpenAI and Claude refuse: makenotion/notion-mcp-server#102, anthropics/claude-code#5319. */

const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));
beforeEach(() => upstream.script(always(ok())));

const toolOf = (face: Face, schema: object): object => {
  if (face === 'chat') return { tools: [{ type: 'function', function: { name: 'f', parameters: schema } }] };
  if (face === 'responses') return { tools: [{ type: 'function', name: 'f', parameters: schema, strict: false }] };
  if (face === 'messages') return { tools: [{ name: 'f', input_schema: { ...schema, type: 'object' } }] };
  return { tools: [{ functionDeclarations: [{ name: 'f', parametersJsonSchema: schema }] }] };
};

interface Sent {
  readonly tools: readonly {
    readonly input_schema?: object;
    readonly parameters?: object;
    readonly function?: { readonly parameters: object };
    readonly functionDeclarations?: readonly { readonly parametersJsonSchema: object }[];
  }[];
}

async function sentSchema(face: Face, model: string, schema: object, headers: Readonly<Record<string, string>> = {}) {
  const { status, headers: answered } = await askFace(server, face, { model, content: 'hi', stream: false, more: toolOf(face, schema), headers });
  const [tool] = (upstream.requests.at(-1)?.json as Sent | undefined)?.tools ?? [];
  return {
    status,
    warnings: answered.get('x-dragoman-warnings') ?? '',
    schema: tool?.input_schema ?? tool?.parameters ?? tool?.function?.parameters ?? tool?.functionDeclarations?.[0]?.parametersJsonSchema,
  };
}

const string = { type: 'string' };
const either = {
  type: 'object',
  description: 'Where it is.',
  properties: { all: { type: 'boolean' } },
  anyOf: [
    { properties: { path: string }, required: ['path'] },
    { properties: { url: string }, required: ['url'] },
  ],
};
const flat = {
  type: 'object',
  description: 'Where it is.\nSet at least one of these: path; or url.',
  properties: { all: { type: 'boolean' }, path: string, url: string },
};

const others = (own: Face) => (['chat', 'responses', 'messages', 'gencompat'] as const).filter((face) => face !== own);

describe.each([
  ['chat', 'chat'],
  ['responses', 'responses'],
  ['messages', 'messages'],
] as const)('a provider of %s', (model, own) => {
  test.each(others(own))('gets one object with the properties of all alternatives from a %s client', async (face) => {
    expect(await sentSchema(face, model, either)).toMatchObject({
      status: 200,
      schema: flat,
      warnings: expect.stringContaining('at the root of a schema'),
    });
    expect((await sentSchema(face, model, either)).schema).not.toHaveProperty('anyOf');
    expect((await sentSchema(face, model, either, { 'x-dragoman-strict': 'true' })).status).toBe(400);
  });

  test('gets what a client of its own interface wrote', async () => {
    expect((await sentSchema(own, model, { ...either, properties: {} })).schema).toEqual({ ...either, properties: {} });
  });

  test('is told what all alternatives require, and both meanings of a property', async () => {
    const a = { type: 'object', properties: { kind: { const: 'a' }, x: { type: 'integer' } }, required: ['kind', 'x'] };
    const b = { type: 'object', properties: { kind: { const: 'b' } }, required: ['kind'] };
    const schema = {
      oneOf: [{ $ref: '#/$defs/A' }, { $ref: '#/$defs/B' }, { $ref: '#/$defs/A' }],
      allOf: [{ required: ['y'], properties: { y: string } }],
      $defs: { A: a, B: b },
    };
    expect((await sentSchema('gencompat', model, schema)).schema).toEqual({
      type: 'object',
      description: 'Set exactly one of these: x; or none of them.',
      properties: { kind: { anyOf: [{ const: 'a' }, { const: 'b' }] }, x: { type: 'integer' }, y: string },
      required: ['kind', 'y'],
      $defs: { A: a, B: b },
    });
  });
});

test('Gemini gets them as they are', async () => {
  expect((await sentSchema('chat', 'gemini', either)).schema).toEqual(either);
});

/** What a schema becomes at Claude, from a client of Google. */
const sent = async (schema: object) => (await sentSchema('gencompat', 'messages', schema)).schema;

test('alternatives that share a part each have what it requires', async () => {
  const alternative = (name: string) => ({ allOf: [{ $ref: '#/$defs/B' }, { required: [name], properties: { [name]: string } }] });
  expect(await sent({ anyOf: [alternative('x'), alternative('y')], $defs: { B: { properties: { id: string }, required: ['id'] } } })).toMatchObject({
    description: 'Set at least one of these: x; or y.',
    properties: { id: string, x: string, y: string },
    required: ['id'],
  });
});

test.each<[string, object, object]>([
  ['others of its keywords', { minLength: 2 }, { type: 'string', minLength: 2 }],
  ['another value of one', { type: 'null' }, { allOf: [string, { type: 'null' }] }],
  ['the same', string, string],
])('what allOf says of a property holds beside what the root says: %s', async (_, second, expected) => {
  expect(await sent({ properties: { a: string }, allOf: [{ properties: { a: second } }] })).toMatchObject({ properties: { a: expected } });
});

test('what alternatives say of a property of the root holds where all of them speak of it', async () => {
  const kind = (value: string, more: object = {}) => ({ properties: { kind: { const: value }, ...more } });
  expect(await sent({ properties: { kind: string, path: string }, anyOf: [kind('a'), kind('b', { path: { minLength: 1 } })] })).toMatchObject({
    properties: { kind: { type: 'string', anyOf: [{ const: 'a' }, { const: 'b' }] }, path: string },
  });
});

test('what cannot be merged is told', async () => {
  const condition = { if: { required: ['a'] }, else: { required: ['b'] } };
  const schema = { allOf: [condition, { not: { required: ['c'] } }, { $ref: 'other.json#/A' }], anyOf: [true, { required: ['d'] }] };
  expect(await sent(schema)).toMatchObject({
    description: [
      'Set at least one of these: none of them; or d.',
      '{if: {"required":["a"]}, else: {"required":["b"]}}',
      '{not: {"required":["c"]}}',
      '{$ref: "other.json#/A"}',
    ].join('\n'),
  });
  const { schema: atOpenAi } = await sentSchema('gencompat', 'chat', {
    properties: { a: string },
    not: { required: ['a'] },
    enum: [{}, { a: 'x'.repeat(2000) }],
  });
  expect(atOpenAi).toMatchObject({ description: expect.stringMatching(/^\{not: \{"required":\["a"\]\}, enum: \[\{\},\{"a":"x{900,960}…$/) });
});

const flattened = (schema: JsonObject) => flattening(['anyOf'])({ type: 'function', name: 'f', parameters: schema }, new Set(), schemaBudget()).parameters!;

test('schemas that refer to each other thousands of times over cost little', async () => {
  const names = Array.from({ length: 40 }, (_, at) => `d${at}`);
  const anyOf = names.map((name) => ({ $ref: `#/$defs/${name}` }));
  const schema = () => ({ anyOf, $defs: Object.fromEntries(names.map((name) => [name, { anyOf, properties: { [name]: string } }])) });
  expect(Object.keys(flattened(schema())['properties'] ?? {})).toHaveLength(40);
  const spent = await quickest(50, async () => cpuMilliseconds(() => flattened(schema())));
  expect(spent).toBeLessThan(50);
});

test('schemas whose merged properties would multiply go as they came', async () => {
  const level = (depth: number) => Array.from({ length: 30 }, (_, at) => `d${depth}_${at}`);
  const defs = [1, 2, 3, 4].flatMap((depth) =>
    level(depth).map((name, at) => {
      const inner = level(depth + 1).map((other) => ({ $ref: `#/$defs/${other}` }));
      return [name, { [at % 2 ? 'anyOf' : 'allOf']: depth < 4 ? inner : [], properties: { p: { title: name, const: name } } }] as const;
    }),
  );
  const schema = () => ({ anyOf: level(1).map((name) => ({ $ref: `#/$defs/${name}` })), $defs: Object.fromEntries(defs) });
  const given = schema();
  expect(flattened(given)).toBe(given);
  expect(await quickest(50, async () => cpuMilliseconds(() => flattened(schema())))).toBeLessThan(50);
});
