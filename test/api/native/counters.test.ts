import { expect, onTestFinished, test } from 'vitest';
import { askWith, fixed, fixedCost, newMember } from '../../support/members.ts';
import { startTestServer } from '../../support/server.ts';

test('the counters of the native interface say what is used and left within two seconds, under both roots, by GET and POST', async () => {
  const server = await startTestServer();
  onTestFinished(server.close);
  const cost = await fixedCost(server);
  const member = await newMember(server, { monthlyTokens: 100 * cost });
  await (await askWith(server, member.keys[0]!, fixed, { headers: { 'x-app-name': 'ide' } })).text();
  await (await member.ask(fixed)).text();
  const says = async (path: string, body?: object) => {
    const headers = { 'x-access-tokens': member.keys[0]!, 'content-type': 'application/json' };
    const answer = await fetch(server.url + path, { headers, ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}) });
    return answer.json();
  };
  const is = (response: number) => ({ response, status: 200 });
  await expect.poll(() => says('/server/count-monthly-tokens'), { timeout: 30_000 }).toEqual(is(2 * cost));
  expect(await says('/user/count-monthly-tokens')).toEqual(is(2 * cost));
  expect(await says('/server/count-monthly-tokens', { app_name: 'ide' })).toEqual(is(cost));
  expect(await says('/server/count-monthly-tokens', { app_name: 'asksage' })).toEqual(is(2 * cost));
  expect(await says('/server/count-monthly-teach-tokens')).toEqual(is(0));
  expect(await says('/server/count-monthly-tokens-left-with-org', {})).toEqual(is(98 * cost));
});

test.each([
  ['UTF-8, as curl sends it', 'utf8'],
  ['Latin-1, as fetch sends it', 'latin1'],
] as const)('an application whose name comes in %s is counted under this name', async (_, charset) => {
  const server = await startTestServer();
  onTestFinished(server.close);
  const member = await newMember(server);
  const text = (name: string) => Buffer.from(name, charset).toString('latin1');
  const headers = { 'x-app-name': text('Büro') };
  const { usage } = (await (await askWith(server, member.keys[0]!, fixed, { headers })).json()) as { usage: { total_tokens: number } };
  const counted = async () => {
    const body = JSON.stringify({ app_name: 'Büro' });
    const init = { method: 'POST', headers: { 'x-access-tokens': member.keys[0]!, 'content-type': 'application/json' }, body };
    return ((await (await fetch(`${server.url}/server/count-monthly-tokens`, init)).json()) as { response: number }).response;
  };
  await expect.poll(counted, { timeout: 30_000 }).toBe(usage.total_tokens);
});

test('an empty name of an application is none: the call is counted under the name of its key', async () => {
  const server = await startTestServer();
  onTestFinished(server.close);
  const member = await newMember(server);
  const answer = await askWith(server, member.keys[0]!, fixed, { headers: { 'x-app-name': '' } });
  const requestId = answer.headers.get('x-request-id');
  await answer.text();
  const row = async () => (await server.ask(`/server/admin/logs/${requestId}`)).json();
  const keys = (await (await server.ask(`/server/admin/users/${member.id}/keys`)).json()) as { items: { name: string }[] };
  await expect.poll(row, { timeout: 30_000 }).toMatchObject({ app: keys.items[0]!.name });
});
