import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestServer, type TestServer } from '../support/server.ts';
import { newMember, type Member } from '../support/members.ts';

/** What somebody keeps here is not there for anybody else, at whatever address they ask for it. */

const root = '/server/chatcompat/v1';

let server: TestServer;
let owner: Member;
let other: Member;
/** Of the owner, by the name of the noun in an address. */
let kept: Readonly<Record<string, string>>;

beforeAll(async () => {
  server = await startTestServer();
  owner = await newMember(server);
  other = await newMember(server);
  const conversation = await made('conversations', { items: [{ role: 'user', content: 'the word is heron' }] });
  const response = await made('responses', { model: 'built-in', input: 'Say exactly: heron', store: true });
  await made('responses', { model: 'built-in', input: 'Say exactly: two', conversation });
  const { data } = (await (await ask(owner, 'GET', `/conversations/${conversation}/items`)).json()) as { data: readonly { id: string }[] };
  kept = { responses: response, conversations: conversation, items: data[0]!.id };
});
afterAll(() => server.close());

const ask = (member: Member, method: string, path: string, body?: object) =>
  fetch(server.url + root + path, {
    method,
    headers: { authorization: `Bearer ${member.keys[0]}`, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });

async function made(noun: string, body: object): Promise<string> {
  const answer = await ask(owner, 'POST', `/${noun}`, body);
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { id: string }).id;
}

interface Endpoint {
  readonly method: string;
  readonly path: string;
}

/** Every address below a kept thing, out of the document that is made from the routes. */
async function endpoints(): Promise<readonly Endpoint[]> {
  const { paths } = (await (await fetch(`${server.url}/openapi.json`)).json()) as { paths: Readonly<Record<string, object>> };
  return Object.entries(paths)
    .filter(([path]) => /\/(responses|conversations)\/\{/.test(path) && path.startsWith(`${root}/`))
    .flatMap(([path, methods]) => Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path: path.slice(root.length) })));
}

/** A template with the ids of the owner: an id is that of the noun before it. */
const addressOf = (path: string) => path.replaceAll(/\/(\w+)\/\{\w+\}/g, (_, noun: string) => `/${noun}/${kept[noun]}`);

/** All that the owner can read. */
async function shown(): Promise<readonly string[]> {
  const answers = (await endpoints()).filter(({ method }) => method === 'GET').map(({ path }) => ask(owner, 'GET', addressOf(path)));
  return Promise.all(
    answers.map(async (asked) => {
      const answer = await asked;
      expect(answer.status).toBe(200);
      return answer.text();
    }),
  );
}

/** What a body may hold for an address that takes one. */
const bodies: Readonly<Record<string, object>> = {
  '/conversations/{id}': { metadata: { stolen: 'yes' } },
  '/conversations/{id}/items': { items: [{ role: 'user', content: 'stolen' }] },
};

describe('of the stored objects of another user', () => {
  test('nothing is found at any address, and nothing is changed', async () => {
    const before = await shown();
    const all = await endpoints();
    expect(all.map(({ method, path }) => `${method} ${path}`)).toEqual(
      expect.arrayContaining([
        'GET /responses/{id}',
        'DELETE /responses/{id}',
        'POST /responses/{id}/cancel',
        'GET /responses/{id}/input_items',
        'DELETE /conversations/{id}',
      ]),
    );
    for (const { method, path } of all) {
      const answer = await ask(other, method, addressOf(path), method === 'POST' ? (bodies[path] ?? {}) : undefined);
      const text = await answer.text();
      expect([method, path, answer.status]).toEqual([method, path, 404]);
      expect(text).not.toMatch(/heron|stolen/);
      const nobodys = await ask(other, method, addressOf(path).replaceAll(/(resp|conv)_\w/g, '$1_Z'), method === 'POST' ? (bodies[path] ?? {}) : undefined);
      expect(worded(text)).toEqual(worded(await nobodys.text())); // as if it were not there
    }
    expect(await shown()).toEqual(before);
  });

  test.each([
    ['previous_response_id', () => ({ input: 'What is the word?', previous_response_id: kept['responses'] })],
    ['conversation', () => ({ input: 'What is the word?', conversation: kept['conversations'] })],
    ['conversation as an object', () => ({ input: 'What is the word?', conversation: { id: kept['conversations'] } })],
    [
      'an item',
      () => ({
        input: [
          { type: 'item_reference', id: kept['items'] },
          { role: 'user', content: 'What is the word?' },
        ],
      }),
    ],
  ])('nothing can be continued by %s, whole, streamed or in the background, nor counted', async (_name, more) => {
    const before = await shown();
    for (const [path, way] of [
      ['', {}],
      ['', { stream: true }],
      ['', { background: true }],
      ['/input_tokens', {}],
    ] as const) {
      const answer = await ask(other, 'POST', `/responses${path}`, { model: 'built-in', ...more(), ...way });
      expect(answer.status).toBe(404);
      expect(await answer.text()).not.toContain('heron');
    }
    expect(await shown()).toEqual(before);
  });
});

const worded = (text: string) => (JSON.parse(text) as { error: object }).error;
