/* What is followed may be hostile, slow, or cut off in the middle. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { anyPlace, onServer } from '../../support/databases.ts';
import { openBucket } from '../../support/fakes/bucket.ts';
import { keys } from '../../support/fakes/signed.ts';
import { outsideOf, publicAddress } from '../../support/fakes/web.ts';
import { startUpstream } from '../../support/fakes/upstream/index.ts';
import { startProcess } from '../../support/server-process.ts';
import { person, visited, visitorsOf } from '../native/visitors.ts';
import { fakeSite, following, html, plainText } from './following.ts';
import { idOf, newDataset, twoPeople } from './people.ts';

const long = 240_000;
const address = inject('postgres');

async function begun() {
  const web = await fakeSite({ 'inner.example': ['10.0.0.7'], 'both.example': [publicAddress, '127.0.0.1'] });
  const people = await twoPeople(await anyPlace(), { convert: plainText, outside: web.outside });
  const datasetId = await idOf(people.ada, await newDataset(people.ada, 'followed'));
  return { ...people, web, datasetId, sources: following(people.ada, datasetId) };
}

test(
  'no source leads to an inner address: neither its own address, nor a redirect, nor a link, nor a robots.txt, nor a bucket',
  { timeout: long },
  async () => {
    const { web, sources } = await begun();
    const inner = [
      'http://127.0.0.1:1/',
      'http://[::1]/',
      'http://169.254.169.254/latest/meta-data/',
      'http://inner.example/',
      'http://both.example/',
      'http://0x7f.1/',
      'http://localhost/',
    ];
    for (const url of inner) {
      expect([url, await sources.add({ type: 'page', url })]).toMatchObject([url, { state: 'failed', seen: 0 }]);
      expect([url, await sources.add({ type: 'bucket', bucket: { ...keys, endpoint: url } })]).toMatchObject([url, { state: 'failed', seen: 0 }]);
      web.pages.set('/moved', (_, response) => response.writeHead(302, { location: url }).end());
      expect([url, await sources.add({ type: 'page', url: `${web.host}/moved` })]).toMatchObject([
        url,
        { state: 'done', seen: 0, failures: [{ reason: 'It redirects to another page: robots.txt of the site cannot be read.' }] },
      ]);
      web.pages.set('/robots.txt', (_, response) => response.writeHead(302, { location: url }).end());
      web.pages.set('/page', html('A page'));
      expect([url, await sources.add({ type: 'page', url: `${web.host}/page` })]).toMatchObject([url, { state: 'failed', seen: 0 }]);
      web.pages.delete('/robots.txt');
    }
    expect(web.outside.dialled.filter((one) => one !== publicAddress)).toEqual([]);
  },
);

test('a redirect leads past no robots.txt: neither that of another site, nor that of its own, nor one that cannot be read', { timeout: long }, async () => {
  const { web, sources } = await begun();
  const other = `http://other.example:${web.site.port}`;
  const robots = {
    [`pages.example:${web.site.port}`]: 'User-agent: *\nDisallow: /closed',
    [`other.example:${web.site.port}`]: 'User-agent: *\nDisallow: /private',
  };
  let isAway = false;
  web.pages.set('/robots.txt', ({ headers }, response) => {
    const text = robots[headers.host!];
    response.writeHead(isAway && headers.host!.startsWith('other') ? 503 : 200, { 'content-type': 'text/plain' }).end(text);
  });
  const pages = ['/private/page', '/closed/page', '/open'];
  for (const path of pages) web.pages.set(path, html(`The page ${path}`));
  const leads = (to: string) => web.pages.set('/moved', (_, response) => response.writeHead(302, { location: to }).end());
  const forbidden = { state: 'done', seen: 0, failures: [{ reason: 'It redirects to another page: robots.txt of the site forbids it.' }] };
  web.pages.set('/sitemap.xml', `<urlset><url><loc>${web.host}/moved</loc></url></urlset>`);
  for (const type of ['page', 'sitemap']) {
    const url = `${web.host}/${type === 'page' ? 'moved' : 'sitemap.xml'}`;
    leads('/closed/page');
    expect([type, await sources.add({ type, url })]).toMatchObject([type, forbidden]);
  }
  const url = `${web.host}/moved`;
  leads(`${other}/private/page`);
  expect(await sources.add({ type: 'page', url })).toMatchObject(forbidden);
  expect(web.asked().filter((path) => pages.includes(path))).toEqual([]);
  leads(`${other}/open`);
  expect(await sources.add({ type: 'page', url })).toMatchObject({ state: 'done', seen: 1, failures: [] });
  isAway = true;
  web.forget();
  expect(await sources.add({ type: 'page', url })).toMatchObject({ seen: 0, failures: [{ reason: expect.stringContaining('cannot be read') as string }] });
  expect(web.asked()).toEqual(['/moved']);
});

test('redirects without end, calendars without end and sitemaps without end come to an end', { timeout: long }, async () => {
  const { web, sources } = await begun();
  const { pages } = web;
  pages.set('/robots.txt', (_, response) => response.writeHead(302, { location: '/robots.txt' }).end());
  pages.set('/round', (_, response) => response.writeHead(302, { location: '/round' }).end());
  expect(await sources.add({ type: 'page', url: `${web.host}/round` })).toMatchObject({ state: 'done', failures: [{ reason: 'It is redirected too often.' }] });

  const answered = pages.get.bind(pages);
  pages.get = (path: string) => {
    const [, day] = /^\/calendar\/(\d+)$/.exec(path) ?? [];
    return day === undefined ? answered(path) : (_, response) => response.writeHead(302, { location: `/calendar/${Number(day) + 1}` }).end();
  };
  pages.set('/calendar/', html('Calendar', '1', ...Array.from({ length: 300 }, (_, month) => `view?month=${month}`)));
  web.forget();
  const calendar = await sources.add({ type: 'site', url: `${web.host}/calendar/` });
  expect(calendar).toMatchObject({ state: 'done', seen: 1, failures: [{ reason: 'It has more than 1000 pages: the others are left out.' }] });
  expect(web.asked()).toHaveLength(1000);
  expect(web.asked().filter((path) => path.includes('month'))).toHaveLength(50);

  let sent = 0;
  pages.set('/robots.txt', 'User-agent: *\nDisallow: /many');
  pages.set('/sitemap.xml', (_, response) => {
    response.writeHead(200, { 'content-type': 'application/xml' });
    response.write('<urlset>');
    const more = () => {
      while (!response.destroyed && response.write(Array.from({ length: 500 }, () => `<url><loc>${web.host}/many/${sent++}</loc></url>`).join('')));
    };
    response.on('drain', more);
    more();
  });
  const many = await sources.add({ type: 'sitemap', url: `${web.host}/sitemap.xml` });
  expect(many).toMatchObject({ state: 'done', seen: 0 });
  expect(many.failures).toHaveLength(101);
  expect(many.failures[0]!.reason).toBe('It names more than 1000 pages: the others are left out.');
  expect(many.failures.at(-1)).toEqual({ what: '…', reason: '901 more.' });

  const nested = (path: string) =>
    `<sitemapindex>${Array.from({ length: 20 }, (_, at) => `<sitemap><loc>${web.host}${path}${at}.xml</loc></sitemap>`).join('')}</sitemapindex>`;
  pages.get = (path: string) => (/^\/nest[\d-]*\.xml$/.test(path) ? nested(path.replace('.xml', '-')) : answered(path));
  web.forget();
  expect(await sources.add({ type: 'sitemap', url: `${web.host}/nest.xml` })).toMatchObject({ state: 'done', seen: 0 });
  expect(web.asked()).toHaveLength(100);
});

test('a page with a new ETag each time is not taken again, and 304 is no answer to who has nothing', { timeout: long }, async () => {
  const { web, sources } = await begun();
  let count = 0;
  web.pages.set('/changing-tag', (_, response) => response.writeHead(200, { 'content-type': 'text/html', etag: `"${++count}"` }).end(html('The same')));
  const changing = await sources.add({ type: 'page', url: `${web.host}/changing-tag` });
  expect(await sources.sync(changing.id)).toMatchObject({ seen: 1, changed: 0 });
  // 304 to whoever did not ask for changes alone says nothing
  web.pages.set('/never-asked', (_, response) => response.writeHead(304).end());
  expect(await sources.add({ type: 'page', url: `${web.host}/never-asked` })).toMatchObject({
    state: 'done',
    seen: 0,
    failures: [{ reason: 'It answered 304.' }],
  });
});

test('a bucket of 100,000 objects is listed to its end, and one of more is left at a bound', { timeout: long }, async () => {
  const bucket = await openBucket('127.0.0.2');
  onTestFinished(() => bucket.close());
  const people = await twoPeople(await anyPlace(), { convert: plainText, outside: outsideOf(() => [publicAddress], '127.0.0.2') });
  const sources = following(people.ada, await idOf(people.ada, await newDataset(people.ada, 'followed')));
  let most = 100_000;
  bucket.instead = (key, query) => {
    if (key !== '') return undefined;
    const from = Number(query.get('continuation-token') ?? 0);
    const to = Math.min(from + 1000, most);
    const all = Array.from(
      { length: to - from },
      (_, at) => `<Contents><Key>${String(from + at)}.txt</Key><ETag>"e"</ETag><Size>999999999999</Size></Contents>`,
    );
    return {
      status: 200,
      body: `<ListBucketResult>${all.join('')}<IsTruncated>${to < most}</IsTruncated><NextContinuationToken>${to}</NextContinuationToken></ListBucketResult>`,
    };
  };
  const given = { ...keys, endpoint: `http://s3.example:${bucket.port}` };
  const { id, ...first } = await sources.add({ type: 'bucket', bucket: given });
  expect([first.state, first.failures.length, first.failures.at(-1)]).toEqual(['done', 101, { what: '…', reason: '99900 more.' }]);
  most = 100_001;
  bucket.objects.set('a.txt', 'x');
  const more = await sources.sync(id);
  expect([more.state, more.failures.at(-1)]).toEqual(['done', { what: '…', reason: '99901 more.' }]);
});

describe.skipIf(!address)('on several machines', () => {
  test('two synchronisations at once are one, what is due is begun once, and what it costs is paid once', { timeout: long }, async () => {
    const { databaseUrl } = await onServer(address!).place();
    const web = await fakeSite();
    const env = { DRAGOMAN_MASTER_KEY: randomBytes(32).toString('base64') };
    const settings = { convert: plainText, outside: web.outside, databaseUrl: databaseUrl!, env };
    const one = await visited(await anyPlace(), settings);
    const two = await visited(await anyPlace(), settings);
    const ada = await person(one);
    const datasetId = await idOf(ada, await newDataset(ada, 'followed'));
    const [here, there] = [following(ada, datasetId), following({ ask: two.as(ada.key) }, datasetId)];
    web.pages.set('/', html('Start', ...Array.from({ length: 12 }, (_, at) => `/page-${at}`)));
    for (let at = 0; at < 12; at++) web.pages.set(`/page-${at}`, html(`Page ${at}`, '/'));
    const { id } = await here.add({ type: 'site', url: `${web.host}/`, everyHours: 1 });
    expect(web.asked()).toHaveLength(13);
    web.forget();
    await Promise.all([here.sync(id), there.sync(id), here.sync(id), there.sync(id)]);
    expect(await here.ended(id)).toMatchObject({ seen: 13, changed: 0 });
    expect(new Set(web.asked()).size).toBe(13);
    expect(web.asked().length % 13).toBe(0);
    expect(await here.files()).toHaveLength(13);

    const database = new pg.Client(databaseUrl);
    await database.connect();
    onTestFinished(() => database.end());
    web.forget();
    const due = await database.query(`update job set run_at = now() where kind = 'source-due' and state = 'waiting' returning id`);
    expect(due.rowCount).toBeGreaterThan(1); // those of former synchronisations are good for nothing any more
    for (let tries = 0; tries < 200 && web.asked().length < 13; tries++) await sleep(100);
    await sleep(1000);
    expect(await here.ended(id)).toMatchObject({ state: 'done', seen: 13, changed: 0 });
    expect(web.asked()).toHaveLength(13);

    // a server that says that nothing has changed is believed for a week
    const asksForChanges = () => web.site.requests.filter(({ url, headers }) => url !== '/robots.txt' && 'if-none-match' in headers).length;
    const before = asksForChanges();
    await here.sync(id);
    expect(asksForChanges() - before).toBe(13);
    await database.query(`update dataset_source_item set read_at = read_at - interval '8 days'`);
    expect(await here.sync(id)).toMatchObject({ seen: 13, changed: 0 });
    expect(asksForChanges() - before).toBe(13);
  });
});

test('killed in the middle it goes on where it was: nothing is asked for, kept or counted twice', { timeout: 600_000 }, async () => {
  const place = await anyPlace();
  const [upstream, bucket] = [await startUpstream(), await openBucket('127.0.0.1')];
  onTestFinished(() => Promise.all([upstream.close(), bucket.close()]).then(() => {}));
  const yaml = `outbound: { allow: ["http://127.0.0.1:${bucket.port}"] }\n`;
  for (let at = 10; at < 40; at++) bucket.objects.set(`${at}.txt`, `This is the text of number ${at}.`);
  bucket.page = 7;
  let server = await startProcess(place, upstream.url, yaml);
  const askOf = (key: string) => visitorsOf({ url: server.url, key: server.key } as Parameters<typeof visitorsOf>[0]).as(key);
  const ada = await person(visitorsOf({ url: server.url, key: server.key } as Parameters<typeof visitorsOf>[0]));
  const datasetId = await idOf(ada, await newDataset(ada, 'followed'));
  const made = await ada.ask('POST', `/server/mine/datasets/${datasetId}/sources`, {
    type: 'bucket',
    bucket: { ...keys, endpoint: `http://127.0.0.1:${bucket.port}` },
  });
  const id = made.body['id'] as number;
  for (const count of [9, 21]) {
    while (bucket.asked.length < count) await sleep(2);
    await server.kill();
    server = await startProcess(place, upstream.url, yaml);
  }
  const sources = following({ ask: askOf(ada.key) }, datasetId);
  expect(await sources.ended(id)).toMatchObject({ state: 'done', seen: 30, changed: 30, deleted: 0, failures: [] });
  const files = await sources.files();
  expect(files.map(({ filename, state, passages }) => [filename, state, passages])).toEqual(
    Array.from({ length: 30 }, (_, at) => [`${at + 10}.txt`, 'done', 1]),
  );
  expect(bucket.asked.length).toBeLessThanOrEqual(32); // those that were on their way when it was killed
});
