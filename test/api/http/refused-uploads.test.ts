import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { connectRaw } from '../../support/fakes/raw.ts';
import { scriptedServer } from '../../support/scripted-server.ts';
import { chat, startTestServer } from '../../support/server.ts';

/** Bodies that are refused before all of them has come: what the client is told must outlive the bytes that are still on their way. */

const { upstream, server } = await scriptedServer(({ url }) => ({ upstream: url, yaml: 'limits: { bodyBytes: 1000000, fileBytes: 1000000 }\n' }));

const size = 20_000_000;
const head = (path: string, key: string, ...more: string[]) =>
  [`POST ${path} HTTP/1.1`, 'host: here', `authorization: Bearer ${key}`, 'content-type: application/json', ...more, '', ''].join('\r\n');
const announced = `content-length: ${size}`;
const chunked = 'transfer-encoding: chunked';

/** Writes all of a request before it reads anything, as blocking clients do. @returns the answer */
async function writeThenRead(first: string, body: Buffer): Promise<string> {
  const socket = connect({ port: Number(new URL(server.url).port), host: '127.0.0.1', allowHalfOpen: true });
  await once(socket, 'connect');
  socket.pause();
  socket.write(first);
  await new Promise<void>((resolve, reject) => socket.write(body, (error) => (error ? reject(error) : resolve())));
  const pieces: Buffer[] = [];
  for await (const piece of socket.resume()) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString('latin1');
}

const body = Buffer.alloc(size, 'x');
const inChunks = Buffer.concat([Buffer.from(`${size.toString(16)}\r\n`), body, Buffer.from('\r\n0\r\n\r\n')]);
const form = Buffer.concat([Buffer.from('--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'), body, Buffer.from('\r\n--b--\r\n')]);

describe('a client that writes 20 MB before it reads', () => {
  test.each([
    ['the key is wrong', 401, 20, head(chat, 'wrong', announced), body],
    ['the address is unknown', 404, 2, head('/nowhere', 'wrong', announced), body],
    ['the announced length is too large', 413, 20, head(chat, server.key, announced), body],
    ['the body grows too large', 413, 5, head(chat, server.key, chunked), inChunks],
    [
      'a file of a form is too large',
      413,
      5,
      head('/server/file', server.key, `content-length: ${form.length}`).replace('application/json', 'multipart/form-data; boundary=b'),
      form,
    ],
  ])('reads the answer where %s', async (_why, status, tries, first, sent) => {
    for (let tried = 0; tried < tries; tried++) {
      const answer = await writeThenRead(first, sent);
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      expect(answer).toMatch(/^connection: close\r$/im);
    }
  });
});

test('a request behind a refused body is not answered', async () => {
  upstream.reset();
  const next = '{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}';
  const answer = await writeThenRead(
    head(chat, 'wrong', announced),
    Buffer.concat([body, Buffer.from(head(chat, server.key, `content-length: ${next.length}`) + next)]),
  );
  expect(answer.match(/^HTTP\/1.1/gm)).toHaveLength(1);
  expect(upstream.requests).toHaveLength(0);
});

test('a client that goes on writing for ever, or neither writes nor closes, is cut off', async () => {
  const connections = async () => Number(/^dragoman_client_connections (\d+)$/m.exec(await (await fetch(`${server.url}/metrics`)).text())![1]);
  await expect.poll(connections).toBe(1);
  const silent = await connectRaw(server.url);
  silent.send(head(chat, 'wrong', announced));
  expect((await silent.answer()).status).toBe(401);
  expect(await silent.ended()).toBe('fin');
  const endless = connect({ port: Number(new URL(server.url).port), host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {});
  endless.write(head(chat, 'wrong', chunked));
  const chunk = Buffer.from(`${(1_000_000).toString(16)}\r\n${'x'.repeat(1_000_000)}\r\n`);
  const write = () => void endless.write(chunk, (error) => error ?? write());
  write();
  await new Promise((resolve) => endless.resume().on('close', resolve));
  await expect.poll(connections).toBe(1);
  silent.close();
});

test('a server that stops does not wait for what is still to come of refused bodies', { timeout: 100_000 }, async () => {
  const other = await startTestServer({ upstream: upstream.url });
  const silent = await connectRaw(other.url);
  silent.send(head(chat, 'wrong', announced));
  expect((await silent.answer()).status).toBe(401);
  await other.close();
});
