/* What large requests hold in memory has a bound, for each user and for all of them. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { inputItemId } from '#dialects/openai/responses/encode-items';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { askFace, faces, type Face } from '../support/all-faces.ts';
import { ok, startUpstream, talkative, type Upstream } from '../support/fakes/upstream/index.ts';
import { connectRaw } from '../support/fakes/raw.ts';
import { chat, startTestServer, type TestServer } from '../support/server.ts';
import { newMember } from '../support/members.ts';

const responses = '/server/chatcompat/v1/responses';
/** Bytes of a large body. */
const large = 2 ** 18;
/** This many fill the share of one user, and the shares of this many users all there is. */
const several = 4;
const memory = { total: several * several * large, each: several * large };

const pictures = createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(100_000)]));
});

let upstream: Upstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  pictures.listen(0, '127.0.0.1');
  await once(pictures, 'listening');
  server = await startTestServer({
    memory,
    yaml: `
providers:
  fake: { dialect: openai-chat, baseUrl: "${upstream.url}/v1", apiKeys: [k], mediaUrls: fetched }
models:
  gpt-4o-mini: { targets: [{ provider: fake }] }
  checked: { targets: [{ provider: fake }] }
guard: { checks: [{ name: apples, when: [after], kind: regex, pattern: apple, action: deny, stream: whole, models: [checked] }] }
limits: { bodyBytes: ${large} }
outbound: { allow: ["${pictureAddress()}"] }
`,
  });
});
afterAll(async () => {
  await server.close();
  await upstream.close();
  pictures.close();
});

const pictureAddress = () => `http://127.0.0.1:${(pictures.address() as AddressInfo).port}`;

const head = (key: string, ...headers: string[]) =>
  [`POST ${chat} HTTP/1.1`, 'host: x', `authorization: Bearer ${key}`, 'content-type: application/json', ...headers, '', ''].join('\r\n');

/** Requests of this key whose bodies are announced and invited. */
async function announced(key: string, count: number) {
  const open = await Promise.all(
    Array.from({ length: count }, async () => {
      const connection = await connectRaw(server.url);
      connection.send(head(key, `content-length: ${large}`, 'expect: 100-continue'));
      await connection.until('100 Continue');
      return connection;
    }),
  );
  onTestFinished(() => open.forEach((connection) => connection.close()));
  return open;
}

/** Requests of this key whose bodies have come but for their ends. */
async function unfinished(key: string, count: number) {
  const before = await heldBytes();
  const open = await announced(key, count);
  for (const connection of open) connection.send(Buffer.alloc(large - 1));
  await expect.poll(heldBytes).toBe(before + count * (large - 1));
  return () => open.forEach((connection) => connection.close());
}

/** The sum of a figure over its labels. */
async function figure(name: string): Promise<number> {
  const lines = (await (await fetch(`${server.url}/metrics`)).text()).split('\n').filter((line) => line.startsWith(`dragoman_${name}`));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

const heldBytes = () => figure('held_bytes');

test('bodies that are announced but never sent reserve no memory', async () => {
  const members = await Promise.all(Array.from({ length: several }, () => newMember(server)));
  for (const { keys } of members) await announced(keys[0]!, several);
  expect(await heldBytes()).toBe(0);
  for (const member of members) expect((await member.ask({ model: 'built-in', messages: [{ role: 'user', content: 'x'.repeat(100_000) }] })).status).toBe(200);
});

test('a body whose memory budget is used up when its bytes arrive is 503 in its middle, with Retry-After, and releases what it held', async () => {
  const member = await newMember(server);
  const [late] = await announced(member.keys[0]!, 1);
  const close = await unfinished(member.keys[0]!, several);
  const before = await heldBytes();
  late!.send(Buffer.alloc(100_000));
  const refused = await late!.answer();
  expect([refused.status, refused.header('retry-after'), refused.header('connection')]).toEqual([503, '2', 'close']);
  expect(await heldBytes()).toBe(before);
  close();
  await expect.poll(heldBytes).toBe(0);
});

describe('while the unfinished bodies of one user fill their share of memory', () => {
  test.each(faces)('another large one of theirs is 503 through %s, with Retry-After; small ones and those of other users are answered', async (face) => {
    const [one, other] = [await newMember(server), await newMember(server)];
    const close = await unfinished(one.keys[0]!, several);
    const ask = (key: string, content: string) => askFace({ url: server.url, key }, face, { model: 'built-in', content, stream: false });
    const refused = await ask(one.keys[0]!, 'x'.repeat(100_000));
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2']);
    expect(['overloaded', 'overloaded_error', 'UNAVAILABLE']).toContain(refused.error);
    expect((await ask(one.keys[0]!, 'small')).status).toBe(200);
    expect((await ask(other.keys[0]!, 'x'.repeat(100_000))).status).toBe(200);
    close();
    await expect.poll(heldBytes).toBe(0);
    expect((await ask(one.keys[0]!, 'x'.repeat(100_000))).status).toBe(200);
    await expect.poll(heldBytes).toBe(0);
  });

  test('a large whole answer of a provider does not fit either, nor does a fetched picture', async () => {
    const member = await newMember(server);
    const close = await unfinished(member.keys[0]!, several);
    const fetched = () =>
      member.ask({
        model: 'gpt-4o-mini',
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: `${pictureAddress()}/a.png` } }] }],
      });
    const answered = (text: string) => {
      upstream.reset();
      upstream.script(ok({ text }));
      return member.ask({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'hello' }] });
    };
    for (const answer of [await answered('x'.repeat(100_000)), await fetched()])
      expect([answer.status, answer.headers.get('retry-after'), await answer.json()]).toMatchObject([503, '2', { error: { code: 'overloaded' } }]);
    expect((await answered('short')).status).toBe(200);
    close();
    await expect.poll(heldBytes).toBe(0);
    expect((await answered('x'.repeat(100_000))).status).toBe(200);
    expect((await fetched()).status).toBe(200);
    await expect.poll(heldBytes).toBe(0);
  });
});

test.each<[string, string, Face]>([
  ['that a check holds back until it is whole', 'checked', 'chat'],
  ['that is repeated as a whole in its last frame', 'gpt-4o-mini', 'responses'],
])('a streamed answer %s is refused if it does not fit into memory', async (_, model, face) => {
  const member = await newMember(server);
  const close = await unfinished(member.keys[0]!, several);
  const ask = (text: string) => {
    upstream.reset();
    upstream.script(ok({ text }));
    return askFace({ url: server.url, key: member.keys[0]! }, face, { model, content: 'hello', stream: true });
  };
  const long = 'a word and '.repeat(10_000);
  expect(await ask(long)).toMatchObject({ complete: false, error: 'overloaded' });
  expect(await ask('short')).toMatchObject({ complete: true, text: 'short' });
  close();
  await expect.poll(heldBytes).toBe(0);
  expect(await ask(long)).toMatchObject({ complete: true, text: long });
  await expect.poll(heldBytes).toBe(0);
});

test('a stored response counts while it is read: a large one does not fit', async () => {
  const member = await newMember(server);
  const asking = (path: string, body?: object) =>
    fetch(`${server.url}${responses}${path}`, {
      headers: { authorization: `Bearer ${member.keys[0]}`, 'content-type': 'application/json' },
      ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}),
    });
  const made = async (input: string) => ((await (await asking('', { model: 'built-in', input })).json()) as { id: string }).id;
  const [big, small] = [await made('x'.repeat(100_000)), await made('small')];
  const close = await unfinished(member.keys[0]!, several);
  const reads = (id: string) => [
    () => asking(`/${id}`),
    () => asking(`/${id}/input_items`),
    () => asking('', { model: 'built-in', input: 'and', previous_response_id: id }),
    () => asking('', { model: 'built-in', input: [{ type: 'item_reference', id: inputItemId(id, 0) }], store: false }),
  ];
  for (const read of reads(big)) expect([(await read()).status, read.toString()]).toEqual([503, read.toString()]);
  for (const read of reads(small)) expect((await read()).status).not.toBe(503);
  close();
  await expect.poll(heldBytes).toBe(0);
  for (const read of reads(big)) expect((await read()).status).not.toBe(503);
  await expect.poll(heldBytes).toBe(0);
});

test.each([false, true])('an answer stored under an idempotency key counts while it is replayed, streamed: %s', async (stream) => {
  const member = await newMember(server);
  upstream.reset();
  upstream.script(ok({ text: 'a word and '.repeat(10_000) }));
  const ask = () =>
    member.ask({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'hello' }], stream }, { headers: { 'idempotency-key': `kept-${stream}` } });
  const first = await (await ask()).text();
  await expect.poll(heldBytes).toBe(0);
  const close = await unfinished(member.keys[0]!, several);
  const refused = await ask();
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2']);
  await refused.text();
  close();
  await expect.poll(heldBytes).toBe(0);
  const again = await ask();
  expect([again.status, again.headers.get('x-dragoman-replayed'), (await again.text()) === first]).toEqual([200, 'true', true]);
  await expect.poll(heldBytes).toBe(0);
});

test('a background response waits until its input fits into memory, and that of another user does not wait', async () => {
  const [one, other] = [await newMember(server), await newMember(server)];
  const close = await unfinished(one.keys[0]!, several);
  const asker = (key: string) => async (path: string, body?: object) =>
    (await (
      await fetch(`${server.url}${responses}${path}`, {
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}),
      })
    ).json()) as { id: string; status: string };
  const [ask, askOther] = [asker(one.keys[0]!), asker(other.keys[0]!)];
  const run = { model: 'built-in', input: `Say exactly: hello ${'x'.repeat(50_000)}`, background: true };
  const waiting = await ask('', run);
  const next = await askOther('', run);
  const status = async (by: typeof ask, id: string) => (await by(`/${id}`)).status;
  const ended = async (by: typeof ask, id: string) => {
    await expect.poll(() => status(by, id), { timeout: 30_000 }).toMatch(/^(completed|incomplete)$/);
  };
  await ended(askOther, next.id);
  const small = await ask('', { model: 'built-in', input: 'small', background: true });
  await ended(ask, small.id);
  close();
  await ended(ask, waiting.id);
  await expect.poll(heldBytes).toBe(0);
});

test('a picture fetched for a background response counts', async () => {
  const member = await newMember(server);
  const gate = Promise.withResolvers<void>();
  upstream.reset();
  upstream.script(talkative(1, gate.promise));
  const picture = { type: 'input_image', image_url: `${pictureAddress()}/a.png` };
  const answer = await fetch(`${server.url}${responses}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${member.keys[0]}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-4o-mini', input: [{ role: 'user', content: [picture] }], background: true }),
  });
  expect(answer.status).toBe(200);
  await upstream.arrived(0);
  expect(await heldBytes()).toBeGreaterThan(100_000);
  gate.resolve();
  await expect.poll(heldBytes, { timeout: 30_000 }).toBe(0);
});

test('a body without a credential does not count', async () => {
  const connection = await connectRaw(server.url);
  connection.send(head('nobody', `content-length: ${large}`));
  expect((await connection.answer()).status).toBe(401);
  expect(await heldBytes()).toBe(0);
});

test('public pages do not count, however slowly they are read', async () => {
  const open = Array.from({ length: 8 }, () => connect(Number(new URL(server.url).port), '127.0.0.1').pause());
  onTestFinished(() => open.forEach((socket) => socket.destroy()));
  const before = await figure('requests_total');
  for (const socket of open) socket.write('GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(30));
  await expect.poll(async () => (await figure('requests_total')) - before, { timeout: 30_000 }).toBeGreaterThanOrEqual(8 * 30);
  expect(await heldBytes()).toBe(0);
});

test('bodies of many users have a common limit', async () => {
  const members = await Promise.all(Array.from({ length: 5 }, () => newMember(server)));
  for (const member of members.slice(0, 4)) await unfinished(member.keys[0]!, several);
  const last = members[4]!;
  expect((await last.ask({ model: 'built-in', messages: [{ role: 'user', content: 'x'.repeat(100_000) }] })).status).toBe(503);
  expect((await last.ask({ model: 'built-in', messages: [{ role: 'user', content: 'small' }] })).status).toBe(200);
});
