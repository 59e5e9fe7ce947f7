/* What the service as a whole is: one origin, its interfaces, and the words it speaks. */
import { expect, test } from 'vitest';
import { startUpstream } from '../../support/fakes/upstream/index.ts';
import { proves } from '../../support/proves.ts';
import { scriptedServer } from '../../support/scripted-server.ts';
import { startTestServer } from '../../support/server.ts';

const { server, upstream } = await scriptedServer();

interface Content {
  readonly content?: Readonly<Record<string, unknown>>;
}

interface Operation {
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content>>;
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

const documentOf = async (url: string) => (await (await fetch(`${url}/openapi.json`)).json()) as OpenApi;
const chatcompat = '/server/chatcompat/v1';
const message = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'one two' }] };

test(proves('service.one-origin', 'another deployment has the same addresses behind another origin, and answers at them'), async () => {
  const others = await startUpstream();
  const other = await startTestServer({ upstream: others.url, yaml: 'limits: { bodyBytes: 100000 }\n' });
  try {
    expect(new URL(other.url).origin).not.toBe(new URL(server.url).origin);
    const [here, there] = await Promise.all([documentOf(server.url), documentOf(other.url)]);
    expect(Object.keys(there.paths)).toEqual(Object.keys(here.paths));
    const statuses = await Promise.all([server, other].map(async (one) => (await one.ask(`${chatcompat}/chat/completions`, message)).status));
    expect(statuses).toEqual([200, 200]);
  } finally {
    await other.close();
    await others.close();
  }
});

test(proves('service.json-bodies', 'requests and answers are JSON, but for files, streams and tables, which the document names'), async () => {
  const { paths } = await documentOf(server.url);
  const unlike: string[] = [];
  for (const [path, operations] of Object.entries(paths))
    for (const [method, { requestBody, responses }] of Object.entries(operations)) {
      const asked = Object.keys(requestBody?.content ?? {});
      const answered = Object.entries(responses).flatMap(([status, { content }]) => (status.startsWith('2') ? Object.keys(content ?? {}) : []));
      if (asked.length > 0 && !asked.includes('application/json')) unlike.push(`${method} ${path}`);
      if (answered.length > 0 && !answered.includes('application/json')) unlike.push(`${method} ${path} → ${answered.join()}`);
    }
  expect(unlike).toMatchInlineSnapshot(`
    [
      "post /server/chatcompat/v1/audio/speech → audio/mpeg,audio/wav,audio/opus,audio/aac,audio/flac,audio/pcm,application/octet-stream,text/event-stream",
      "post /v1/audio/speech → audio/mpeg,audio/wav,audio/opus,audio/aac,audio/flac,audio/pcm,application/octet-stream,text/event-stream",
      "post /server/chatcompat/v1/audio/transcriptions",
      "post /v1/audio/transcriptions",
      "get /server/mcp/oauth/callback → text/html",
      "post /server/mine/datasets/{id}/files",
      "get /server/mine/datasets/{id}/files/{file}/original → application/octet-stream,*/*",
      "get /server/mine/runs/{id}/events → text/event-stream",
      "post /server/get-deep-agent → text/event-stream,text/plain",
      "get /server/get-deep-agent → text/event-stream,text/plain",
      "post /server/execute-plugin → text/plain,text/event-stream",
      "post /server/get-text-to-speech → audio/mpeg,audio/wav,application/octet-stream",
      "get /metrics → text/plain",
      "get /docs → text/html",
      "get /docs.css → text/css",
    ]
  `);
  for (const [path, body] of [
    [`${chatcompat}/chat/completions`, message],
    ['/server/query', { message: 'one two', model: 'gpt-4o-mini' }],
    ['/server/chatcompat/v1/nothing', {}],
  ] as const)
    expect((await server.ask(path, body)).headers.get('content-type')).toMatch(/^application\/json/);
});

test('the document names every type and status of an answer: streams, sounds, files, and work that goes on', async () => {
  const { paths } = await documentOf(server.url);
  const typesOf = (address: string, status = '200') => {
    const [method, path] = address.split(' ') as [string, string];
    return Object.keys(paths[path]?.[method]?.responses[status]?.content ?? {});
  };
  const streams = ['application/json', 'text/plain', 'text/event-stream'];
  for (const path of ['query', 'query_stream', 'query_with_file', 'query-plugin']) expect([path, typesOf(`post /server/${path}`)]).toEqual([path, streams]);
  expect(typesOf('post /server/execute-agent').toSorted()).toEqual(streams.toSorted());
  expect(typesOf('post /server/get-deep-agent').toSorted()).toEqual(['text/event-stream', 'text/plain']);
  expect(typesOf('get /server/mine/runs/{id}/events')).toEqual(['text/event-stream']);
  for (const path of ['chat/completions', 'responses']) expect(typesOf(`post ${chatcompat}/${path}`)).toEqual(['application/json', 'text/event-stream']);
  expect(typesOf('post /server/get-text-to-speech')).toEqual(['audio/mpeg', 'audio/wav', 'application/octet-stream']);
  expect(typesOf('get /server/mine/datasets/{id}/files/{file}/original')).toEqual(['application/octet-stream', '*/*']);
  for (const status of ['200', '400', '502', '503']) expect(typesOf('get /server/mcp/oauth/callback', status)).toEqual(['text/html']);
  for (const place of ['admin', 'mine', 'mine/teams/{id}'])
    for (const list of ['usage', 'logs'])
      expect([place, typesOf(`get /server/${place}/${list}`)]).toEqual([place, ['application/json', 'text/csv', 'application/x-ndjson']]);
  for (const path of ['train', 'train-with-file', 'train-with-array']) expect(typesOf(`post /server/${path}`, '202')).toEqual(['application/json']);
  for (const path of ['/server/mine/datasets/{id}/files', '/server/mine/datasets/{id}/sources/{source}/sync']) {
    expect(Object.keys(paths[path]?.['post']?.responses ?? {}).filter((status) => status.startsWith('2'))).toEqual(['202']);
    expect(typesOf(`post ${path}`, '202')).toEqual(['application/json']);
  }
  expect([typesOf('get /healthz'), typesOf('get /readyz'), typesOf('get /readyz', '503'), typesOf('get /metrics')]).toEqual([
    ...Array.from({ length: 3 }, () => ['application/json']),
    ['text/plain'],
  ]);
});

test('the document says that a refusal may name no field, as the answers without a key show', async () => {
  const { components } = (await (await fetch(`${server.url}/openapi.json`)).json()) as { components: { schemas: Record<string, object> } };
  expect(components.schemas['Error']).toMatchObject({ properties: { message: { type: 'string' }, param: { anyOf: [{ type: 'string' }, { type: 'null' }] } } });
  const params: unknown[] = [];
  for (const headers of [{}, { authorization: 'Bearer bad' }]) {
    const answer = await server.ask(`${chatcompat}/chat/completions`, { ...message, temperature: 9 }, { headers });
    params.push(((await answer.json()) as { error: { param: unknown } }).error.param);
  }
  expect(params).toEqual(['temperature', null]);
});

test(proves('service.generates-text', 'text is generated by a hosted model, and its answer comes back'), async () => {
  const answer = (await (await server.ask(`${chatcompat}/chat/completions`, message)).json()) as { choices: { message: { content: string } }[] };
  expect(answer.choices[0]!.message.content).toBe('You said: one two');
  expect(upstream.requests.at(-1)!.path).toBe('/v1/chat/completions');
});

test(proves('service.chatcompat-root', 'chat completions, responses, embeddings and the models are at one root'), async () => {
  const asked = [
    server.ask(`${chatcompat}/chat/completions`, message),
    server.ask(`${chatcompat}/responses`, { model: 'gpt-4o-mini', input: 'one two' }),
    server.ask(`${chatcompat}/embeddings`, { model: 'built-in-embedding', input: 'one two' }),
    server.ask(`${chatcompat}/models`),
  ];
  const objects = await Promise.all(asked.map(async (answer) => ((await (await answer).json()) as { object: string }).object));
  expect(objects).toEqual(['chat.completion', 'response', 'list', 'list']);
});

test(proves('service.native', 'tokens, keys, queries, training, chats, usage, agents, MCP servers, speech and secrets are there'), async () => {
  const asked: readonly (readonly [path: string, body: object])[] = [
    ['/user/get-token-with-api-key', { email: 'admin@localhost', api_key: server.key }],
    ['/user/get-user-api-keys', {}],
    ['/server/query', { message: 'one two', model: 'gpt-4o-mini' }],
    ['/server/train', { content: 'A line of text.' }],
    ['/user/get-chats', {}],
    ['/server/count-monthly-tokens', {}],
    ['/server/list-agents', {}],
    ['/server/list-mcp-servers', {}],
    ['/server/list-tts-voices', {}],
    ['/server/get-secrets', {}],
  ];
  const statuses = await Promise.all(asked.map(async ([path, body]) => [path, (await server.ask(path, body)).status]));
  expect(statuses).toEqual(asked.map(([path]) => [path, 200]));
});

test(proves('service.native-unversioned', 'no address of the native interface has a version in it, and none answers below one'), async () => {
  const { paths } = await documentOf(server.url);
  const native = Object.keys(paths).filter((path) => /^\/(user|server)\//.test(path) && !/^\/server\/(chatcompat|gencompat|messages)\//.test(path));
  expect(native.length).toBeGreaterThan(80);
  expect(native.filter((path) => /\/v\d/.test(path))).toEqual([]);
  for (const path of ['/server/v1/query', '/v1/server/query', '/user/v1/get-token']) expect((await server.ask(path, {})).status).toBe(404);
});
