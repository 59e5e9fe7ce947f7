import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createHttp } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startUpstream, type Upstream } from '../support/fakes/upstream/index.ts';
import { openSite, outsideOf, publicAddress, sendPng, type Site } from '../support/fakes/web.ts';
import { chat, startTestServer } from '../support/server.ts';
import { proves } from '../support/proves.ts';

/** The ways to the outside: through a proxy, and over TLS. */

let upstream: Upstream;
let evil: Site;
beforeAll(async () => {
  upstream = await startUpstream();
  evil = await openSite('127.0.0.2');
});
afterAll(async () => {
  await Promise.all([upstream.close(), evil.close()]);
});

const yaml = (outbound: string) => `
providers:
  gemini: { dialect: gemini, baseUrl: "${upstream.url}/v1beta", apiKeys: [k] }
models:
  gem: { targets: [{ provider: gemini }] }
outbound: { ${outbound} }
`;
const image = (url: string) => ({ model: 'gem', messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] });

test('a proxy receives the checked address, and never an internal one', async () => {
  const asked: string[] = [];
  const proxy = createHttp();
  proxy.on('connect', (request, socket, head) => {
    asked.push(request.url!);
    const [host, port] = request.url!.split(':');
    const there = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      there.write(head);
      there.pipe(socket).pipe(there);
    });
    for (const one of [there, socket]) one.on('error', () => {});
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const { port } = proxy.address() as AddressInfo;
  const names: Record<string, readonly string[]> = { 'inner.example': ['127.0.0.1'] };
  const outside = outsideOf((host) => names[host] ?? [publicAddress], '127.0.0.2');
  const server = await startTestServer({ outside, yaml: yaml(`proxy: "http://127.0.0.1:${port}", noProxy: "127.0.0.1, direct.example"`) });
  try {
    expect((await server.ask(chat, image(`http://pictures.example:${evil.port}/x.png`))).status).toBe(200);
    expect(evil.requests[0]!.headers.host).toBe(`pictures.example:${evil.port}`);
    for (const host of ['127.0.0.1', '[::1]', 'inner.example', '169.254.169.254'])
      expect([host, (await server.ask(chat, image(`http://${host}:${evil.port}/x.png`))).status]).toEqual([host, 400]);
    expect(asked).toEqual([`127.0.0.2:${evil.port}`]);
    expect((await server.ask(chat, image(`http://direct.example:${evil.port}/x.png`))).status).toBe(200);
    expect(asked).toHaveLength(1);
  } finally {
    await server.close();
    proxy.closeAllConnections();
    proxy.close();
  }
}, 120_000);

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

test.skipIf(!hasOpenssl)(
  proves('N-05', 'over TLS the name of the host is verified, whichever address was dialled'),
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'dragoman-guard-'));
    const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
    openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=An authority of our own');
    const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-addext', 'subjectAltName=DNS:pictures.example'];
    openssl('req', '-x509', ...key, '-keyout', 'key.pem', '-out', 'cert.pem', '-subj', '/CN=pictures', ...signed);
    const seen: (string | false | null | undefined)[] = [];
    const server = createHttps({ key: readFileSync(join(folder, 'key.pem')), cert: readFileSync(join(folder, 'cert.pem')) }, (request, response) => {
      seen.push((request.socket as { servername?: string | false | null }).servername, request.headers.host);
      sendPng(request, response);
    });
    server.listen(0, '127.0.0.2');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const dragoman = await startTestServer({ outside: outsideOf(() => [publicAddress], '127.0.0.2'), yaml: yaml(`caFile: "${join(folder, 'ca.pem')}"`) });
    try {
      expect((await dragoman.ask(chat, image(`https://pictures.example:${port}/x.png`))).status).toBe(200);
      expect(seen).toEqual(['pictures.example', `pictures.example:${port}`]);
      expect((await dragoman.ask(chat, image(`https://other.example:${port}/x.png`))).status).toBe(400);
      expect(seen).toHaveLength(2);
    } finally {
      await dragoman.close();
      server.closeAllConnections();
      server.close();
      rmSync(folder, { recursive: true });
    }
  },
  120_000,
);
