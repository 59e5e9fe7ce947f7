import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestServer, type TestServer } from '../../support/server.ts';

/* What somebody sees who opens the address that the first start prints. */

let server: TestServer;
let configured: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  configured = await startTestServer({ upstream: 'http://127.0.0.1:9', yaml: 'publicUrl: https://ai.example\n' });
});
afterAll(() => Promise.all([server.close(), configured.close()]));

const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const open = (path: string, accept = browser, init: RequestInit = {}, at = server) => fetch(at.url + path, { ...init, headers: { accept } });

describe('/', () => {
  test.each([browser, '*/*', 'text/html, application/json'])('is a page for who accepts %s: without script, under a strict policy', async (accept) => {
    const answer = await open('/', accept);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const policy = answer.headers.get('content-security-policy')!;
    for (const rule of ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"]) expect(policy).toContain(rule);
    expect(policy).not.toContain('unsafe');
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    const text = await answer.text();
    expect(text).not.toMatch(/<script|style=|\son\w+=/);
    for (const part of [
      `${server.url}/v1`,
      `ANTHROPIC_BASE_URL=${server.url}`,
      `GOOGLE_GEMINI_BASE_URL=${server.url}`,
      'href="/docs"',
      'href="/openapi.json"',
      'href="/healthz"',
    ])
      expect(text).toContain(part);
    expect(text).not.toContain(server.key);
  });

  test('says whether a provider is configured, and nothing else of it', async () => {
    expect(await (await open('/')).text()).toContain('No model provider is configured yet');
    const text = await (await open('/', browser, {}, configured)).text();
    expect(text).toContain('A model provider is configured.');
    expect(text).not.toMatch(/fake|127\.0\.0\.1:9/);
  });

  test('names the public address where there is one, and else the one that was asked, if that is one', async () => {
    expect(await (await open('/', browser, {}, configured)).text()).toContain('https://ai.example/v1');
    const { connectRaw } = await import('../../support/fakes/raw.ts');
    const raw = await connectRaw(server.url);
    raw.send("GET / HTTP/1.1\r\nhost: a'onload='b&lt;:80\r\nconnection: close\r\n\r\n");
    const { text } = await raw.answer();
    expect(text).not.toMatch(/onload|&lt;:80/);
    expect(text).toContain('http://localhost/v1');
  });

  test('the OpenAPI document and its page name the public address where there is one, and else whatever they were asked at', async () => {
    const document = async (at: TestServer) => ((await (await open('/openapi.json', '*/*', {}, at)).json()) as { servers: unknown }).servers;
    expect([await document(server), await document(configured)]).toEqual([[{ url: '/' }], [{ url: 'https://ai.example' }]]); // relative to the document's own address
    expect(await (await open('/docs')).text()).toContain('Every address of this server,');
    expect(await (await open('/docs', browser, {}, configured)).text()).toContain('Every address of <code>https://ai.example</code>,');
  });

  test('is a description for programs that ask for JSON', async () => {
    const answer = await open('/', 'application/json');
    expect([answer.status, await answer.json()]).toEqual([
      200,
      {
        name: 'Dragoman',
        version: expect.any(String) as string,
        interfaces: expect.arrayContaining([{ name: 'openai', base: `${server.url}/v1` }]) as unknown,
        providerConfigured: false,
        links: { docs: '/docs', openapi: '/openapi.json', health: '/healthz', ready: '/readyz' },
      },
    ]);
  });

  test('the snippets are true: each base address answers its models', async () => {
    const { interfaces } = (await (await open('/', 'application/json')).json()) as { interfaces: { name: string; base: string }[] };
    const models: Record<string, [string, Record<string, string>]> = {
      openai: ['/models', {}],
      anthropic: ['/v1/models', { 'anthropic-version': '2023-06-01' }],
      google: ['/v1beta/models', {}],
      native: ['/server/get-models', {}],
    };
    for (const { name, base } of interfaces) {
      const [path, headers] = models[name]!;
      const answer = await fetch(base + path, { method: name === 'native' ? 'POST' : 'GET', headers: { 'x-access-tokens': server.key, ...headers } });
      expect([name, answer.status]).toEqual([name, 200]);
    }
  });
});

test('/docs/ is /docs, and no picture is no error', async () => {
  const [slash, plain] = await Promise.all(['/docs/', '/docs'].map(async (path) => (await open(path)).text()));
  expect(slash).toBe(plain);
  const icon = await open('/favicon.ico');
  expect([icon.status, icon.headers.get('content-length'), await icon.text()]).toEqual([204, null, '']);
});

test('other methods of / are refused', async () => {
  expect((await open('/', browser, { method: 'POST' })).status).toBe(405);
});
