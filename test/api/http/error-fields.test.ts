import { describe, expect, test } from 'vitest';
import { faces, requestOf, type Face } from '../../support/all-faces.ts';
import { scriptedServer } from '../../support/scripted-server.ts';

const { server } = await scriptedServer();

/** No value is of this type. */
const impossible = { type: 'object', properties: { a: { type: 'string', minLength: 9, maxLength: 1 } }, required: ['a'] };
const large = {
  type: 'object',
  properties: Object.fromEntries(Array.from({ length: 9000 }, (_, at) => [`k${at}`, {}])),
  enum: Array.from({ length: 3000 }, () => 1),
};

/** The schema of the answer, and of the second of two tools of which one must be called, as each interface has them. */
const asked: Readonly<Record<Face, (schema: object) => { readonly output: object; readonly tool: object }>> = {
  chat: (schema) => ({
    output: { response_format: { type: 'json_schema', json_schema: { name: 's', schema } } },
    tool: {
      tools: [
        { type: 'function', function: { name: 'a' } },
        { type: 'function', function: { name: 't', parameters: schema } },
      ],
      tool_choice: { type: 'function', function: { name: 't' } },
    },
  }),
  responses: (schema) => ({
    output: { text: { format: { type: 'json_schema', name: 's', schema } } },
    tool: {
      tools: [
        { type: 'function', name: 'a', parameters: {}, strict: false },
        { type: 'function', name: 't', parameters: schema, strict: false },
      ],
      tool_choice: { type: 'function', name: 't' },
    },
  }),
  messages: (schema) => ({
    output: { output_config: { format: { type: 'json_schema', schema } } },
    tool: {
      tools: [
        { name: 'a', input_schema: { type: 'object' } },
        { name: 't', input_schema: schema },
      ],
      tool_choice: { type: 'tool', name: 't' },
    },
  }),
  gencompat: (schema) => ({
    output: { generation_config: { responseMimeType: 'application/json', response_json_schema: schema } },
    tool: {
      tools: [{ googleSearch: {} }, { function_declarations: [{ name: 'a' }, { name: 't', parametersJsonSchema: schema }] }],
      toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['t'] } },
    },
  }),
};

const names: Readonly<Record<Face, { readonly output: string; readonly tool: string }>> = {
  chat: { output: 'response_format.json_schema.schema', tool: 'tools[1].function.parameters' },
  responses: { output: 'text.format.schema', tool: 'tools[1].parameters' },
  messages: { output: 'output_config.format.schema', tool: 'tools[1].input_schema' },
  gencompat: { output: 'generation_config.response_json_schema', tool: 'tools[1].function_declarations[1].parametersJsonSchema' },
};

describe.each(faces)('a request of %s', (face) => {
  test.each([
    ['output', 'of the answer that nothing conforms to', 'built-in', impossible],
    ['tool', 'of a tool that nothing conforms to', 'built-in', impossible],
    // Only this interface holds an answer against its schema.
    ...(face === 'gencompat' ? [['output', 'of the answer that is too large to be held against anything', 'gpt-4o-mini', large] as const] : []),
  ] as const)('names the schema (%s) %s as the client spelled it', async (which, _, model, schema) => {
    for (const stream of [false, true]) {
      const { path, body } = requestOf(face, { model, content: 'hi', stream, more: asked[face](schema)[which] });
      const answer = await server.ask(path, body);
      const text = await answer.text();
      expect({ status: answer.status, text }).toMatchObject({ status: 400, text: expect.stringContaining(names[face][which]) });
      expect(text).not.toContain('output.schema');
      if (face === 'chat' || face === 'responses') expect(JSON.parse(text)).toMatchObject({ error: { param: names[face][which] } });
      if (face === 'gencompat') expect(JSON.parse(text)).toMatchObject({ error: { details: [{ fieldViolations: [{ field: names[face][which] }] }] } });
    }
  });
});

/** Conversations of nothing but content that no model knows, each with the place of its beginning. */
const unread: Readonly<Record<Face, readonly (readonly [field: string, more: object])[]>> = {
  chat: [
    ['messages[0].content', { messages: [{ role: 'user', content: [{ type: 'nope' }] }] }],
    [
      'messages[1].content[0]',
      {
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: [{ type: 'nope' }, { type: 'other' }] },
        ],
      },
    ],
  ],
  responses: [
    ['input[0]', { input: [{ type: 'nope' }, { type: 'nope_output' }] }],
    ['input[0]', { input: [{ type: 'nope_output' }], instructions: 'Be brief.' }],
  ],
  messages: [
    ['messages[0].content', { messages: [{ role: 'user', content: [{ type: 'nope' }] }] }],
    ['messages[0].content[0]', { messages: [{ role: 'user', content: [{ type: 'nope' }, { type: 'other' }] }], system: 'Be brief.' }],
  ],
  gencompat: [
    ['contents[0].parts[0]', { contents: [{ parts: [{ nope: 1 }] }] }],
    ['contents[0].parts[0]', { contents: [{ parts: [{ nope: 1 }, { other: {} }] }], systemInstruction: { parts: [{ text: 'Be brief.' }] } }],
  ],
};

const unreadInEachWay = faces.flatMap((face) => [false, true].flatMap((stream) => unread[face].map(([field, more]) => ({ face, stream, field, more }))));

test.each(unreadInEachWay)(
  'a request of $face (stream: $stream) of which the built-in model can read nothing names $field',
  async ({ face, stream, field, more }) => {
    const { path, body } = requestOf(face, { model: 'built-in', content: 'hi', stream, more });
    const answer = await server.ask(path, body);
    const text = await answer.text();
    expect({ status: answer.status, text }).toEqual({
      status: 400,
      text: expect.stringContaining(`can read nothing of ${field}, since it does not know the type nope`),
    });
    if (face === 'chat' || face === 'responses') expect(JSON.parse(text)).toMatchObject({ error: { param: field } });
    if (face === 'gencompat') expect(JSON.parse(text)).toMatchObject({ error: { details: [{ fieldViolations: [{ field }] }] } });
  },
);
