import { expect, onTestFinished, test } from 'vitest';
import { always, badRequest, startUpstream, vectorOf, vectors } from '../support/fakes/upstream/index.ts';
import { startTestServer } from '../support/server.ts';

/** OpenAI's embedding models need no entry in the settings where a provider may have them. */

const elsewhere = ['https://api.mistral.ai/v1', 'https://api.deepseek.com', 'https://api.voyageai.com/v1', 'https://bedrock-mantle.us-east-1.api.aws/v1'];

test.each([
  ['vendors whose models have names of their own have none of them', elsewhere, 404],
  ['a server that nobody knows is asked for them, though they are not listed', [...elsewhere, 'http://127.0.0.1:9/v1'], 503],
])('%s', { timeout: 120_000 }, async (_, addresses, status) => {
  const providers = addresses.map((baseUrl, at) => `  p${at}: { dialect: openai-chat, baseUrl: "${baseUrl}", apiKeys: [k] }\n`);
  const server = await startTestServer({ yaml: `providers:\n${providers.join('')}` });
  onTestFinished(server.close);
  const { data } = (await (await server.ask('/server/chatcompat/v1/models')).json()) as {
    readonly data: readonly { readonly id: string }[];
  };
  expect(data.filter(({ id }) => id.startsWith('text-embedding-'))).toEqual([]);
  const answer = await server.ask('/server/chatcompat/v1/embeddings', { model: 'text-embedding-3-small', input: 'hi' });
  expect(answer.status).toBe(status);
});

test('a server that refuses to be told an encoding is asked for numbers, and the client gets the encoding that it wants', { timeout: 120_000 }, async () => {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const server = await startTestServer({ upstream: upstream.url, yaml: '  tei: { kind: embedding, targets: [{ provider: fake }] }\n' });
  onTestFinished(server.close);
  upstream.script(badRequest({ message: 'encoding_format is not supported' }), always(vectors()));
  for (const encoding of ['base64', 'base64', 'float']) {
    const answer = await server.ask('/server/chatcompat/v1/embeddings', { model: 'tei', input: 'one two', encoding_format: encoding });
    const { data } = (await answer.json()) as { readonly data: readonly { readonly embedding: string | readonly number[] }[] };
    const bytes = Buffer.from(Float32Array.from(vectorOf('one two')).buffer).toString('base64');
    expect(data[0]!.embedding).toEqual(encoding === 'base64' ? bytes : vectorOf('one two'));
  }
  expect(upstream.requests.map(({ json }) => (json as { readonly encoding_format?: string }).encoding_format)).toEqual([
    'base64',
    undefined,
    undefined,
    undefined,
  ]);
});
