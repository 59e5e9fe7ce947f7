/* Every operation of the native interface, /server/mine and /server/admin is asked with what it cannot take: each refusal names the field, in the shape of the interface. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestServer, type TestServer } from '../../support/server.ts';

interface Rule {
  readonly $ref?: string;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Rule[];
  readonly properties?: Readonly<Record<string, Rule>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Rule;
}

interface Operation {
  readonly 'x-alias-of'?: string;
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Rule }>> };
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Rule>> };
}

let server: TestServer;
let document: Document;
beforeAll(async () => {
  server = await startTestServer();
  document = (await (await server.ask('/openapi.json')).json()) as Document;
}, 120_000);
afterAll(() => server.close());

const refusedShape = (status: number) => {
  const text = expect.stringMatching(/^[A-Za-z].{8,}\.$/s) as string;
  return { response: text, message: text, error: text, status, error_ref: expect.stringMatching(/^req_/) as string };
};

const ruleOf = (rule: Rule): Rule => (rule.$ref === undefined ? rule : ruleOf(document.components.schemas[rule.$ref.split('/').at(-1)!]!));

/** Its own operations, with the schema of what they take. */
const operations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) => {
    if (!/^\/(?:user|server\/(?!chatcompat|gencompat|messages|mcp$))/.test(path)) return [];
    return Object.entries(methods).flatMap(([method, operation]) => {
      const content = operation.requestBody?.content ?? {};
      const body = content['application/json'] ?? Object.values(content)[0];
      return operation['x-alias-of'] === undefined
        ? [{ method: method.toUpperCase(), path: path.replaceAll(/\{\w+\}/g, '999999'), schema: body && ruleOf(body.schema) }]
        : [];
    });
  });

/** No field is of this type, but for those that take anything. */
const impossible = [[[[7]]]];

const isOpen = (given: Rule): boolean => {
  const rule = ruleOf(given);
  return rule.anyOf?.some(isOpen) ?? (rule.type === undefined && rule.enum === undefined && rule.const === undefined);
};

async function refused(method: string, path: string, body: unknown) {
  const answer = await server.ask(path, body, { method });
  return { status: answer.status, body: (await answer.json()) as { readonly message: string } };
}

test('a field of a type that it cannot have is refused by its name', { timeout: 120_000 }, async () => {
  const unclear: unknown[] = [];
  let asked = 0;
  for (const { method, path, schema } of operations())
    for (const [name, rule] of Object.entries(schema?.properties ?? {})) {
      if (isOpen(rule)) continue;
      asked++;
      // Only this field is given: what else is missing may be told first, by its own name.
      const { status, body } = await refused(method, path, { [name]: impossible });
      const names = Object.keys(schema!.properties!);
      const isClear = status === 404 || (status === 400 && names.some((one) => body.message.includes(one))) || status === 415;
      if (!isClear) unclear.push([method, path, name, status, body.message]);
      else expect(body).toMatchObject(refusedShape(status));
    }
  expect(asked).toBeGreaterThan(300);
  expect(unclear).toEqual([]);
});

test('what no operation knows is refused with what it knows, and a body that is none with what it must be', { timeout: 120_000 }, async () => {
  for (const { method, path, schema } of operations()) {
    if (!schema) continue;
    const list = await refused(method, path, []);
    expect([method, path, list.status, list.body.message]).toEqual([
      method,
      path,
      expect.toBeOneOf([400, 404, 415]),
      expect.not.stringContaining('The value') as string,
    ]);
    expect(list.body).toMatchObject(refusedShape(list.status));
    const required = Object.keys(schema.properties ?? {}).length > 0 && schema.additionalProperties === false && (schema.required ?? []).length === 0;
    if (!required) continue;
    const { status, body } = await refused(method, path, { unheardOf: 1 });
    if (status === 400)
      expect([method, path, body.message]).toEqual([method, path, `unheardOf is not known. Known: ${Object.keys(schema.properties!).join(', ')}.`]);
  }
});

test('an id with characters that no id has, and a method that there is not, are refused in the shape of the interface', { timeout: 120_000 }, async () => {
  const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
  for (const [path, known] of Object.entries(document.paths)) {
    if (!/^\/server\/(?:mine|admin)/.test(path)) continue;
    const wrong = methods.find((method) => !Object.hasOwn(known, method.toLowerCase()));
    if (wrong) {
      const answer = await server.ask(path.replaceAll(/\{\w+\}/g, '1'), undefined, { method: wrong });
      expect([path, answer.status, answer.headers.get('allow')]).toEqual([path, 405, expect.stringMatching(/[A-Z]/) as string]);
      expect(await answer.json()).toMatchObject(refusedShape(405));
    }
    if (!path.includes('{')) continue;
    for (const method of Object.keys(known)) {
      const { status, body } = await refused(
        method.toUpperCase(),
        path.replaceAll(/\{\w+\}/g, '%00'),
        method === 'get' || method === 'delete' ? undefined : {},
      );
      expect([method, path, status]).toEqual([method, path, expect.toBeOneOf([404, 400, 415])]);
      expect(body).toMatchObject(refusedShape(status));
      expect(body.message).not.toContain('U+0000');
    }
  }
});

test.each<[method: string, path: string, body: object, field: string]>([
  ['POST', '/server/count-monthly-tokens', { app_name: 'a\0' }, 'app_name'],
  ['POST', '/server/count-monthly-tokens', new URLSearchParams({ app_name: 'a\0' }), 'app_name'],
  ['POST', '/user/delete-dataset', { dataset: 'a\0' }, 'dataset'],
  ['DELETE', '/server/dataset', { dataset: 'a\0' }, 'dataset'],
  ['POST', '/server/get-dataset-info', { dataset: 'a\0' }, 'dataset'],
  ['POST', '/user/assign-dataset', { dataset: 'a\0', email: 'ada@example.com' }, 'dataset'],
  ['POST', '/user/deassign-dataset', { dataset: 'a\0', email: 'ada@example.com' }, 'dataset'],
  ['POST', '/server/delete-filename-from-dataset', { dataset: 'a\0', filename: 'b' }, 'dataset'],
  ['POST', '/server/train', { content: 'x', force_dataset: 'a\0' }, 'force_dataset'],
  ['POST', '/server/train-with-file-status', { job_id: 'a\0' }, 'job_id'],
  ['POST', '/server/list-agents', { search: 'a\0' }, 'search'],
  ['GET', '/server/list-agents?search=%00', {}, 'search'],
  ['GET', '/server/admin/users?query=%00', {}, 'query'],
  ['POST', '/user/admin-get-all-users-with-tokens', { email: 'a\0' }, 'email'],
])('%s %s with U+0000 in %j is 400 naming %s', async (method, path, body, field) => {
  const isForm = body instanceof URLSearchParams;
  const sent = method === 'GET' ? {} : { body: isForm ? body : JSON.stringify(body), headers: isForm ? {} : { 'content-type': 'application/json' } };
  const answer = await fetch(server.url + path, { method, ...sent, headers: { 'x-access-tokens': server.key, ...sent.headers } });
  const { error } = (await answer.json()) as { error: string };
  expect([answer.status, error]).toEqual([400, expect.stringMatching(new RegExp(`^${field} .*U\\+0000`))]);
});

test('JSON that is under limits.bodyBytes and too long to read is 413, with too many values 400, and the refusal says what is counted', async () => {
  const words = Array.from({ length: 100_000 }, () => 'a word');
  const prose = 'Im Hafen war es spät.\n'.repeat(400_000);
  const counted = 'where a string counts as 4, a key as 4 or more, a list as 6 and an object as 12.';
  const uncounted = 'strings of more than 16384 bytes that are ASCII without escapes, such as base64.';
  for (const [path, body, status, text] of [
    ['/server/train-with-array', { content: words }, 400, `content: The text has more than 320000 values, ${counted}`],
    ['/server/train', { content: prose }, 413, `The text is longer than 8388608 bytes, not counting ${uncounted}`],
    ['/server/tokenizer', { content: prose }, 413, `The text is longer than 8388608 bytes, not counting ${uncounted}`],
    ['/server/admin/teams', { name: 'ops', plan: 'free', members: words }, 400, `members: The text has more than 320000 values, ${counted}`],
  ] as const) {
    const answer = await server.ask(path, body, { method: 'POST' });
    expect([path, answer.status, ((await answer.json()) as { response: string }).response]).toEqual([path, status, text]);
  }
  const chat = await server.ask('/v1/chat/completions', { model: 'built-in', messages: [{ role: 'user', content: prose }] });
  expect([chat.status, await chat.json()]).toMatchObject([413, { error: { type: 'invalid_request_error', code: 'too_large' } }]);
});
