import { beforeEach, describe, expect, test } from 'vitest';
import { askFace } from '../support/all-faces.ts';
import { always, ok } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** Schemas of tools in older drafts of JSON Schema, which OpenAI and Claude refuse: tadata-org/fastapi_mcp#218, mark3labs/mcphost#35. */

const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));
beforeEach(() => upstream.script(always(ok())));

interface Sent {
  readonly tools: readonly {
    readonly input_schema?: object;
    readonly parameters?: object;
    readonly function?: { readonly parameters: object };
  }[];
}

async function sentSchema(model: string, properties: object, more: object = {}) {
  const parametersJsonSchema = { type: 'object', properties, ...more };
  const tools = [{ functionDeclarations: [{ name: 'f', parametersJsonSchema }] }];
  const { status, headers } = await askFace(server, 'gencompat', { model, content: 'hi', stream: false, more: { tools } });
  expect([status, (headers.get('x-dragoman-warnings') ?? '').includes('tools')]).toEqual([200, false]); // they mean the same
  const [tool] = (upstream.requests.at(-1)!.json as Sent).tools;
  return tool?.input_schema ?? tool?.parameters ?? tool?.function?.parameters;
}

const string = { type: 'string' };
const number = { type: 'number' };

describe.each(['chat', 'responses', 'messages'])('a provider of %s', (model) => {
  test.each<[string, object, object, object?]>([
    ['an array without its elements', { a: { type: 'array' } }, { a: { type: 'array', items: {} } }],
    ['an array or nothing', { a: { type: ['array', 'null'] } }, { a: { type: ['array', 'null'], items: {} } }],
    ['the elements one by one', { a: { type: 'array', items: [string, number] } }, { a: { type: 'array', prefixItems: [string, number], items: {} } }],
    ['no others beside them', { a: { items: [string], additionalItems: false } }, { a: { prefixItems: [string], items: {}, maxItems: 1 } }],
    [
      'exclusive bounds',
      { a: { ...number, minimum: 0, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false } },
      { a: { ...number, exclusiveMinimum: 0, maximum: 9 } },
    ],
    [
      'a property that says that it is required',
      { a: { ...string, required: true }, b: { ...string, required: false } },
      { a: string, b: string },
      { required: ['a'] },
    ],
    [
      'names of types from other languages',
      { a: { type: 'int' }, b: { type: 'list', items: { type: 'str' } }, c: { type: 'any' } },
      { a: { type: 'integer' }, b: { type: 'array', items: string }, c: {} },
    ],
    [
      'such names among others',
      { a: { type: ['str', 'null'] }, b: { type: ['int', 'integer'] } },
      { a: { type: ['string', 'null'] }, b: { type: ['integer'] } },
    ],
    ['any type among others', { a: { type: ['any', 'null'], title: 'A' } }, { a: { title: 'A' } }],
    [
      'what is further inside',
      { a: { anyOf: [{ type: 'object', properties: { b: { type: 'array' } } }, number] } },
      { a: { anyOf: [{ type: 'object', properties: { b: { type: 'array', items: {} } } }, number] } },
    ],
    [
      'properties of such names',
      { items: string, required: { type: 'boolean' }, type: string },
      { items: string, required: { type: 'boolean' }, type: string },
    ],
  ])('gets %s in the current draft', async (_, given, expected, more = {}) => {
    expect(await sentSchema(model, given)).toEqual({ type: 'object', properties: expected, ...more });
  });
});

test('a client of the same interface has its own sent', async () => {
  const input_schema = { type: 'object', properties: { a: { type: 'array' }, b: { ...number, minimum: 0, exclusiveMinimum: true } } };
  await askFace(server, 'messages', { model: 'messages', content: 'hi', stream: false, more: { tools: [{ name: 'f', input_schema }] } });
  expect((upstream.requests.at(-1)!.json as Sent).tools[0]?.input_schema).toEqual(input_schema);
});
