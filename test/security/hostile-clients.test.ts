import { describe, expect, onTestFinished, test } from 'vitest';
import { connectRaw } from '../support/fakes/raw.ts';
import { always, endless, hang, ok, pace, talkative } from '../support/fakes/upstream/index.ts';
import { chat, startTestServer } from '../support/server.ts';
import { loggedBy } from '../support/members.ts';
import { proves } from '../support/proves.ts';
import { scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer(({ url }) => ({
  upstream: url,
  yaml: `limits: { streamSeconds: 3, headerSeconds: 3 }
routing: { cooldownSeconds: 0 }
`,
}));

/** A request for chat as bytes. */
function asked(stream: boolean, more: object = {}, key = server.key): string {
  const body = JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'one two three' }], stream, ...more });
  return `POST ${chat} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

async function figure(name: string): Promise<number> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

describe('a client that does not read', () => {
  test('holds its stream up, is cut off after the time that a client may pause, and pays for what was sent', async () => {
    const hasty = await startTestServer({ upstream: upstream.url, yaml: 'limits: { bodyIdleSeconds: 1 }\n' });
    onTestFinished(hasty.close);
    upstream.script(always(endless()));
    const all = await Promise.all(Array.from({ length: 10 }, () => connectRaw(hasty.url)));
    for (const raw of all) {
      raw.pause();
      raw.send(asked(true, {}, hasty.key));
    }
    const isLeft = ({ closedEarlyAt }: { readonly closedEarlyAt: number | undefined }) => closedEarlyAt !== undefined;
    await upstream.until((requests) => requests.filter(isLeft).length === all.length, 100_000);
    await expect.poll(async () => (await loggedBy(hasty)).length).toBe(all.length);
    for (const { end, outputTokens } of await loggedBy(hasty)) expect({ end, isPaid: outputTokens > 0 }).toEqual({ end: 'client-left', isPaid: true });
    for (const raw of all) raw.close();
  });

  test.each([
    ['the passthrough', {}],
    ['the decoded path', { app_name: 'x' }],
  ])('keeps no request in flight beyond its time limit, on %s', async (_way, more) => {
    upstream.script(always(endless()));
    const raw = await connectRaw(server.url);
    raw.pause();
    raw.send(asked(true, more));
    await upstream.closed(0);
    await expect.poll(() => figure('dragoman_requests_in_flight'), { timeout: 30_000 }).toBe(1); // the one that asks for the figures
    raw.close();
  });
});

describe('bytes that are not HTTP', () => {
  test(proves('H-01', 'after a running stream end the connection, and no second answer appears in the middle of the first'), async () => {
    upstream.script(pace(50));
    const raw = await connectRaw(server.url);
    raw.send(asked(true));
    await raw.until('"You ');
    raw.send('NOT HTTP\r\n\r\n');
    await raw.ended();
    expect(raw.received.toString('latin1').match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test(proves('H-01', 'after a request that waits for its answer are not answered in its place'), async () => {
    upstream.script(hang());
    const raw = await connectRaw(server.url);
    raw.send(asked(false));
    await upstream.arrived(0);
    raw.send('NOT HTTP\r\n\r\n');
    await raw.ended();
    expect(raw.received).toHaveLength(0);
    await upstream.closed(0);
  });

  test.each([
    ['an unknown address, without a length', 'POST /no HTTP/1.1\r\nhost: a\r\n\r\n', 404],
    ['an unknown address, with a length that is too small', 'POST /no HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}', 404],
    ['the address of the health check', 'GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n', 200],
    ['no host', 'GET /healthz HTTP/1.1\r\n\r\n', 400],
    ['no credential', `POST ${chat} HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}`, 401],
  ])(proves('H-01', 'in one piece with a request that is answered at once, with %s, leave it its one answer'), async (_what, head, status) => {
    const raw = await connectRaw(server.url);
    raw.send(`${head}{"a":1}`);
    await raw.ended();
    expect(raw.received.toString('latin1').match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`]);
  });
});

test(proves('H-02', 'idle connections keep no file descriptor open, even if the other side never closes its end'), async () => {
  const files = await figure('process_open_fds');
  const all = await Promise.all(Array.from({ length: 100 }, () => connectRaw(server.url)));
  await expect.poll(() => figure('process_open_fds')).toBeGreaterThanOrEqual(files + 195);
  await expect.poll(() => figure('process_open_fds'), { timeout: 30_000, interval: 100 }).toBeLessThanOrEqual(files + 130); // our own ends
  for (const raw of all) raw.close();
});

test('QUERY is refused with our own error, like every unsupported method', async () => {
  const raw = await connectRaw(server.url);
  raw.send('QUERY /healthz HTTP/1.1\r\nhost: a\r\n\r\n');
  const answer = await raw.answer();
  expect({ status: answer.status, allow: answer.header('allow'), id: answer.header('x-request-id') }).toEqual({
    status: 405,
    allow: 'GET, HEAD',
    id: expect.stringMatching(/^req_/),
  });
  raw.close();
});

test(proves('S-12', 'two requests on one connection are answered in order and not mixed'), async () => {
  upstream.script(pace(20), ok());
  const raw = await connectRaw(server.url);
  raw.send(asked(true) + asked(false));
  const [first, second] = [await raw.answer(), await raw.answer()];
  expect(first.text).toContain('[DONE]');
  expect(JSON.parse(second.text)).toHaveProperty('choices');
  raw.close();
});

describe('pipelined requests', () => {
  const health = 'GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n';

  test('are all answered in order if there are 32 of them', async () => {
    const gate = Promise.withResolvers<void>();
    upstream.script(talkative(1, gate.promise));
    const raw = await connectRaw(server.url);
    raw.send(asked(false) + health.repeat(31));
    await upstream.arrived(0);
    gate.resolve();
    expect((await raw.answer()).text).toContain('choices');
    for (let at = 0; at < 31; at++) expect((await raw.answer()).status).toBe(200);
    raw.send(health.repeat(32)); // what was answered does not count
    for (let at = 0; at < 32; at++) expect((await raw.answer()).status).toBe(200);
    raw.close();
  });

  test.each([32, 100_000])('end the connection and all requests on it if %i more than one arrive at once', async (many) => {
    upstream.script(hang());
    const raw = await connectRaw(server.url);
    raw.send(asked(false));
    await upstream.arrived(0);
    raw.send(health.repeat(many));
    await raw.ended();
    await upstream.closed(0);
    expect(raw.received).toHaveLength(0);
  });

  test('all end when their client disconnects, and release everything', async () => {
    upstream.script(hang(), hang(), ok({ text: 'x'.repeat(200_000) }));
    const raw = await connectRaw(server.url);
    for (let at = 0; at < 3; at++) {
      raw.send(asked(false));
      await upstream.arrived(at);
    }
    await expect.poll(() => figure('dragoman_held_bytes')).toBeGreaterThan(100_000);
    raw.close();
    for (const at of [0, 1]) await upstream.closed(at);
    await expect.poll(() => figure('dragoman_requests_in_flight')).toBe(1);
    expect(await figure('dragoman_held_bytes')).toBe(0);
  });
});
