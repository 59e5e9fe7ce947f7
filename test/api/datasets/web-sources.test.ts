/* Datasets that follow pages, sitemaps and sites. The network is replaced by a site on this machine under a public name. */
import { gzipSync } from 'node:zlib';
import { describe, expect, inject, test } from 'vitest';
import { onBothDatabases, onServer } from '../../support/databases.ts';
import { connected } from '../../support/held-locks.ts';
import { fakeSite, following, html, plainText, type SourceAnswer } from './following.ts';
import { idOf, newDataset, twoPeople } from './people.ts';
import type { Place } from '../../support/databases.ts';

const address = inject('postgres');
const long = 180_000;

async function begun(place: Place, names: Parameters<typeof fakeSite>[0] = {}) {
  const web = await fakeSite(names);
  const people = await twoPeople(place, { convert: plainText, outside: web.outside });
  const dataset = await newDataset(people.ada, 'followed');
  const datasetId = await idOf(people.ada, dataset);
  return { ...people, web, dataset, datasetId, sources: following(people.ada, datasetId) };
}

const counts = ({ state, seen, changed, deleted, failures }: SourceAnswer) => ({ state, seen, changed, deleted, failures });

const sitemap = (...pages: readonly string[]) =>
  `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${pages.map((page) => `<url><loc>${page}</loc></url>`).join('')}</urlset>`;

onBothDatabases('web sources', ({ place }) => {
  test('a page is taken once, renewed when it changes, and deleted when it is gone', { timeout: long }, async () => {
    const { ada, bob, web, datasetId, sources } = await begun(await place());
    web.pages.set('/handbook', html('The first edition'));
    expect((await bob.ask('POST', sources.root, { type: 'page', url: `${web.host}/handbook` })).status).toBe(404);
    const made = await ada.ask('POST', sources.root, { type: 'page', url: `${web.host}/handbook#top`, everyHours: 3 });
    expect(made).toMatchObject({
      status: 201,
      body: { type: 'page', url: `${web.host}/handbook`, everyHours: 3, jobId: expect.stringMatching(/^job_/) as string },
    });
    const id = made.body['id'] as number;
    const first = await sources.ended(id);
    expect(counts(first)).toEqual({ state: 'done', seen: 1, changed: 1, deleted: 0, failures: [] });
    expect(Date.parse(first.nextSyncAt!) - Date.now()).toBeGreaterThan(2.9 * 3_600_000);
    const [file] = await sources.files();
    expect(file).toMatchObject({ filename: expect.stringMatching(/^pages\.example-\d+-handbook-[0-9a-f]{8}\.html$/) as string, state: 'done', sourceId: id });
    expect(await sources.original(file!.id)).toContain('The first edition');

    expect(counts(await sources.sync(id))).toEqual({ state: 'done', seen: 1, changed: 0, deleted: 0, failures: [] });
    expect(web.site.requests.at(-1)!.headers['if-none-match']).toMatch(/^"/);
    web.pages.set('/handbook', html('The second edition'));
    expect(counts(await sources.sync(id))).toMatchObject({ changed: 1, deleted: 0 });
    const [renewed] = await sources.files();
    expect(renewed!.id).toBe(file!.id);
    expect(await sources.original(file!.id)).toContain('The second edition');

    for (const status of [500, 503, 403, 302]) {
      web.pages.set('/handbook', (_, response) => response.writeHead(status, status === 302 ? { location: 'http://127.0.0.1:1/' } : {}).end());
      const failed = await sources.sync(id);
      expect([status, counts(failed)]).toEqual([
        status,
        { state: 'done', seen: 1, changed: 0, deleted: 0, failures: [{ what: `${web.host}/handbook`, reason: expect.any(String) as string }] },
      ]);
    }
    web.pages.delete('/handbook');
    expect(counts(await sources.sync(id))).toEqual({ state: 'done', seen: 0, changed: 0, deleted: 1, failures: [] });
    expect(await sources.files()).toEqual([]);
    expect((await ada.ask('GET', `/server/mine/datasets/${datasetId}/files/${file!.id}`)).status).toBe(404);
    expect((await ada.ask('GET', `/server/mine/jobs?kind=source`)).body['items']).toHaveLength(8);
    const missing = [{ what: `${web.host}/handbook`, reason: 'It is not there (404).' }];
    expect(counts(await sources.sync(id))).toEqual({ state: 'done', seen: 0, changed: 0, deleted: 0, failures: missing });
  });

  test('a sitemap is followed with those that it names, and what is wrong with it deletes nothing', { timeout: long }, async () => {
    const { web, sources } = await begun(await place());
    const page = (name: string) => `${web.host}/${name}`;
    for (const name of ['a', 'b', 'c', 'hidden']) web.pages.set(`/${name}`, html(`Page ${name}`));
    web.pages.set('/robots.txt', 'User-agent: *\nDisallow: /hid*n$\n\nUser-agent: dragomania\nDisallow: /');
    const index = `<sitemapindex><sitemap><loc>${page('one.xml')}</loc></sitemap><sitemap><loc>${page('two.xml.gz')}</loc></sitemap><sitemap><loc>${page('index.xml')}</loc></sitemap></sitemapindex>`;
    web.pages.set('/index.xml', index);
    web.pages.set('/one.xml', sitemap(page('a'), page('b'), 'http://other.example/x', 'nonsense', page('hidden')));
    web.pages.set('/two.xml.gz', (_, response) => response.writeHead(200, { 'content-type': 'application/gzip' }).end(gzipSync(sitemap(page('c')))));
    const { id, ...first } = await sources.add({ type: 'sitemap', url: page('index.xml') });
    expect(first).toMatchObject({ state: 'done', seen: 3, changed: 3, deleted: 0 });
    expect(first.failures).toEqual([
      { what: 'http://other.example/x', reason: 'It is no address of the host of the sitemap.' },
      { what: 'nonsense', reason: 'It is no address of the host of the sitemap.' },
      { what: page('hidden'), reason: 'robots.txt of the site forbids it.' },
    ]);
    const bombs: Record<string, string | Buffer> = {
      entities: '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><urlset><url><loc>&b;</loc></url></urlset>',
      'an entity of its own': `<urlset><url><loc>${page('a')}&file;</loc></url></urlset>`,
      'cut short': sitemap(page('a')).slice(0, -20),
      'a page': html('An error'),
      'a gzip bomb': gzipSync(Buffer.alloc(200 * 2 ** 20, 32)),
    };
    for (const [name, content] of Object.entries(bombs)) {
      web.pages.set('/one.xml', (_, response) => response.writeHead(200, { 'content-type': 'application/xml' }).end(content));
      const answer = await sources.sync(id);
      expect([name, answer.deleted, answer.seen, answer.failures.some(({ what }) => what === page('one.xml'))]).toEqual([name, 0, 3, true]);
      web.pages.set('/index.xml', (_, response) => response.writeHead(200, { 'content-type': 'application/xml' }).end(content));
      expect([name, counts(await sources.sync(id))]).toMatchObject([name, { state: 'failed', deleted: 0, seen: 3 }]);
      web.pages.set('/index.xml', index);
    }
    web.pages.set('/one.xml', sitemap(page('a')));
    expect(counts(await sources.sync(id))).toEqual({ state: 'done', seen: 2, changed: 0, deleted: 1, failures: [] });
    web.pages.set('/robots.txt', (_, response) => response.writeHead(503).end());
    web.pages.set('/one.xml', sitemap());
    expect(counts(await sources.sync(id))).toMatchObject({
      state: 'failed',
      seen: 2,
      deleted: 0,
      failures: [{ reason: expect.stringContaining('robots.txt') as string }],
    });
    expect(await sources.files()).toHaveLength(2);
  });

  test('a site is followed by its links, in the folder of its first page, past robots.txt, and unread where it says no', { timeout: long }, async () => {
    const { web, sources } = await begun(await place(), { 'inner.example': ['10.0.0.7'] });
    const { pages } = web;
    pages.set('/robots.txt', (_, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      response.write('User-agent: dragoman\nDisallow: /docs/private\nAllow: /docs/private/open\n');
      const filler = setInterval(() => response.write(`# ${'x'.repeat(60_000)}\n`), 1);
      response.on('close', () => clearInterval(filler)); // it never ends
    });
    pages.set(
      '/docs/',
      html(
        'Start',
        'a',
        '/docs/b?x=1&amp;y=2',
        '/elsewhere',
        'http://inner.example/',
        'private/secret',
        'private/open',
        'picture.png',
        'moved',
        'mailto:x@y.z',
        '//[bad',
      ),
    );
    pages.set('/docs/a', html('Page a', '/docs/', 'deep/c'));
    pages.set('/docs/b?x=1&y=2', html('Page b'));
    pages.set('/docs/deep/c', html('Page c', '../gone'));
    pages.set('/docs/private/secret', html('Secret'));
    pages.set('/docs/private/open', html('Open'));
    pages.set('/docs/moved', (_, response) => response.writeHead(301, { location: '/docs/new' }).end());
    pages.set('/docs/new', html('New'));
    pages.set('/elsewhere', html('Elsewhere'));
    const { id, ...first } = await sources.add({ type: 'site', url: `${web.host}/docs/` });
    expect(counts({ id, ...first })).toEqual({ state: 'done', seen: 6, changed: 6, deleted: 0, failures: [] });
    expect(web.asked().toSorted()).toEqual([
      '/docs/',
      '/docs/a',
      '/docs/b?x=1&y=2',
      '/docs/deep/c',
      '/docs/gone',
      '/docs/moved',
      '/docs/new',
      '/docs/private/open',
    ]);

    expect(counts(await sources.sync(id))).toEqual({ state: 'done', seen: 6, changed: 0, deleted: 0, failures: [] }); // by links that were kept
    // one that fails may lead to others: nothing is deleted but what is known to be gone
    pages.set('/docs/a', (_, response) => response.writeHead(503).end());
    pages.delete('/docs/b?x=1&y=2');
    expect(counts(await sources.sync(id))).toEqual({
      state: 'done',
      seen: 5,
      changed: 0,
      deleted: 1,
      failures: [{ what: `${web.host}/docs/a`, reason: 'It answered 503.' }],
    });
    pages.set('/docs/a', html('Page a', '/docs/'));
    expect(counts(await sources.sync(id))).toEqual({ state: 'done', seen: 4, changed: 1, deleted: 1, failures: [] });
    // neither a first page that is away nor one behind a sign-in deletes the others
    for (const answer of [{ status: 503 }, { status: 404 }, { status: 302, location: 'http://login.example/' }, { status: 302, location: '/docs/' }]) {
      pages.set('/docs/', (_, response) => response.writeHead(answer.status, 'location' in answer ? { location: answer.location } : {}).end());
      expect([answer, counts(await sources.sync(id))]).toMatchObject([answer, { state: 'failed', seen: 4, deleted: 0 }]);
    }
    expect(await sources.files()).toHaveLength(4);
  });

  test(
    'who is suspended, has lost the right or whose key is gone has nothing fetched any more; whoever changes a source takes it over',
    { timeout: long },
    async () => {
      const { all, ada, bob, web, datasetId } = await begun(await place());
      const bobs = following(bob, datasetId);
      web.pages.set('/p', html('Page'));
      const share = (right?: string) => ada.ask('PUT', `/server/mine/datasets/${datasetId}/grants`, { items: right ? [{ user: bob.id, right }] : [] });
      await share('read');
      expect((await bob.ask('POST', bobs.root, { type: 'page', url: `${web.host}/p` })).status).toBe(403);
      await share('edit');
      const { id } = await bobs.add({ type: 'page', url: `${web.host}/p` });
      await share('read');
      const adas = following(ada, datasetId);
      web.forget();
      expect(counts(await adas.sync(id))).toMatchObject({ state: 'failed', seen: 1, failures: [{ reason: expect.stringContaining('not change') as string }] });
      await share('edit');
      await all.admin('PATCH', `/server/admin/users/${bob.id}`, { status: 'suspended' });
      expect(counts(await adas.sync(id))).toMatchObject({ state: 'failed', seen: 1, deleted: 0 });
      expect(web.asked()).toEqual([]);
      await all.admin('PATCH', `/server/admin/users/${bob.id}`, { status: 'active' });
      expect((await adas.sync(id)).state).toBe('done');
      await all.admin('DELETE', `/server/admin/users/${bob.id}/keys/${bob.keyId}`);
      expect((await adas.sync(id)).state).toBe('failed');
      expect((await ada.ask('PATCH', `${adas.root}/${id}`, { everyHours: 24 })).body).toMatchObject({
        everyHours: 24,
        nextSyncAt: expect.any(String) as string,
      });
      expect((await adas.sync(id)).state).toBe('done');
      expect((await ada.ask('PATCH', `${adas.root}/${id}`, { everyHours: null })).body).toMatchObject({ everyHours: null, nextSyncAt: null });
      expect((await ada.ask('DELETE', `${adas.root}/${id}`)).status).toBe(200);
      expect((await ada.ask('GET', `${adas.root}/${id}`)).status).toBe(404);
      expect(await adas.files()).toEqual([]);
    },
  );

  test('addresses, types and members that do not fit are refused, naming the field', { timeout: long }, async () => {
    const { ada, sources } = await begun(await place());
    const bucket = { endpoint: 'https://s3.example', bucket: 'files', accessKeyId: 'a', secretAccessKey: 'b' };
    const wrong: [body: object, field: string][] = [
      [{}, 'type'],
      [{ type: 'feed', url: 'https://a.example/' }, 'type'],
      [{ type: 'page' }, 'url'],
      [{ type: 'page', url: 'ftp://a.example/' }, 'url'],
      [{ type: 'page', url: 'https://me:secret@a.example/' }, 'url'],
      [{ type: 'page', url: 'nonsense' }, 'url'],
      [{ type: 'page', url: `https://a.example/${'x'.repeat(3000)}` }, 'url'],
      [{ type: 'page', url: 'https://a.example/', folder: '/srv' }, 'folder'],
      [{ type: 'page', url: 'https://a.example/', everyHours: 0 }, 'everyHours'],
      [{ type: 'page', url: 'https://a.example/', everyHours: 'often' }, 'everyHours'],
      [{ type: 'page', url: 'https://a.example/', depth: 3 }, 'depth'],
      [{ type: 'bucket', url: 'https://a.example/' }, 'url'],
      [{ type: 'bucket', bucket: { ...bucket, secretAccessKey: undefined } }, 'bucket.secretAccessKey'],
      [{ type: 'bucket', bucket: { ...bucket, endpoint: 'file:///etc' } }, 'bucket.endpoint'],
      [{ type: 'bucket', bucket: { ...bucket, bucket: '../x' } }, 'bucket.bucket'],
    ];
    for (const [body, field] of wrong) {
      const answer = await ada.ask('POST', sources.root, body);
      expect([body, answer.status, answer.body['response']]).toEqual([body, 400, expect.stringContaining(field)]);
    }
    expect((await ada.ask('POST', sources.root, { type: 'folder', folder: '/etc' })).status).toBe(403);
    expect((await ada.ask('GET', sources.root)).body).toEqual({ items: [], nextCursor: null });
    for (const path of ['1', '0', 'x', '99999999']) expect((await ada.ask('GET', `${sources.root}/${path}`)).status).toBe(404);
  });
});

// The embedded database does one thing after the other.
describe.skipIf(!address)('changes of a web source that wait for each other', () => {
  test('of two changes of a source at the same time each keeps what the other has changed', { timeout: long }, async () => {
    const where = await onServer(address!).place();
    const { ada, web, sources } = await begun(where);
    for (const path of ['/old', '/new']) web.pages.set(path, html(path));
    const { id } = await sources.add({ type: 'page', url: `${web.host}/old` });
    const { client, waiting } = await connected(where.databaseUrl!);
    await client.query(`begin; select from dataset_source where id = ${id} for update`);
    const moved = ada.ask('PATCH', `${sources.root}/${id}`, { url: `${web.host}/new` });
    await expect.poll(waiting).toBe(1);
    const often = ada.ask('PATCH', `${sources.root}/${id}`, { everyHours: 5 });
    await expect.poll(waiting).toBe(2);
    await client.query('commit');
    expect([(await moved).status, (await often).status]).toEqual([200, 200]);
    expect((await ada.ask('GET', `${sources.root}/${id}`)).body).toMatchObject({ url: `${web.host}/new`, everyHours: 5 });
    expect(counts(await sources.ended(id))).toMatchObject({ state: 'done', seen: 1 });
  });
});
