import { afterAll, beforeAll, onTestFinished } from 'vitest';
import type { Place, TestDatabase } from '../../support/databases.ts';
import { startTestServer, type TestServer, type TestServerSettings } from '../../support/server.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
}

/** Sends a request with a credential in `x-access-tokens`, or with these headers, or with none. */
export type Asker = (method: string, path: string, body?: unknown, init?: { readonly headers?: Record<string, string> }) => Promise<Answer>;

export interface Visited {
  readonly server: TestServer;
  /** With the first user's key. */
  readonly admin: Asker;
  readonly nobody: Asker;
  readonly as: (credential: string) => Asker;
}

/** A server that runs until the test ends. */
export async function visited(place: Place, more: TestServerSettings = {}): Promise<Visited> {
  const server = await startTestServer({ ...place, ...more });
  onTestFinished(server.close);
  return visitorsOf(server);
}

/**
 * One server for those tests of a suite that make people of their own and look at nobody else's, since the start of one with an embedded database takes
 * 0.7 s of CPU time: `const together = visitedTogether(database); … const all = together();`
 */
export function visitedTogether({ lasting }: Pick<TestDatabase, 'lasting'>, more: TestServerSettings = {}): () => Visited {
  let all: Visited | undefined;
  let end = async () => {};
  beforeAll(async () => {
    const { place, remove } = await lasting();
    end = async () => {
      await all?.server.close();
      await remove();
    };
    all = visitorsOf(await startTestServer({ ...place, ...more }));
  });
  afterAll(() => end());
  return () => all!;
}

/** Those who visit a server that the test closes itself. */
export function visitorsOf(server: TestServer): Visited {
  const asker =
    (credential: Record<string, string>): Asker =>
    async (method, path, body, { headers = {} } = {}) => {
      const answer = await fetch(server.url + path, {
        method,
        headers: { ...credential, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const text = await answer.text();
      return { status: answer.status, headers: answer.headers, body: bodyOf(answer, text) };
    };
  const as = (credential: string) => asker({ 'x-access-tokens': credential });
  return { server, admin: as(server.key), nobody: asker({}), as };
}

/** What is no JSON is its member `text`. One object may be sent as plain text. */
function bodyOf({ headers }: Response, text: string): Answer['body'] {
  if (text === '') return {};
  const isObject = headers.get('content-type')?.startsWith('text/plain') && text.startsWith('{') && !text.includes('@|@');
  return isObject || headers.get('content-type')?.includes('json') ? (JSON.parse(text) as Answer['body']) : { text };
}

export interface Person {
  readonly id: number;
  readonly email: string;
  readonly keyId: number;
  readonly key: string;
  readonly ask: Asker;
}

let people = 0;

/** A user with a key. */
export async function person({ admin, as }: Visited, user: object = {}, key: object = {}): Promise<Person> {
  const email = `person-${++people}@example.org`;
  const made = await admin('POST', '/server/admin/users', { email, ...user });
  const id = made.body['id'] as number;
  const its = await admin('POST', `/server/admin/users/${id}/keys`, { name: 'first', ...key });
  const text = its.body['key'] as string;
  return { id, email, keyId: its.body['id'] as number, key: text, ask: as(text) };
}

/** The text of an access token. */
export async function tokenOf({ nobody }: Visited, { email, key }: Pick<Person, 'email' | 'key'>): Promise<string> {
  const { body } = await nobody('POST', '/user/get-token-with-api-key', { email, api_key: key });
  return (body['response'] as { access_token: string }).access_token;
}

export const chatBody = { model: 'built-in', messages: [{ role: 'user', content: 'Say exactly: hello' }], max_tokens: 5 };
