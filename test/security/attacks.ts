import type { Attack } from './attack.ts';
import type { JsonObject } from '#core/json';
import { deepJson, longLine, manyChoices, manyEvents, ok, toolCalls, withMember, type Behaviour } from '../support/fakes/upstream/index.ts';
import { hostileBodies } from './hostile-bodies.ts';
import { hostileSchemas } from './hostile-schemas.ts';

type Unnamed = Omit<Attack, 'name'>;

const chat = '/server/chatcompat/v1/chat/completions';
const responses = '/server/chatcompat/v1/responses';
const messages = '/server/messages/v1/messages';
const gencompat = (model: string, verb = 'generateContent') => `/server/gencompat/v1beta/models/${model}:${verb}`;
const said = [{ role: 'user', content: 'The city is Paris, k1: 2, 3 and "four" at 5 o’clock.' }];
const contents = [{ role: 'user', parts: [{ text: said[0]!.content }] }];

/** A schema as each interface takes it: of the answer, or of a tool that must be called. */
const asking: readonly ((schema: JsonObject) => Unnamed)[] = [
  (schema) => ({
    path: chat,
    body: () => ({ model: 'built-in', messages: said, response_format: { type: 'json_schema', json_schema: { name: 's', schema } } }),
  }),
  (schema) => ({
    path: responses,
    body: () => ({ model: 'built-in', input: said, tools: [{ type: 'function', name: 't', parameters: schema, strict: false }], tool_choice: 'required' }),
  }),
  (schema) => ({
    path: messages,
    body: () => ({ model: 'built-in', max_tokens: 100, messages: said, tools: [{ name: 't', input_schema: schema }], tool_choice: { type: 'any' } }),
  }),
  (schema) => ({
    path: gencompat('built-in'),
    body: () => ({ contents, generationConfig: { responseMimeType: 'application/json', responseJsonSchema: schema } }),
  }),
];

/** A provider says this where an answer was asked for that keeps to a schema. */
const held = (schema: JsonObject, text: () => string): Unnamed => ({
  path: gencompat('gpt-4o-mini'),
  body: () => ({ contents, generationConfig: { responseMimeType: 'application/json', responseJsonSchema: schema } }),
  answer: () => ok({ text: text() }),
});

const long = (unit: string, length: number) => unit.repeat(Math.ceil(length / unit.length));

const faces: Readonly<Record<string, (model: string) => Unnamed>> = {
  chat: (model) => ({ path: chat, body: () => ({ model, messages: said, stream: true, app_name: 'x' }) }),
  responses: (model) => ({ path: responses, body: () => ({ model, input: 'hi', stream: true }) }),
  messages: (model) => ({ path: messages, body: () => ({ model, max_tokens: 10, messages: said, stream: true }) }),
  gencompat: (model) => ({ path: gencompat(model, 'streamGenerateContent'), body: () => ({ contents }) }),
};
/** Providers of each wire, and models that checks hold for. */
const models = ['gpt-4o-mini', 'over-responses', 'over-messages', 'over-gemini', 'guarded', 'judged'];

const answers: readonly (readonly [string, () => Behaviour])[] = [
  ['100,000 small events', () => manyEvents(100_000)],
  ['10,000 choices', () => manyChoices(10_000)],
  ['a line of 100 MB', () => longLine()],
  ['JSON of 10,000 levels', () => deepJson()],
  ['3,000 tool calls', () => toolCalls(Array.from({ length: 3000 }, (_, at) => ({ name: `t${at}`, json: '{"a":1}' })))],
  ['a tool call of 500 KB in pieces', () => toolCalls([{ name: 't', json: JSON.stringify({ a: long('ab', 500_000) }) }])],
  [
    'a tool call of 250,000 new keys',
    () => toolCalls([{ name: 't', json: JSON.stringify({ a: Array.from({ length: 250_000 }, (_, at) => ({ [at.toString(36)]: 0 })) }) }]),
  ],
];

/** Almost a megabyte of JSON. */
const json = (item: (at: number) => string, open = '[', close = ']', most = 1_000_000): string => {
  const items: string[] = [];
  for (let length = 0; length < most; length += items.at(-1)!.length + 1) items.push(item(items.length));
  return open + items.join(',') + close;
};
const key = (at: number) => `"${at.toString(36)}":0`;
const members: readonly (readonly [string, () => string])[] = [
  ['a megabyte of keys of one object', () => json(key, '{', '}')],
  ['a megabyte of objects of one new key', () => json((at) => `{${key(at)}}`)],
  ['a megabyte of objects of 16 new keys', () => json((at) => `{${Array.from({ length: 16 }, (_, one) => key(at * 16 + one)).join(',')}}`)],
  ['a megabyte of keys with escapes', () => json((at) => `{"\\n${key(at).slice(1)}}`)],
  ['a megabyte of empty objects', () => json(() => '{}')],
  ['a megabyte of empty lists', () => json(() => '[]')],
  ['a megabyte of lists in lists', () => `${long('[', 500_000)}${long(']', 500_000)}`],
  ['a megabyte of objects in objects', () => `${long('{"a":', 800_000)}0${long('}', 160_000)}`],
  ['a megabyte of digits', () => long('7', 1_000_000)],
  ['three megabytes of short texts', () => json((at) => `"${at.toString(36)}"`, '[', ']', 3_000_000)],
  ['seven megabytes of base64', () => `"${long('QUJD', 7_000_000)}"`],
  ['seven megabytes of escapes', () => `"${long('\\n', 7_000_000)}"`],
  ['seven megabytes of texts of 20,000 letters', () => json(() => `"${long('é', 20_000)}"`, '[', ']', 3_500_000)],
  ['a megabyte of long numbers', () => json((at) => `${at}.${long('1', 180)}e-200`)],
];

/** The same questions, whose answers are not streamed. */
const wholes: Readonly<Record<string, (model: string) => Unnamed>> = {
  chat: (model) => ({ path: chat, body: () => ({ model, messages: said }) }),
  responses: (model) => ({ path: responses, body: () => ({ model, input: 'hi' }) }),
  messages: (model) => ({ path: messages, body: () => ({ model, max_tokens: 10, messages: said }) }),
  gencompat: (model) => ({ path: gencompat(model), body: () => ({ contents }) }),
};
const wires = ['gpt-4o-mini', 'over-responses', 'over-messages', 'over-gemini'];
const embeddings = '/server/chatcompat/v1/embeddings';

/** A provider answers with much that nobody reads. */
const unread: readonly Attack[] = members.flatMap(([name, text], at) => {
  const answer = () => withMember(name, text);
  const both = Object.entries(faces).flatMap(([face, ask], which) => {
    const model = wires[(at + which) % wires.length]!;
    return [
      { ...ask(model), name: `${name} in a stream, ${face} to ${model}`, answer },
      { ...wholes[face]!(model), name: `${name} in an answer, ${face} to ${model}`, answer },
    ];
  });
  return [...both, { path: embeddings, body: () => ({ model: 'vectors', input: 'hi' }), name: `${name} in an answer, embeddings`, answer }];
});

const fenced: readonly (readonly [string, () => string])[] = [
  ['a code fence and 5,000 line feeds', () => `\`\`\`json${long('\n', 5000)}`],
  ['a code fence and a megabyte of line feeds', () => `\`\`\`${long('\n', 1_000_000)}x`],
  ['a megabyte of code fences', () => long('```\n', 1_000_000)],
  ['a megabyte of brackets', () => long('[', 1_000_000)],
  ['JSON of a megabyte', () => JSON.stringify(Array.from({ length: 100_000 }, (_, at) => at))],
];

export const attacks: readonly Attack[] = [
  ...hostileSchemas.flatMap(([name, schema, answer], at) =>
    [asking[at % 4]!(schema), asking[(at + 2) % 4]!(schema), held(schema, () => JSON.stringify(answer))].map((one) => ({
      ...one,
      name: `${name}, ${one.path.slice(8, 40)}`,
    })),
  ),
  ...fenced.map(([name, text]) => ({ ...held({ type: 'object', required: ['a'] }, text), name })),
  ...answers.flatMap(([name, answer]) =>
    Object.entries(faces).flatMap(([face, ask]) => models.map((model) => ({ ...ask(model), name: `${name}, ${face} to ${model}`, answer }))),
  ),
  ...unread,
  ...hostileBodies,
];
