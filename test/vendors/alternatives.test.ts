import { beforeEach, describe, expect, test } from 'vitest';
import { askFace, type Face } from '../support/all-faces.ts';
import { withFlatRoot } from '#dialects/shared/flat-root';
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

test('a schema that refers to itself hundreds of times over costs little', async () => {
  const names = Array.from({ length: 200 }, (_, at) => `d${at}`);
  const anyOf = names.map((name) => ({ $ref: `#/$defs/${name}` }));
  const schema = { anyOf, $defs: Object.fromEntries(names.map((name) => [name, { anyOf, properties: { [name]: string } }])) };
  const tool = { type: 'function', name: 'f', parameters: schema } as const;
  expect(Object.keys(withFlatRoot(tool, ['anyOf'], new Set()).parameters?.['properties'] ?? {})).toHaveLength(200);
  const spent = await quickest(50, async () => cpuMilliseconds(() => withFlatRoot(tool, ['anyOf'], new Set())));
  expect(spent).toBeLessThan(50);
});
