/* MCP servers that a provider connects to: they are judged as those that the gateway connects to. */
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { askFace, type Face } from '../support/all-faces.ts';
import { always, ok } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';
import { person, visitorsOf, type Person } from '../api/native/visitors.ts';

const listed = 'https://owls.example/mcp';
const { upstream, server } = await scriptedServer((one) => ({
  yaml: `${everyWire(one)}mcp: { mode: whitelist, whitelist: [{ name: owls, url: "${listed}" }] }\n`,
}));
const open = await scriptedServer((one) => ({ yaml: everyWire(one) }));

beforeEach(() => {
  for (const one of [upstream, open.upstream]) {
    one.reset();
    one.script(always(ok()));
  }
});

interface Way {
  readonly face: Face;
  readonly field: string;
  /** What a request names a server with. */
  readonly naming: (url: string) => object;
}

const ways: readonly Way[] = [
  { face: 'responses', field: 'tools[0].server_url', naming: (url) => ({ tools: [{ type: 'mcp', server_label: 'z', server_url: url }] }) },
  {
    face: 'responses',
    field: 'input.server_url',
    naming: (url) => ({
      input: [
        { type: 'additional_tools', role: 'assistant', tools: [{ type: 'mcp', server_url: url }] },
        { role: 'user', content: 'hi' },
      ],
    }),
  },
  {
    face: 'responses',
    field: 'tools[0].tools[0].server_url',
    naming: (url) => ({
      tools: [{ type: 'namespace', name: 'n', description: 'd', tools: [{ type: 'mcp', server_label: 'z', server_url: url }] }],
    }),
  },
  {
    face: 'responses',
    field: 'tools[0].tools[0].tools[0].server_url',
    naming: (url) => ({
      tools: [{ type: 'namespace', name: 'n', description: 'd', tools: [{ type: 'namespace', name: 'm', tools: [{ type: 'mcp', server_url: url }] }] }],
    }),
  },
  { face: 'messages', field: 'mcp_servers[0].url', naming: (url) => ({ mcp_servers: [{ type: 'url', name: 'z', url }] }) },
  {
    face: 'gencompat',
    field: 'tools[0].mcpServers[0].streamableHttpTransport.url',
    naming: (url) => ({ tools: [{ mcpServers: [{ name: 'z', streamableHttpTransport: { url } }] }] }),
  },
  { face: 'chat', field: 'tools[0].server_url', naming: (url) => ({ tools: [{ type: 'mcp', server_label: 'z', server_url: url }] }) },
  { face: 'chat', field: 'tools[0].mcp.server_url', naming: (url) => ({ tools: [{ type: 'mcp', mcp: { server_label: 'z', server_url: url } }] }) },
  {
    face: 'chat',
    field: 'tools[0].server_url',
    naming: (url) => ({ tools: [{ type: 'mcp', server_url: url, mcp: { server_label: 'z', server_url: listed } }] }),
  },
];

const ask = (
  { face, naming }: Pick<Way, 'face' | 'naming'>,
  url: string,
  at: { readonly url: string; readonly key: string } = server,
  model: string = modelOf[face],
) => askFace(at, face, { model, content: 'hi', stream: false, more: naming(url) });
const modelOf: Readonly<Record<Face, string>> = { chat: 'chat', responses: 'responses', messages: 'messages', gencompat: 'gemini' };

const elsewhere = [
  'https://evil.example/mcp',
  `${listed}/`,
  'http://owls.example/mcp',
  'https://owls.example:8443/mcp',
  'https://owls.example.evil.example/mcp',
];

for (const way of ways) {
  const { face, field } = way;
  test(`in whitelist mode no address but a listed one reaches a provider: ${face}, ${field}`, async () => {
    for (const url of elsewhere)
      for (const model of ['chat', modelOf[face]]) {
        const { status, raw } = await ask(way, url, server, model);
        expect([url, status, raw]).toEqual([url, 403, expect.stringContaining(field)]);
      }
    expect((await ask(way, 'javascript:x')).status).toBe(400);
    expect(upstream.requests).toEqual([]);
  });

  test(`in open mode a provider is asked for public addresses alone: ${face}, ${field}`, async () => {
    for (const url of ['javascript:x', 'http://169.254.169.254/', 'https://127.0.0.1/mcp', 'https://user:word@owls.example/mcp']) {
      const { status, raw } = await ask(way, url, open.server);
      expect([url, status, raw]).toEqual([url, 400, expect.stringContaining(field)]);
    }
    expect(open.upstream.requests).toEqual([]);
    expect([(await ask(way, listed, open.server)).status, JSON.stringify(open.upstream.requests)]).toEqual([200, expect.stringContaining(listed)]);
  });
}

test('an address of the whitelist reaches a provider that connects to it', async () => {
  expect([
    (
      await ask(
        ways.find(({ face }) => face === 'messages')!,
        listed,
      )
    ).status,
    JSON.stringify(upstream.requests),
  ]).toEqual([200, expect.stringContaining(listed)]);
});

const connectors: readonly object[] = [
  { tools: [{ type: 'mcp', server_label: 'z', connector_id: 'connector_gmail' }] },
  { tools: [{ type: 'mcp', server_label: 'z', connector_id: 'connector_gmail', server_url: listed }] },
  { tools: [{ type: 'mcp', server_label: 'z', tunnel_id: 'tunnel_1' }] },
];

test.each(connectors)('a connector is on no whitelist, and passed on in open mode: %j', async (more) => {
  const asked = { model: 'responses', content: 'hi', stream: false, more };
  const { status, raw } = await askFace(server, 'responses', asked);
  expect([status, raw, upstream.requests]).toEqual([403, expect.stringContaining('tools[0]'), []]);
  expect((await askFace(open.server, 'responses', asked)).status).toBe(200);
});

let [narrow, few]: (Person | undefined)[] = [];
beforeAll(async () => {
  const all = visitorsOf(open.server);
  [narrow, few] = [await person(all, {}, { scopes: ['passthrough'] }), await person(all, {}, { mcpTools: ['s__one'] })];
});

test.each(ways)('a key without the scope mcp, or for some tools alone, names no server to a provider: $face, $field', async (way) => {
  for (const { key } of [narrow!, few!]) expect((await ask(way, listed, { url: open.server.url, key })).status).toBe(403);
  expect(open.upstream.requests).toEqual([]);
});

test('a count of tokens reaches no provider with a server that is not listed', async () => {
  const body = { model: 'messages', messages: [{ role: 'user', content: 'hi' }], mcp_servers: [{ type: 'url', name: 'z', url: elsewhere[0] }] };
  const { status } = await visitorsOf(server).admin('POST', '/server/messages/v1/messages/count_tokens', body);
  expect([status, upstream.requests]).toEqual([403, []]);
});
