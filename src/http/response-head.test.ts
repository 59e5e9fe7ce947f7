import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { writeHead } from './response-head.ts';

/** What a client gets from a server that answers like this. */
async function answer(answering: (response: ServerResponse) => void, method = 'GET'): Promise<{ message: IncomingMessage; body: string }> {
  const server = createServer((_request, response) => answering(response)).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const message = await new Promise<IncomingMessage>((resolve, reject) => request({ port, method }, resolve).on('error', reject).end());
    return { message, body: await text(message) };
  } finally {
    server.close();
  }
}

test('a header has the value of its own answer, whatever the answers before had', async () => {
  for (const value of ['one', 'one', 'two', 'one', '']) {
    const { message, body } = await answer((response) => {
      writeHead(response, 200, ['x-of-this-answer', value], ['content-length', '2', 'x-always', 'the same']);
      response.end('ok');
    });
    expect(message.rawHeaders).toEqual(expect.arrayContaining(['x-of-this-answer', value, 'x-always', 'the same', 'content-length', '2', 'Date']));
    expect(body).toBe('ok');
  }
});

test('a header that is given twice is sent twice, in its order', async () => {
  const { message } = await answer((response) => {
    writeHead(response, 200, ['set-cookie', 'a=1', 'set-cookie', 'b=2']);
    response.end();
  });
  expect(message.headers['set-cookie']).toEqual(['a=1', 'b=2']);
});

test('the runtime frames the body and keeps or closes the connection', async () => {
  const chunked = await answer((response) => {
    writeHead(response, 200, ['x-always', 'the same']);
    response.write('a');
    response.end('b');
  });
  expect(chunked.message.headers['transfer-encoding']).toBe('chunked');
  expect(chunked.body).toBe('ab');
  const closing = await answer((response) => {
    writeHead(response, 204, ['connection', 'close']);
    response.end();
  });
  expect(closing.message.headers.connection).toBe('close');
  expect(closing.message.headers['transfer-encoding']).toBeUndefined();
  const { message, body } = await answer((response) => {
    writeHead(response, 200, ['content-length', '2']);
    response.end('ok');
  }, 'HEAD');
  expect([message.headers['content-length'], body]).toEqual(['2', '']);
});

test.each([
  ['x-text', 'a\r\nx-other: b'],
  ['x-text', 'a\nb'],
  ['x-text', '\u0000'],
  ['x-text', 'Ω'],
  ['x text', 'a'],
  ['', 'a'],
])('no name or value may end a line: %j %j', async (name, value) => {
  let thrown: unknown;
  await answer((response) => {
    try {
      writeHead(response, 200, [name, value]);
    } catch (error) {
      thrown = error;
    }
    response.end();
  });
  expect(thrown).toBeInstanceOf(TypeError);
});
