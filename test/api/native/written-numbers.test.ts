/* Numbers in the arguments of tools, in the values of plugins and in what is shown of answers stay as they were written: ids of 19 digits are no doubles. */
import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { anyPlace } from '../../support/databases.ts';
import { listening } from '../../support/fakes/listening.ts';
import { startScriptedMcp } from '../../support/fakes/mcp.ts';
import { ok, startUpstream, toolCalls } from '../../support/fakes/upstream/index.ts';
import { person, visited, type Person } from './visitors.ts';

const json = '{"id":1234567890123456789,"at":[1.10,{"x":2.50}]}';
const parameters = { type: 'object', properties: { id: { type: 'integer' }, at: { type: 'array' } } };

/** A server with a model, an MCP server whose tool `wipe` changes something, and a service over HTTP that answers with the body that it got. */
async function begun() {
  const upstream = await startUpstream();
  const mcp = await startScriptedMcp([{ name: 'wipe', inputSchema: parameters }]);
  const got: string[] = [];
  const service = await listening(
    createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (piece: string) => (body += piece));
      request.on('end', () => {
        got.push(`${request.url} ${body}`);
        response.writeHead(200, { 'content-type': 'application/json' }).end(`{"order":${body},"price":1.10}`);
      });
    }),
  );
  const yaml = [
    `providers: { p: { dialect: openai-chat, baseUrl: "${upstream.url}/v1", apiKeys: [k] } }`,
    'models: { m: { targets: [{ provider: p }] } }',
    `outbound: { allow: ["${mcp.origin}", "${service}"] }`,
    'mcp: { approval: never }\n',
  ].join('\n');
  const all = await visited(await anyPlace(), { yaml });
  const ada = await person(all);
  const server = (await ada.ask('POST', '/server/mine/mcp-servers', { name: 's', url: mcp.url })).body['id'] as number;
  const told = () => mcp.asked.filter(({ method }) => method === 'tools/call').map(({ text }) => /"arguments":(\{.*?\}\]\})/.exec(text)?.[1]);
  const request = {
    method: 'POST',
    url: `${service}/orders/{{id}}`,
    query: { id: '{{id}}' },
    body: { id: '{{id}}', at: '{{at}}' },
    answer: '/order',
  };
  /** The text of an answer, since a parsed one shows no digits. */
  const text = async (method: string, path: string, body?: string) =>
    (
      await fetch(all.server.url + path, {
        method,
        headers: { 'x-access-tokens': ada.key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body }),
      })
    ).text();
  return { upstream, ada, server, told, got, request, text };
}

const made = async (who: Person, tools: readonly object[]) =>
  (await who.ask('POST', '/server/mine/agents', { name: 'Worker', mode: 'single', instructions: 'Work.', model: 'm', tools })).body['id'] as number;

test('a tool of an MCP server is called with the numbers that the model wrote', { timeout: 120_000 }, async () => {
  const { upstream, ada, server, told, text } = await begun();
  upstream.script(toolCalls([{ name: 's__wipe', json }]), ok({ text: 'done' }));
  await ada.ask('POST', '/server/query', { model: 'm', message: 'Wipe it.', enabled_mcp_tools: [`${server}_wipe`] });
  await text('POST', `/server/mine/mcp-servers/${server}/test`, `{"tool":"wipe","arguments":${json}}`);
  const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__wipe","arguments":${json}}}`;
  await text('POST', '/server/mcp', call);
  upstream.script(toolCalls([{ name: 's__wipe', json }]), ok({ text: 'done' }));
  const agent = await made(ada, [{ type: 'mcp', server, approval: 'never' }]);
  await ada.ask('POST', '/server/execute-agent', { agent_id: agent, message: 'Wipe it.', streaming: false });
  expect(told()).toEqual([json, json, json, json]);
});

test('the user is asked to approve the call as it is, and it is made like that', { timeout: 120_000 }, async () => {
  const { upstream, ada, server, told, text } = await begun();
  upstream.script(toolCalls([{ name: 's__wipe', json }]), ok({ text: 'done' }));
  const agent = await made(ada, [{ type: 'mcp', server, approval: 'always' }]);
  const variables = '{"order":1234567890123456789}';
  const waiting = await text('POST', '/server/execute-agent', `{"agent_id":${agent},"message":"Wipe it.","streaming":false,"variables":${variables}}`);
  expect(waiting).toContain(`"arguments":${json}`);
  expect(String(upstream.requests[0]?.body)).toContain(JSON.stringify(variables).slice(1, -1));
  const run = `/server/mine/runs/${(JSON.parse(waiting) as { execution_id: string }).execution_id}`;
  expect(await text('GET', run)).toContain(`"arguments":${json}`);
  await ada.ask('POST', `${run}/approve`, { call: 'main.0.0', approved: true });
  const events = await text('GET', `${run}/events`);
  expect(events.split(`"arguments":${json}`)).toHaveLength(3);
  expect(told()).toEqual([json]);
});

test('calls of one tool with ids that are the same only as doubles are different calls', { timeout: 120_000 }, async () => {
  const { upstream, ada, server, told } = await begun();
  const ids = ['1234567890123456781', '1234567890123456782', '1234567890123456783', '1234567890123456784'];
  upstream.script(toolCalls(ids.map((id) => ({ name: 's__wipe', json: json.replace('1234567890123456789', id) }))), ok({ text: 'done' }));
  const agent = await made(ada, [{ type: 'mcp', server, approval: 'never' }]);
  await ada.ask('POST', '/server/execute-agent', { agent_id: agent, message: 'Wipe them.', streaming: false });
  expect(new Set(told())).toEqual(new Set(ids.map((id) => json.replace('1234567890123456789', id))));
});

test('a request of an agent or a plugin has them, and what is shown of its answer', { timeout: 120_000 }, async () => {
  const { upstream, ada, got, request, text } = await begun();
  upstream.script(toolCalls([{ name: 'order', json }]), ok({ text: 'done' }));
  const agent = await made(ada, [{ type: 'http', name: 'order', description: 'Orders.', parameters, request, approval: 'never' }]);
  await ada.ask('POST', '/server/execute-agent', { agent_id: agent, message: 'Order it.', streaming: false });
  expect(String(upstream.requests.at(-1)?.body)).toContain(JSON.stringify(json).slice(1, -1));
  const plugin = { plugin_name: 'order', title: 'Order', kind: 'http', fields: parameters, request };
  await ada.ask('POST', '/server/mine/plugins', plugin);
  const answer = await text('POST', '/server/execute-plugin', `{"plugin_name":"order","plugin_values":${json}}`);
  expect((JSON.parse(answer) as { message: string }).message).toBe(json);
  expect(got).toEqual(Array.from({ length: 2 }, () => `/orders/1234567890123456789?id=1234567890123456789 ${json}`));
});

test('a number is not what a schema permits because JavaScript rounds it to that', { timeout: 120_000 }, async () => {
  const { upstream, ada, got, request, text } = await begun();
  const properties = {
    id: { type: 'integer', enum: [5, 9007199254740992] },
    n: { type: 'integer' },
    most: { type: 'number', maximum: 9007199254740992 },
  };
  const fields = { type: 'object', properties };
  const refused = ['{"id":9007199254740993}', '{"id":5.00000000000000000001}', '{"n":1.00000000000000000001}', '{"most":9007199254740993}'];
  const sent = ['{"id":5}', '{"id":5.0}', '{"id":0.5e1}', '{"id":9007199254740992}', '{"n":1234567890123456789}', '{"most":900719925474099.30}'];
  const calls = { ...request, url: request.url.replace('/{{id}}', ''), query: {}, body: { id: '{{id}}', n: '{{n}}', most: '{{most}}' } };
  const ofAgent = { type: 'http', name: 'order', description: 'Orders.', parameters: fields, request: calls, approval: 'never' };
  const agent = await made(ada, [ofAgent]);
  await ada.ask('POST', '/server/mine/plugins', { plugin_name: 'order', title: 'Order', kind: 'http', fields, request: calls });
  const asked = async (values: string) => {
    upstream.script(toolCalls([{ name: 'order', json: values }]), ok({ text: 'done' }));
    await ada.ask('POST', '/server/execute-agent', { agent_id: agent, message: 'Order it.', streaming: false });
    return text('POST', '/server/execute-plugin', `{"plugin_name":"order","plugin_values":${values}}`);
  };
  for (const values of refused) expect(await asked(values)).toContain(`plugin_values.${/\w+/.exec(values)![0]} must be `);
  expect(got).toEqual([]);
  for (const values of sent) await asked(values);
  expect(got).toEqual(sent.flatMap((body) => [`/orders ${body}`, `/orders ${body}`]));
});

test('an integer is written plainly in addresses, headers and texts', { timeout: 120_000 }, async () => {
  const { upstream, ada, got, request } = await begun();
  const plain = { ...request, body: { id: '{{id}}', text: 'No. {{id}}' } };
  const agent = await made(ada, [{ type: 'http', name: 'order', description: 'Orders.', parameters, request: plain, approval: 'never' }]);
  for (const id of ['5.0', '0.5e1', '-0', '1234567890123456789']) {
    upstream.script(toolCalls([{ name: 'order', json: `{"id":${id}}` }]), ok({ text: 'done' }));
    await ada.ask('POST', '/server/execute-agent', { agent_id: agent, message: 'Order it.', streaming: false });
  }
  expect(got).toEqual([
    '/orders/5?id=5 {"id":5.0,"text":"No. 5"}',
    '/orders/5?id=5 {"id":0.5e1,"text":"No. 5"}',
    '/orders/0?id=0 {"id":-0,"text":"No. 0"}',
    '/orders/1234567890123456789?id=1234567890123456789 {"id":1234567890123456789,"text":"No. 1234567890123456789"}',
  ]);
});

test('a variable of an agent is not what its schema permits because JavaScript rounds it to that', { timeout: 120_000 }, async () => {
  const { ada, text } = await begun();
  const variables = { type: 'object', properties: { id: { type: 'integer', enum: [9007199254740992] }, n: { type: 'integer', minimum: 1, maximum: 5 } } };
  const agent = (await ada.ask('POST', '/server/mine/agents', { name: 'Worker', mode: 'single', instructions: 'Work.', model: 'm', variables })).body[
    'id'
  ] as number;
  const body = `{"agent_id":${agent},"message":"Hi.","streaming":false,"variables":{"id":9007199254740993}}`;
  expect(await text('POST', '/server/execute-agent', body)).toContain('variables.id must be one of 9007199254740992.');
  const other = `{"agent_id":${agent},"message":"Hi.","streaming":false,"variables":{"n":9}}`;
  expect(await text('POST', '/server/execute-agent', other)).toContain('variables.n must be a value of the type integer, at least 1, at most 5.');
});
