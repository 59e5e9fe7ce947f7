import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { connectRaw, type Raw } from '../../support/fakes/raw.ts';
import { always, hang, times } from '../../support/fakes/upstream/index.ts';
import { chat } from '../../support/server.ts';
import { proves } from '../../support/proves.ts';
import { scriptedServer } from '../../support/scripted-server.ts';

const { upstream, server } = await scriptedServer(({ url }) => ({ upstream: url, yaml: 'limits: { maxConnections: 50 }\nrouting: { cooldownSeconds: 0 }\n' }));

const question = JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'hello' }] });
const asked = (key: string) =>
  `POST ${chat} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\ncontent-length: ${Buffer.byteLength(question)}\r\n\r\n${question}`;

/** This many connections at once, closed with the test. */
async function flood(url: string, many: number): Promise<Raw[]> {
  const all = await Promise.all(Array.from({ length: many }, () => connectRaw(url)));
  onTestFinished(() => all.forEach((raw) => raw.close()));
  return all;
}

/** Asks on a connection of its own. */
async function over(url: string, bytes: string) {
  const raw = await connectRaw(url);
  raw.send(bytes);
  try {
    return await raw.answer();
  } finally {
    raw.close();
  }
}

const health = 'GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n';

async function connections(url: string): Promise<number> {
  const { text } = await over(url, 'GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  return Number(/^dragoman_client_connections (\d+)$/m.exec(text)![1]);
}

describe('more connections than there are places', () => {
  test(proves('H-03', 'of which none says anything: health and chat are answered all the while, and at no time are there many more than places'), async () => {
    for (let round = 0; round < 3; round++) {
      await flood(server.url, 200);
      expect(await connections(server.url)).toBeLessThanOrEqual(50 + 64);
      expect((await over(server.url, health)).status).toBe(200);
      await expect.poll(async () => (await over(server.url, asked(server.key))).status).toBe(200); // within a moment a silent one has made room
    }
  });

  test(proves('H-03', 'that all wait for an answer: health answers, others are told 503 with Retry-After, and all is well afterwards'), async () => {
    upstream.script(always(hang()));
    const waiting = await flood(server.url, 60);
    for (const raw of waiting) raw.send(asked(server.key));
    await expect.poll(() => upstream.requests.length).toBe(50);
    expect((await over(server.url, health)).status).toBe(200);
    const refused = await over(server.url, asked(server.key));
    expect({ status: refused.status, wait: refused.header('retry-after'), connection: refused.header('connection') }).toEqual({
      status: 503,
      wait: '1',
      connection: 'close',
    });
    expect(JSON.parse(refused.text)).toMatchObject({ error: { type: 'server_error' } });

    const crowd = await flood(server.url, 300);
    expect((await over(server.url, health)).status).toBe(200);
    expect(waiting.filter((raw) => raw.received.length > 0)).toHaveLength(10); // those who were told that there was no place
    for (const raw of [...waiting, ...crowd]) raw.close();
    await upstream.until((requests) => requests.every(({ closedEarlyAt }) => closedEarlyAt) || undefined);
    upstream.reset();
    await expect.poll(async () => (await over(server.url, asked(server.key))).status).toBe(200);
  });
});

test(proves('H-03', 'a process that may open few files keeps some for itself: the flood takes none that an answer needs'), { timeout: 120_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-crowd-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const settings = `providers: { p: { dialect: openai-chat, baseUrl: "${upstream.url}/v1" } }\nmodels: { gpt-4o-mini: { targets: [{ provider: p }] } }\n`;
  await writeFile(join(folder, 'dragoman.yaml'), settings);
  const key = 'k'.repeat(64);
  const env = { ...process.env, PORT: '0', DRAGOMAN_DATA: join(folder, 'data'), DRAGOMAN_CONFIG: join(folder, 'dragoman.yaml'), DRAGOMAN_ADMIN_API_KEY: key };
  const program = new URL('../../../bin/dragoman.js', import.meta.url).pathname;
  const child = spawn('sh', ['-c', `ulimit -n 700; exec "${process.execPath}" "${program}"`], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = once(child, 'exit');
  let said = '';
  for await (const text of child.stdout.setEncoding('utf8')) if ((said += text).includes('curl')) break;
  const url = /http:\/\/[^/]+/.exec(said)![0];

  upstream.script(times(100, hang()));
  const waiting = await flood(url, 100);
  for (const raw of waiting) raw.send(asked(key));
  await expect.poll(() => upstream.requests.length, { timeout: 30_000 }).toBe(100);
  await flood(url, 1500);
  expect((await over(url, health)).status).toBe(200);
  for (const raw of waiting.splice(0, 50)) raw.close();
  await expect.poll(async () => (await over(url, asked(key))).status).toBe(200);
  child.kill('SIGTERM');
  for (const raw of waiting) raw.close();
  const [code] = await ended;
  const told = log.split('\n').filter((line) => line !== '' && !line.includes('"msg":"request"'));
  expect({ code, told: code === 0 ? [] : told.slice(-20) }).toEqual({ code: 0, told: [] });
});
