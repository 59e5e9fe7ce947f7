import type { Attack } from './attack.ts';
import type { JsonObject } from '#core/json';
import { deepJson, longLine, manyChoices, manyEvents, ok, toolCalls, type Behaviour } from '../support/fakes/upstream/index.ts';
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
];

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
  ...hostileBodies,
];
