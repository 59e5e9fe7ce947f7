/* What only the build could break: `bin/build.js` leaves out what the server does not use of its packages. */
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { embedded } from '../support/databases.ts';
import { startUpstream } from '../support/fakes/upstream/index.ts';
import { askWith } from '../support/members.ts';
import { startProcess } from '../support/server-process.ts';

test('the built server asks providers at https addresses through a proxy', { timeout: 60_000 }, async () => {
  const asked: string[] = [];
  const proxy = createServer((_, response) => response.writeHead(502).end());
  proxy.on('connect', ({ url = '' }, socket) => {
    asked.push(url);
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void proxy.close());
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const { port } = proxy.address() as AddressInfo;
  const yaml = `  remote: { targets: [{ provider: remote }] }\noutbound: { proxy: "http://127.0.0.1:${port}" }\n`;
  const providers = '  remote: { dialect: openai-chat, baseUrl: "https://models.example/v1", apiKeys: [k] }\n';
  const server = await startProcess(await embedded.place(), upstream.url, yaml, { providers });
  const answer = await askWith(server, server.key, { model: 'remote', messages: [{ role: 'user', content: 'hi' }] });
  await answer.text();
  expect(answer.status).toBeGreaterThanOrEqual(500);
  expect(asked).toContain('models.example:443');
});
