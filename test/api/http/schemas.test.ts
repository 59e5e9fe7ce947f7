/* What is answered has the form that /openapi.json gives it, where pieces and refusals differ from the whole. */
import { expect, test } from 'vitest';
import { Compile } from 'typebox/schema';
import { always, cut, tooMany } from '../../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../../support/scripted-server.ts';

type Schema = Readonly<Record<string, unknown>>;
type Content = Readonly<Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>> }>>;

const { server, upstream } = await scriptedServer(({ url }) => ({ yaml: everyWire({ url }) }));
const { paths, components } = (await (await server.ask('/openapi.json')).json()) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: Content }>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
};

/** With what it refers to in its place. */
function whole(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(whole);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { $ref } = schema as { readonly $ref?: string };
  if ($ref !== undefined) return whole(components.schemas[$ref.split('/').at(-1)!]);
  return Object.fromEntries(Object.entries(schema).map(([name, member]) => [name, whole(member)]));
}

async function kept(path: string, answer: Response): Promise<unknown> {
  const { responses } = paths[path]!['post']!;
  const { schema } = (responses[answer.status] ?? responses['default'])!.content!['application/json']!;
  const body: unknown = await answer.json();
  expect([body, Compile(whole(schema) as Schema).Check(body)]).toEqual([body, true]);
  return body;
}

test('an object of any form stands in the document as such, not under the name of an answer that has any form, too', () => {
  expect(Object.entries(components.schemas).filter(([, { type, properties }]) => type === 'object' && JSON.stringify(properties) === '{}')).toEqual([]);
  expect(JSON.stringify(components.schemas['ChatcompatChatCompletionsRequest'])).not.toMatch(/schemas\/\w+Answer/);
});

/** All schemas and other objects of the document. */
function* objectsIn(value: unknown): Generator<Readonly<Record<string, unknown>>> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield value as Readonly<Record<string, unknown>>;
  for (const one of Object.values(value)) yield* objectsIn(one);
}

test('the document has no keyword of our own, and no pattern that needs a flag', () => {
  const texts = [...objectsIn([paths, components])].filter(({ type }) => type === 'string');
  expect(texts.filter(({ expected }) => expected !== undefined)).toEqual([]);
  for (const { pattern } of texts)
    if (typeof pattern === 'string') {
      expect(pattern).not.toMatch(/\\p\{|\\u\{|\(\?</i);
      expect(() => new RegExp(pattern)).not.toThrow();
    }
});

test('each example of an answer is of the schema beside it', () => {
  const bodies = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { responses }]) =>
      Object.entries(responses).flatMap(([status, { content }]) => Object.values(content ?? {}).map((one) => ({ at: `${method} ${path} ${status}`, ...one }))),
    ),
  );
  const shown = bodies.flatMap(({ at, schema, example }) => (example === undefined ? [] : [{ at, schema, example }]));
  expect(shown.length).toBeGreaterThan(300);
  expect(shown.flatMap(({ at, schema, example }) => (Compile(whole(schema) as Schema).Check(example) ? [] : [at]))).toEqual([]);
});

test('a streamed answer as an array, whole or cut off, is an array of pieces as the document has them', async () => {
  const path = '/server/gencompat/v1beta/models/{model}:streamGenerateContent';
  const asked = () => server.ask(path.replace('{model}', 'gemini'), { contents: [{ role: 'user', parts: [{ text: 'one two three' }] }] });
  expect(await kept(path, await asked())).not.toHaveLength(1);
  upstream.script(cut({ afterEvents: 2, how: 'fin' }));
  expect(((await kept(path, await asked())) as readonly unknown[]).at(-1)).toMatchObject({ error: { code: 502 } });
});

test.each<[string, object, Record<string, string>]>([
  ['its id', { jsonrpc: '2.0', id: 'abc', method: 5 }, {}],
  ['a number as its id', { jsonrpc: '2.0', id: 1.5, method: 'tools/list', params: 'none' }, {}],
  ['no type that it accepts', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, { accept: 'text/html' }],
  ['no method', {}, {}],
])('a refused MCP message with %s is answered as the document has it', async (_what, message, headers) => {
  const answer = await server.ask('/server/mcp', message, { headers: { accept: 'application/json, text/event-stream', ...headers } });
  expect(answer.status).toBeGreaterThanOrEqual(400);
  await kept('/server/mcp', answer);
});

test('an MCP message is answered with a type that the document has', async () => {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  const answer = await server.ask('/server/mcp', message, { headers: { accept: 'application/json, text/event-stream' } });
  expect(Object.keys(paths['/server/mcp']!['post']!.responses[answer.status]!.content!)).toContain(answer.headers.get('content-type'));
  await answer.text();
});

test.each([
  ['/server/chatcompat/v1/chat/completions', '', { model: 'chat', messages: [{ role: 'user', content: 'x' }] }],
  ['/server/messages/v1/messages', '', { model: 'chat', max_tokens: 5, messages: [{ role: 'user', content: 'x' }] }],
  ['/server/gencompat/v1beta/models/{model}:generateContent', 'chat', { contents: [{ role: 'user', parts: [{ text: 'x' }] }] }],
  ['/server/query', '', { model: 'chat', message: 'x' }],
])('a refusal of %s that says when to try again is answered as the document has it', async (path, model, body) => {
  upstream.script(always(tooMany({ retryAfter: 3 })));
  const answer = await server.ask(path.replace('{model}', model), body);
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '3']);
  await kept(path, answer);
});

test('a stored response that is streamed again is answered with a type that the document has', async () => {
  const path = '/server/chatcompat/v1/responses';
  const { id } = (await (await server.ask(path, { model: 'chat', input: 'x' })).json()) as { id: string };
  const answer = await server.ask(`${path}/${id}?stream=true`);
  expect(Object.keys(paths[`${path}/{id}`]!['get']!.responses[answer.status]!.content!)).toContain(answer.headers.get('content-type')!.split(';')[0]);
  await answer.text();
});

test.each([
  ['/server/session', { email: 'nobody@example.org', password: 'wrong' }, 401],
  ['/user/get-token-with-api-key', { email: 'nobody@example.org', api_key: 'x'.repeat(64) }, 401],
  ['/server/mine/secrets', { name: 'TWICE', value: 'x' }, 409],
  ['/user/add-dataset', { dataset: 'twice' }, 409],
])('a refusal of POST %s has a status that the document has', async (path, body, status) => {
  await (await server.ask(path, body)).text();
  const answer = await server.ask(path, body);
  expect(answer.status).toBe(status);
  expect(Object.keys(paths[path]!['post']!.responses)).toContain(String(status));
  await kept(path, answer);
});
