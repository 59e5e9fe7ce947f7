import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { chat, startTestServer } from '../support/server.ts';

const folder = mkdtempSync(join(tmpdir(), 'dragoman-authority-'));
const at = (name: string) => join(folder, name);
const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

/** A provider over TLS whose certificate was made by an authority that nobody knows. */
const server = createServer((_request, response) => {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ id: 'x', object: 'chat.completion', model: 'm', choices: [{ index: 0, message: { content: 'hello over TLS' } }] }));
});

beforeAll(async () => {
  if (!hasOpenssl) return;
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=An authority of our own');
  openssl(
    'req',
    '-x509',
    ...key,
    '-keyout',
    'key.pem',
    '-out',
    'cert.pem',
    '-subj',
    '/CN=provider',
    '-CA',
    'ca.pem',
    '-CAkey',
    'ca.key',
    '-addext',
    'subjectAltName=IP:127.0.0.1',
  );
  server.setSecureContext({ key: readFileSync(at('key.pem')), cert: readFileSync(at('cert.pem')) });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(async () => {
  server.closeAllConnections();
  if (server.listening) await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true });
});

const url = () => `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
const asked = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'hello' }] };

describe.skipIf(!hasOpenssl)('a provider whose certificate is signed by a private authority', () => {
  test('is not trusted', async () => {
    const server = await startTestServer({ upstream: url() });
    expect((await server.ask(chat, asked)).status).toBe(503);
    await server.close();
  });

  test('answers when outbound.caFile contains the authority', async () => {
    const server = await startTestServer({ upstream: url(), yaml: `outbound: { caFile: ${at('ca.pem')} }` });
    const answer = await server.ask(chat, asked);
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('hello over TLS');
    await server.close();
  });

  test('answers when NODE_EXTRA_CA_CERTS contains it', async () => {
    const settings = `providers: { p: { dialect: openai-chat, baseUrl: "${url()}/v1" } }\nmodels: { gpt-4o-mini: { targets: [{ provider: p }] } }\n`;
    writeFileSync(at('dragoman.yaml'), settings);
    const key = 'k'.repeat(64);
    const env = { NODE_EXTRA_CA_CERTS: at('ca.pem'), PORT: '0', DRAGOMAN_DATA: at('data'), DRAGOMAN_CONFIG: at('dragoman.yaml'), DRAGOMAN_ADMIN_API_KEY: key };
    const child = spawn(process.execPath, [new URL('../../bin/dragoman.js', import.meta.url).pathname], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const ended = once(child, 'exit');
    let said = '';
    for await (const text of child.stdout.setEncoding('utf8')) if ((said += text).includes('curl')) break;
    const answer = await fetch(/http:\S+completions/.exec(said)![0], {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(asked),
    });
    expect(await answer.text()).toContain('hello over TLS');
    child.kill('SIGTERM');
    await ended;
  });
});
