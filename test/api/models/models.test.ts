import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { proves } from '../../support/proves.ts';

const path = '/server/chatcompat/v1/models';
let server: TestServer;

beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

test(proves(['models.200', 'models.answer-object', 'models.answer-data'], 'models are listed with id, object, created and owner'), async () => {
  const answer = await server.ask(path);
  expect(answer.status).toBe(200);
  const model = { object: 'model', created: expect.any(Number) as number, owned_by: 'dragoman' };
  expect(await answer.json()).toEqual({
    object: 'list',
    data: [
      { id: 'built-in', ...model },
      { id: 'built-in-embedding', ...model },
      { id: 'built-in-speech', ...model },
    ],
  });
});

test('a standard client lists them', async () => {
  const client = new OpenAI({ apiKey: server.key, baseURL: `${server.url}/server/chatcompat/v1` });
  expect((await client.models.list()).data.map(({ id }) => id)).toContain('built-in-embedding');
});

test(proves('models.401', 'without a key, or with a bad one, the answer is 401'), async () => {
  for (const authorization of ['', 'Bearer nonsense']) expect((await server.ask(path, undefined, { headers: { authorization } })).status).toBe(401);
});

test.each([
  '/server/gencompat/v1beta1/publishers/google/models',
  '/v1beta1/publishers/google/models',
  '/v1/publishers/google/models',
  '/v1beta1/projects/p/locations/us-central1/publishers/google/models',
])('a Gemini client lists them where the platform does, at %s', async (address) => {
  const listed = (await (await server.ask(`${address}?pageSize=1`)).json()) as object;
  expect(listed).toMatchObject({ models: [{ name: 'models/built-in' }], nextPageToken: 'built-in' });
});

test('a Gemini client finds a model under its publisher, as the platform has it', async () => {
  for (const root of ['/server/gencompat/v1beta', '/v1beta']) {
    const answer = await server.ask(`${root}/publishers/google/models/gemini-2.5-flash`);
    expect([answer.status, await answer.json()]).toMatchObject([200, { name: 'models/built-in' }]);
    expect((await server.ask(`${root}/publishers/nobody/models/nothing`)).status).toBe(404);
    expect((await server.ask(`${root}/publishers/google/models/gemini-2.5-flash:generateContent`)).status).toBe(405);
  }
});
