/* What the operator is told of limits. */
import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readFrom } from '../support/settings-folder.ts';
import { administrate, askWith, fixed, fixedCost, newMember } from '../support/members.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { tally } from './exactness.ts';

interface Told {
  readonly signature: string;
  readonly body: string;
}

const told: Told[] = [];
/** How many more are answered with 500. */
let failing = 0;
const hook = createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8').on('data', (piece: string) => (body += piece));
  request.on('end', () => {
    told.push({ signature: String(request.headers['x-dragoman-signature']), body });
    response.statusCode = failing-- > 0 ? 500 : 204;
    response.end();
  });
});
let server: TestServer;
let cost: number;
beforeAll(async () => {
  await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve));
  const { port } = hook.address() as AddressInfo;
  server = await startTestServer({ yaml: `alerts: { url: "http://127.0.0.1:${port}/hook", secret: whispered }\n` });
  cost = await fixedCost(server);
});
afterAll(async () => {
  await server.close();
  hook.close();
});

const about = (id: number) =>
  told.map(({ body }) => JSON.parse(body) as { owner: { type: string; id: number }; share: number; of: number }).filter(({ owner }) => owner.id === id);

test('at 80 and at 100 per cent of a limit the operator is told, once each in its period, signed', async () => {
  const member = await newMember(server, { monthlyTokens: 10 * cost });
  failing = 1; // it is tried again
  for (let call = 0; call < 7; call++) expect(await tally([member.ask(fixed)])).toEqual({ 200: 1 });
  expect(about(member.id)).toEqual([]);
  for (let call = 0; call < 4; call++) await tally([member.ask(fixed)]);
  const both = () => about(member.id).map(({ share }) => share);
  await expect.poll(() => new Set(both()), { timeout: 30_000 }).toEqual(new Set([80, 100]));
  expect(await tally([member.ask(fixed), member.ask(fixed)])).toEqual({ 429: 2 });
  const { email } = await administrate<{ email: string }>(server, 'GET', `/users/${member.id}`);
  const last = about(member.id).find(({ share }) => share === 100);
  expect(last).toEqual({
    type: 'limit',
    at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    share: 100,
    owner: { type: 'user', id: member.id, name: email },
    limit: 'monthlyTokens',
    model: null,
    period: new Date().toISOString().slice(0, 7),
    of: 10 * cost,
    used: 10 * cost,
  });
  for (const { signature, body } of told) {
    const [, seconds, code] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature)!;
    expect(code).toBe(createHmac('sha256', 'whispered').update(`${seconds}.${body}`).digest('hex'));
    expect(Math.abs(Number(seconds) - Date.now() / 1000)).toBeLessThan(60);
  }
});

test('what is reached of a limit that was raised is told again, and of one that was lowered it is not', async () => {
  const member = await newMember(server, { monthlyTokens: 5 * cost });
  const change = (calls: number) => administrate(server, 'PATCH', `/users/${member.id}`, { monthlyTokens: calls * cost });
  const spend = async (calls: number) => {
    for (let call = 0; call < calls; call++) expect(await tally([member.ask(fixed)])).toEqual({ 200: 1 });
  };
  const all = () =>
    about(member.id)
      .map(({ share, of }) => `${share} of ${Math.round(of / cost)}`)
      .toSorted();
  await spend(5);
  await expect.poll(all).toEqual(['100 of 5', '80 of 5']);
  await change(10);
  await spend(5);
  await expect.poll(all).toEqual(['100 of 10', '100 of 5', '80 of 10', '80 of 5']);
  await change(6);
  expect(await tally([member.ask(fixed)])).toEqual({ 429: 1 });
  await change(20);
  await spend(10);
  await expect.poll(all).toEqual(['100 of 10', '100 of 20', '100 of 5', '80 of 10', '80 of 20', '80 of 5']);
});

test('a limit of a key, a day or a model is told with its owner, its member and its model', async () => {
  const member = await newMember(server, { modelLimits: { 'built-in': { monthlyTokens: cost } } });
  const { id, key } = await administrate<{ id: number; key: string }>(server, 'POST', `/users/${member.id}/keys`, { name: 'ci', dailyTokens: cost });
  expect(await tally([askWith(server, key, fixed)])).toEqual({ 200: 1 });
  const found = (type: string) =>
    told
      .map(({ body }) => JSON.parse(body) as { owner: object; share: number })
      .filter(({ owner, share }) => share === 100 && (owner as { type: string }).type === type);
  await expect
    .poll(() => found('key'), { timeout: 30_000 })
    .toEqual([
      expect.objectContaining({ owner: { type: 'key', id, name: 'ci' }, limit: 'dailyTokens', model: null, period: new Date().toISOString().slice(0, 10) }),
    ]);
  await expect
    .poll(() => found('user'), { timeout: 30_000 })
    .toContainEqual(expect.objectContaining({ limit: 'monthlyTokens', model: 'built-in', of: cost, used: cost }));
});

test('an address without a secret to sign with is a bad setting', () => {
  expect(() => readFrom('alerts: { url: "https://ops.example/hook" }\n')).toThrow(/alerts\.secret|secret/);
});
