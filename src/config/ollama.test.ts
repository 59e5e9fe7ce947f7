import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { answersAsOllama, ollamaAddress, runningOllama } from './ollama.ts';

test.each([
  ['127.0.0.1', 'http://127.0.0.1:11434'],
  ['0.0.0.0', 'http://127.0.0.1:11434'],
  ['0.0.0.0:9', 'http://127.0.0.1:9'],
  ['[::]:9', 'http://[::1]:9'],
  ['::1', '::1'],
  [':9', 'http://127.0.0.1:9'],
  ['box', 'http://box:11434'],
  ['box:80', 'http://box'],
  ['box/path/', 'http://box:11434/path'],
  ['http://box', 'http://box'],
  ['https://box', 'https://box'],
  ['https://box:9/', 'https://box:9'],
  ['a b', 'a b'],
])('OLLAMA_HOST=%s is %s', (text, address) => {
  expect(ollamaAddress(text)).toBe(address);
});

test('one that runs is found at its usual address, one that does not is not', async () => {
  expect(await runningOllama(async (url) => url === 'http://127.0.0.1:11434/api/version')).toBe('http://127.0.0.1:11434');
  expect(await runningOllama(async () => false)).toBeUndefined();
});

describe('an Ollama is', () => {
  async function asked(listener: RequestListener, milliseconds = 200): Promise<boolean> {
    const server = createServer(listener);
    onTestFinished(() => void (server.closeAllConnections(), server.close()));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return answersAsOllama(`http://127.0.0.1:${(server.address() as AddressInfo).port}/api/version`, milliseconds);
  }

  test('what answers with its version', async () => {
    expect(await asked((_, response) => response.end('{"version":"0.9.1"}'), 30_000)).toBe(true);
  });

  test.each<[string, RequestListener]>([
    ['says something else', (_, response) => response.end('<html>')],
    ['has no such page', (_, response) => response.writeHead(404).end('{"version":"0.9.1"}')],
    ['never answers', () => {}],
    ['never ends', (_, response) => response.write('{"version":')],
    ['says too much', (_, response) => response.end(`{"version":"${'1'.repeat(100_000)}"}`)],
    ['hangs up', (request) => request.socket.destroy()],
  ])('not what %s', async (_, listener) => {
    expect(await asked(listener)).toBe(false);
  });

  test('not a port where nobody listens', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    expect(await answersAsOllama(`http://127.0.0.1:${port}/api/version`, 200)).toBe(false);
  });
});
