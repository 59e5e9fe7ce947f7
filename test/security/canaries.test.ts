/* Words that must be nowhere but where they were given: keys, secrets and headers, in whatever goes wrong. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { expect, test, vi } from 'vitest';
import type { Log } from '../../src/telemetry/log.ts';
import { browser } from '../api/native/browsers.ts';
import { person, visited } from '../api/native/visitors.ts';
import { onBothDatabases, type Place } from '../support/databases.ts';
import { whole } from '../support/fakes/upstream/answer.ts';
import { always, startUpstream } from '../support/fakes/upstream/index.ts';
import { startScriptedMcp, toolNamed } from '../support/fakes/mcp.ts';
import { proves } from '../support/proves.ts';
import { providerKey } from '../support/server.ts';

vi.mock('node:crypto', async (original) => (await import('../support/cheap-scrypt.ts')).cheapScrypt(await original()));

const canaries = {
  provider: providerKey,
  secret: 'canary-secret-41f7',
  header: 'canary-header-9c02',
  wrongKey: 'canary-wrong-key-7b55',
  password: 'canary-password-c3e1',
};

/** A log that keeps everything, at whatever level. */
function keptLog(): Log & { readonly lines: string[] } {
  const lines: string[] = [];
  const note = (fields: object, message: string) =>
    void lines.push(`${message} ${JSON.stringify(fields, (_, value: unknown) => (value instanceof Error ? String(value.stack) : value))}`);
  return { lines, debug: note, info: note, warn: note, error: note, fatal: note, level() {}, flush: async () => {} };
}

/** All that is at rest there, but for the settings of the operator. */
async function atRest({ folder, databaseUrl }: Place): Promise<Buffer> {
  const names = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((one) => one.isFile() && one.name !== 'dragoman.yaml');
  const files = await Promise.all(names.map(({ parentPath, name }) => readFile(join(parentPath, name))));
  if (databaseUrl === undefined) return Buffer.concat(files);
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows: tables } = await client.query<{ name: string }>(`select quote_ident(tablename) as name from pg_tables where schemaname = 'public'`);
    for (const { name } of tables) {
      const { rows } = await client.query<{ row: string }>(`select t::text as row from ${name} t`);
      // a bytea is written in hexadecimal digits
      for (const { row } of rows)
        files.push(Buffer.from(row), Buffer.from(row.replaceAll(/\\\\x([0-9a-f]+)/g, (_, digits: string) => Buffer.from(digits, 'hex').toString('latin1'))));
    }
  } finally {
    await client.end();
  }
  return Buffer.concat(files);
}

onBothDatabases('keys and secrets', ({ place }) => {
  test(
    proves(['K-02', 'K-09', 'K-10', 'K-17'], 'are in no log line, error, metric or page, and nowhere at rest in clear; what fails tells nothing of the inside'),
    { timeout: 120_000 },
    async () => {
      const log = keptLog();
      const upstream = await startUpstream();
      const mcp = await startScriptedMcp([toolNamed('one')]);
      const where = await place();
      const all = await visited(where, {
        upstream: upstream.url,
        log,
        yaml: `logLevel: debug\nrouting: { cooldownSeconds: 0 }\noutbound: { allow: ["${mcp.origin}"] }\n`,
      });
      const ada = await person(all);
      const { body: own } = await ada.ask('POST', '/server/mine/keys', { name: 'own' });
      const token = (
        (await all.nobody('POST', '/user/get-token-with-api-key', { email: ada.email, api_key: ada.key })).body['response'] as { access_token: string }
      ).access_token;
      await ada.ask('PUT', '/server/mine/password', { new: canaries.password });
      const { cookie } = await browser(all, ada.email, canaries.password);
      const session = cookie.split('=')[1]!;
      expect(session).toHaveLength(47);
      const told = { ...canaries, key: ada.key, own: String(own['key']), token, session, admin: all.server.key };
      await ada.ask('POST', '/server/mine/secrets', { name: 'KEEPER', value: canaries.secret });
      const { body: tools } = await ada.ask('POST', '/server/mine/mcp-servers', {
        name: 's',
        url: mcp.url,
        headers: { authorization: 'Bearer {{secret.KEEPER}}', 'x-own': canaries.header },
      });
      const shown: string[] = [];
      const errors: { readonly path: string; readonly text: string }[] = [];
      const ask = async (path: string, init: RequestInit = {}) => {
        const answer = await fetch(all.server.url + path, { ...init, signal: AbortSignal.timeout(20_000) });
        const text = `${JSON.stringify([...answer.headers])} ${await answer.text()}`;
        shown.push(text);
        if (answer.status >= 400) errors.push({ path, text });
        return answer.status;
      };
      const json = (body: unknown, headers: Record<string, string> = { authorization: `Bearer ${ada.key}` }) => ({
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      });
      const chat = '/server/chatcompat/v1/chat/completions';
      const message = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'one two' }] };

      await ada.ask('GET', `/server/mine/mcp-servers/${String(tools['id'])}/tools`);
      await ada.ask('POST', `/server/mine/mcp-servers/${String(tools['id'])}/test`, { tool: 'one' });
      for (const echo of [400, 401, 403, 404, 429, 500, 503]) {
        const error = { message: `Wrong key ${providerKey} at ${upstream.url}`, type: 'x', code: null };
        upstream.script(always({ name: `echo ${echo}`, answer: () => whole(echo, JSON.stringify({ error })) }));
        await ask(chat, json(message));
        await ask('/server/query', json({ message: 'one two', model: 'gpt-4o-mini' }));
        upstream.reset();
      }
      for (const wrong of [canaries.wrongKey, `${ada.key}x`, `x${ada.key}`]) {
        for (const name of ['authorization', 'x-access-tokens', 'x-api-key', 'x-goog-api-key']) await ask(chat, json(message, { [name]: wrong }));
        await ask(`/server/gencompat/v1beta/models/gpt-4o-mini:generateContent?key=${wrong}`, json({ contents: [] }, {}));
        await ask('/user/get-token-with-api-key', json({ email: ada.email, api_key: wrong }, {}));
        await ask('/user/get-token', json({ email: ada.email, password: `${canaries.password}x` }, {}));
        await ask('/server/session', json({ email: ada.email, password: `${canaries.password}x` }, {}));
      }
      await ask(`/server/gencompat/v1beta/models/gpt-4o-mini:generateContent?key=${ada.key}`, json({ contents: 'no list' }, {}));
      await ask(`/nowhere?key=${ada.key}&token=${token}`);
      await ask(`/server/mine/keys/${ada.key}`, { headers: { authorization: `Bearer ${token}` } });
      await ask('/server/mine/keys', { headers: { cookie } });
      await ask(chat, json(message, { cookie }));
      await ask('/server/session/signup', json({ email: 'eve@example.org', password: canaries.password }, {}));
      await ask(chat, json(`{"model": "${ada.key}", `));
      await ask(chat, json({ ...message, temperature: ada.key }));
      await ask('/server/mine/secrets', json({ name: 'KEEPER', value: canaries.secret }));
      await ask('/server/mine/secrets', json({ name: 'no name', value: canaries.secret }));
      await ask('/server/mine/mcp-servers', json({ name: 't', url: 'no address', headers: { 'x-own': canaries.header } }));
      for (const path of [
        '/server/mine',
        '/server/mine/secrets',
        '/server/mine/mcp-servers',
        '/server/mine/keys',
        '/server/mine/logs',
        '/metrics',
        '/',
        '/docs',
        '/openapi.json',
      ])
        await ask(path, { headers: { authorization: `Bearer ${ada.key}` } });
      for (const path of ['/server/admin/audit', '/server/admin/logs', '/server/admin/users', '/server/admin/doctor'])
        await ask(path, { headers: { authorization: `Bearer ${all.server.key}` } });

      expect([errors.length > 40, shown.length > 50, log.lines.length > 50]).toEqual([true, true, true]);
      for (const [name, word] of Object.entries(told)) {
        expect([name, shown.filter((text) => text.includes(word))]).toEqual([name, []]);
        expect([name, log.lines.filter((line) => line.includes(word))]).toEqual([name, []]);
      }
      const inside = new RegExp(
        `${new URL(upstream.url).host}|node_modules|\\.ts:\\d|\\bat (async )?\\w+ \\(|select .* from |insert into|postgres://|${where.folder}`,
        'i',
      );
      expect(errors.filter(({ path, text }) => inside.test(text) && path !== '/server/admin/doctor')).toEqual([]);

      await all.server.close();
      await upstream.close();
      const rest = await atRest(where);
      expect(rest.length).toBeGreaterThan(10_000);
      expect([rest.includes(ada.email), log.lines.some((line) => line.includes('/server/mine/secrets'))]).toEqual([true, true]); // what is looked through is what was meant
      for (const [name, word] of Object.entries(told)) expect([name, rest.includes(word)]).toEqual([name, false]);
    },
  );
});
