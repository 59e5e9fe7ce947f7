/* Tokens and keys on two machines with one database, and work that goes on when they end. */
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { chat } from '../../support/server.ts';
import { anyPlace, onServer } from '../../support/databases.ts';
import { administer } from '../../support/postgres.ts';
import { askFace } from '../../support/all-faces.ts';
import { headersThenHang, ok, startUpstream } from '../../support/fakes/upstream/index.ts';
import { browser } from './browsers.ts';
import { chatBody, person, tokenOf, visited, type Visited } from './visitors.ts';

vi.mock('node:crypto', async (original) => (await import('../../support/cheap-scrypt.ts')).cheapScrypt(await original()));

const long = 120_000;
const getToken = '/user/get-token-with-api-key';
const yaml = 'publicUrl: https://gateway.example.org';

describe.skipIf(!inject('postgres'))('two machines on one database', () => {
  async function twoMachines(): Promise<{ here: Visited; there: Visited; databaseUrl: string }> {
    const { folder, databaseUrl = '' } = await onServer(inject('postgres')!).place();
    const here = await visited({ folder, databaseUrl }, { yaml });
    const other = join(folder, 'other');
    await mkdir(join(other, 'data'), { recursive: true });
    await copyFile(join(folder, 'data', 'master.key'), join(other, 'data', 'master.key'));
    return { here, there: await visited({ folder: other, databaseUrl }, { yaml }), databaseUrl };
  }
  const statusOf = async (machine: Visited, credential: string) => (await machine.as(credential)('POST', chat, chatBody)).status;

  test('a token of one is good on the other at once, and what ends it there holds here within two seconds', { timeout: long }, async () => {
    const { here, there } = await twoMachines();
    const ada = await person(here);
    const [one, two, three] = [await tokenOf(here, ada), await tokenOf(there, ada), await tokenOf(here, ada)];
    const everywhere = (credential: string) => Promise.all([here, there].map((machine) => statusOf(machine, credential)));
    for (const token of [one, two, three]) expect(await everywhere(token)).toEqual([200, 200]);
    await here.as(one)('DELETE', '/server/session');
    await expect.poll(() => everywhere(one), { timeout: 30_000 }).toEqual([401, 401]);
    expect(await everywhere(two)).toEqual([200, 200]);
    const { body: rotated } = await there.admin('POST', `/server/mine/keys/${ada.keyId}/rotate?owner=${ada.id}`, { graceSeconds: 0 });
    await expect.poll(() => everywhere(two), { timeout: 30_000 }).toEqual([401, 401]);
    await expect.poll(() => everywhere(ada.key), { timeout: 30_000 }).toEqual([401, 401]);
    expect(await everywhere(rotated['key'] as string)).toEqual([200, 200]);
    await there.admin('PATCH', `/server/admin/users/${ada.id}`, { status: 'suspended' });
    await expect.poll(() => everywhere(rotated['key'] as string), { timeout: 30_000 }).toEqual([401, 401]);
  });

  test('a session of one is good on the other at once, and ends there within two seconds, with what its cookie had asked for', { timeout: long }, async () => {
    const { here, there } = await twoMachines();
    const password = 'correct horse';
    const ada = await person(here, { password });
    const browsers = [await browser(here, ada.email, password), await browser(there, ada.email, password), await browser(here, ada.email, password)];
    const asked = (machine: Visited, cookie: string, method = 'GET', path = '/server/mine') =>
      machine.nobody(method, path, undefined, { headers: { cookie, origin: 'https://gateway.example.org' } }).then(({ status }) => status);
    const everywhere = () => Promise.all(browsers.flatMap(({ cookie }) => [asked(here, cookie), asked(there, cookie)]));
    expect(await everywhere()).toEqual([200, 200, 200, 200, 200, 200]);
    expect(await asked(there, browsers[0]!.cookie, 'DELETE', '/server/session')).toBe(200);
    await expect.poll(everywhere, { timeout: 30_000 }).toEqual([401, 401, 200, 200, 200, 200]);
    await there.admin('PATCH', `/server/admin/users/${ada.id}`, { password: 'another horse' });
    await expect.poll(everywhere, { timeout: 30_000 }).toEqual([401, 401, 401, 401, 401, 401]);
  });

  test('with the notify channel cut, an ended token and a deleted key are refused within five seconds', { timeout: long }, async () => {
    const { here, there, databaseUrl } = await twoMachines();
    const [ada, bob] = [await person(here), await person(here)];
    const token = await tokenOf(here, ada);
    expect([await statusOf(there, token), await statusOf(there, bob.key)]).toEqual([200, 200]);
    const name = new URL(databaseUrl).pathname.slice(1);
    await administer(inject('postgres')!, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
    await expect.poll(async () => (await here.as(token)('DELETE', '/server/session')).status, { timeout: 30_000 }).toBe(200);
    await expect.poll(async () => (await bob.ask('DELETE', `/user/user-api-key?id=${bob.keyId}`)).status, { timeout: 30_000 }).toBe(200);
    await expect.poll(async () => [await statusOf(there, token), await statusOf(there, bob.key)], { timeout: 30_000 }).toEqual([401, 401]);
  });

  test('failures on one machine count on the other', { timeout: long }, async () => {
    const { here, there } = await twoMachines();
    const ada = await person(here);
    const wrong = { email: ada.email, api_key: 'x'.repeat(64) };
    for (let n = 0; n < 10; n++) expect((await here.nobody('POST', getToken, wrong)).status).toBe(401);
    await expect.poll(async () => (await there.nobody('POST', getToken, { email: ada.email, api_key: ada.key })).status, { timeout: 30_000 }).toBe(429);
  });

  test('each reads the files that were sent to it, the other says where an original is, and the doctor names both', { timeout: long }, async () => {
    const { here, there } = await twoMachines();
    const { ask } = await person(here);
    const dataset = (await ask('POST', '/user/add-dataset', { dataset: 'Reports' })).body['dataset'] as string;
    const { id } = (await ask('POST', '/server/get-dataset-info', { dataset })).body['response'] as { id: number };
    const path = `/server/mine/datasets/${id}/files`;
    const send = (name: string) =>
      here.admin('POST', `${path}?owner=2&filename=${name}`, `The text of ${name}.`, { headers: { 'content-type': 'text/plain' } });
    const sent = await Promise.all(Array.from({ length: 8 }, (_, at) => send(`file-${at}.txt`)));
    expect(sent.map(({ status }) => status)).toEqual(sent.map(() => 202));
    const states = async () => ((await ask('GET', path)).body['items'] as { state: string }[]).map(({ state }) => state);
    await expect.poll(async () => (await states()).every((state) => state === 'done' || state === 'failed'), { timeout: 60_000 }).toBe(true);
    expect(new Set(await states())).toEqual(new Set(['done']));
    const file = (sent[0]!.body['items'] as { id: number }[])[0]!.id;
    const original = (machine: Visited) =>
      fetch(`${machine.server.url}${path}/${file}/original?owner=2`, { headers: { 'x-access-tokens': machine.server.key } });
    const answers = [await original(here), await original(there)];
    expect(answers.map(({ status }) => status)).toEqual([200, 404]);
    expect(await answers[1]!.text()).toContain('kept on another machine: machines share originals where blobs.s3 names a bucket');
    const { items } = (await there.admin('GET', '/server/admin/doctor')).body as { items: { name: string; state: string; says: string }[] };
    expect(items.find(({ name }) => name === 'files')).toMatchObject({
      state: 'warning',
      says: expect.stringMatching(/^2 machines .* Set blobs\.s3\.$/) as string,
    });
  });
});

describe('work that goes on', () => {
  test('a stream ends when its token is ended, one of another token goes on', { timeout: long }, async () => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    const all = await visited(await anyPlace(), { upstream: upstream.url });
    const ada = await person(all);
    const [one, other] = [await tokenOf(all, ada), await tokenOf(all, ada)];
    upstream.script(headersThenHang({ afterEvents: 3 }), headersThenHang({ afterEvents: 3 }));
    const asking = { model: 'gpt-4o-mini', content: 'one two three four', stream: true };
    const ends = askFace({ url: all.server.url, key: one }, 'chat', asking);
    await upstream.arrived(0);
    const goesOn = askFace({ url: all.server.url, key: other }, 'chat', asking);
    await upstream.arrived(1);
    await all.as(one)('DELETE', '/server/session');
    expect(await ends).toMatchObject({ complete: false, error: 'invalid_api_key' });
    expect(await Promise.race([goesOn, new Promise((resolve) => setTimeout(resolve, 300, 'goes on'))])).toBe('goes on');
    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { status: 'suspended' });
    expect(await goesOn).toMatchObject({ complete: false, error: 'invalid_api_key' });
  });

  test('a stream ends when its session is ended, one of another session goes on', { timeout: long }, async () => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    const all = await visited(await anyPlace(), { upstream: upstream.url });
    const password = 'correct horse';
    const ada = await person(all, { password });
    const [one, other] = [await browser(all, ada.email, password), await browser(all, ada.email, password)];
    upstream.script(headersThenHang({ afterEvents: 3 }), headersThenHang({ afterEvents: 3 }));
    const body = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'one two three four' }], stream: true };
    const ends = one.ask('POST', chat, body);
    await upstream.arrived(0);
    const goesOn = other.ask('POST', chat, body);
    await upstream.arrived(1);
    await one.ask('DELETE', '/server/session');
    const { text } = (await ends).body as { text: string };
    expect(text).toContain('invalid_api_key');
    expect(text).toContain('The session is over');
    expect(text).not.toContain('[DONE]');
    expect(await Promise.race([goesOn, new Promise((resolve) => setTimeout(resolve, 300, 'goes on'))])).toBe('goes on');
    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { status: 'suspended' });
    expect((await goesOn).body['text']).toContain('invalid_api_key');
  });

  test('a background response that was asked for with a token had by password is completed', { timeout: long }, async () => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    const all = await visited(await anyPlace(), { upstream: upstream.url });
    const { email } = await person(all, { password: 'correct horse' });
    const { body } = await all.nobody('POST', '/user/get-token', { email, password: 'correct horse' });
    const ask = all.as((body['response'] as { access_token: string }).access_token);
    upstream.script(ok());
    const responses = '/server/chatcompat/v1/responses';
    const queued = await ask('POST', responses, { model: 'gpt-4o-mini', input: 'hello', background: true });
    expect(queued.status).toBe(200);
    await expect.poll(async () => (await ask('GET', `${responses}/${String(queued.body['id'])}`)).body['status'], { timeout: 30_000 }).toBe('completed');
  });
});
