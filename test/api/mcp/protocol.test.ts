/* /server/mcp as clients ask it that are no official ones: what they accept, what they leave out, and what they get wrong. */
import { expect, test } from 'vitest';
import { plainRequest } from '#kit/mcp/plain-request';
import { anyPlace } from '../../support/databases.ts';
import { visited, type Visited } from '../native/visitors.ts';

const long = 120_000;
const both = 'application/json, text/event-stream';
const initialize = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } };

/** @returns the status, the type, and the message of the answer */
async function asked({ server }: Visited, body: unknown, accept?: string) {
  const { hostname, port } = new URL(server.url);
  const { request } = await import('node:http'); // fetch always sends the header Accept
  const headers = { authorization: `Bearer ${server.key}`, 'content-type': 'application/json', ...(accept === undefined ? {} : { accept }) };
  return new Promise<{ status: number; type: string; message: Record<string, unknown> }>((resolve, reject) => {
    const sent = request({ hostname, port, path: '/server/mcp', method: 'POST', headers }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      answer.on('end', () => {
        const type = answer.headers['content-type']?.split(';')[0] ?? '';
        const json = type === 'text/event-stream' ? /^data: (.*)$/m.exec(text)![1]! : text;
        resolve({ status: answer.statusCode!, type, message: (json === '' ? {} : JSON.parse(json)) as Record<string, unknown> });
      });
    });
    sent.on('error', reject).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
}

const message = (method: string, params?: unknown) => ({ jsonrpc: '2.0', id: 7, method, ...(params === undefined ? {} : { params }) });

test('an answer is JSON for a client that does not name event streams, and 406 only for one that takes neither', { timeout: long }, async () => {
  const all = await visited(await anyPlace());
  const [json, stream] = ['application/json', 'text/event-stream'];
  const found = async (accept: string | undefined) => {
    const { status, type, message: answer } = await asked(all, message('ping'), accept);
    return [accept, status, type, answer['result'] ?? answer['error']];
  };
  for (const accept of [undefined, '*/*', 'application/json', 'application/*', 'text/html, */*;q=0.1', 'text/event-stream;q=0, */*'])
    expect(await found(accept)).toEqual([accept, 200, json, {}]);
  for (const accept of [both, 'text/event-stream', 'TEXT/EVENT-STREAM, APPLICATION/JSON', 'application/json;q=0.9, text/event-stream;q=0.5'])
    expect(await found(accept)).toEqual([accept, 200, stream, {}]);
  for (const accept of ['text/html', '*/*;q=0', 'application/json;q=0.0'])
    expect(await found(accept)).toEqual([accept, 406, json, { code: -32_000, message: expect.stringContaining('Accept') as string }]);
  const { message: list } = await asked(all, message('tools/list'), '*/*');
  expect(list).toMatchObject({ id: 7, result: { tools: expect.arrayContaining([expect.objectContaining({ name: 'search' })]) as unknown } });
  expect(await asked(all, { jsonrpc: '2.0', method: 'notifications/initialized' }, '*/*')).toMatchObject({ status: 202, message: {} });
});

test('wrong params are -32602 by their names, in both forms; what is no JSON is -32700', { timeout: long }, async () => {
  const all = await visited(await anyPlace());
  const { protocolVersion, capabilities, clientInfo } = initialize;
  const wrong: readonly (readonly [method: string, params: unknown, said: string])[] = [
    ['initialize', { capabilities, clientInfo }, 'params.protocolVersion is required.'],
    ['initialize', { protocolVersion: 5, capabilities, clientInfo }, 'params.protocolVersion must be a string.'],
    ['initialize', { protocolVersion, clientInfo }, 'params.capabilities is required.'],
    ['initialize', { protocolVersion, capabilities, clientInfo: { name: 'c' } }, 'params.clientInfo.version is required.'],
    ['initialize', undefined, 'params.protocolVersion is required.'],
    ['tools/call', {}, 'params.name is required.'],
    ['tools/call', { name: 'search', arguments: [] }, 'params.arguments must be an object.'],
    ['prompts/get', { name: 5 }, 'params.name must be a string.'],
    ['resources/read', {}, 'params.uri is required.'],
    ['tools/list', { cursor: 5 }, 'params.cursor must be a string.'],
    ...['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'].map(
      (method) => [method, { cursor: 'never given' }, 'cursor must be that of the page before'] as const,
    ),
  ];
  for (const [method, params, said] of wrong)
    for (const accept of [both, '*/*']) {
      const { status, message: answer } = await asked(all, message(method, params), accept);
      expect([method, status, answer]).toEqual([
        method,
        200,
        { jsonrpc: '2.0', id: 7, error: { code: -32_602, message: expect.stringContaining(said) as string } },
      ]);
    }
  for (const text of ['{', '{"jsonrpc":"2.0","id":1,"method":"ping","params":{'])
    expect(await asked(all, text, both)).toMatchObject({ status: 400, message: { id: null, error: { code: -32_700 } } });
});

test('the name and the capabilities of a client are not looked into, however many there are', { timeout: long }, async () => {
  const all = await visited(await anyPlace());
  const icons = Array(150_000).fill(0);
  const { message: answer } = await asked(all, message('initialize', { ...initialize, clientInfo: { ...initialize.clientInfo, icons } }), both);
  expect(answer).toMatchObject({ result: { protocolVersion: '2025-06-18' } });
  const sizeOf = (method: string, params: object) => JSON.stringify(plainRequest(message(method, params))).length;
  const experimental = Object.fromEntries(icons.slice(0, 5000).map((value: number, at) => [`k${at}`, value]));
  expect(sizeOf('initialize', { ...initialize, capabilities: { experimental } })).toBeLessThan(1000);
  expect(sizeOf('tools/list', { _meta: { 'io.modelcontextprotocol/clientCapabilities': { experimental } } })).toBeLessThan(1000);
  expect(sizeOf('prompts/get', { name: 'x', arguments: experimental })).toBeLessThan(1000);
  expect(plainRequest(message('tools/call', { name: 'x', arguments: { icons }, _meta: { progressToken: 1 } }))).toEqual(
    message('tools/call', { name: 'x', arguments: { icons }, _meta: { progressToken: 1 } }),
  );
});
