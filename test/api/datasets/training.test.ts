/* What datasets are trained with, and how far it is. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { ConvertDocument } from '#core/document';
import { Fault } from '#core/fault';
import { onBothDatabases } from '../../support/databases.ts';
import { proves } from '../../support/proves.ts';
import { idOf, newDataset, twoPeople, twoPeopleOf, type Answer, type Person } from './people.ts';
import { visitedTogether } from '../native/visitors.ts';

const long = 180_000;
const hours = 'The library opens at nine in the morning and closes at five in the evening on each working day of the week.';

/** Reads plain text; `broken` files are corrupt, `slow` ones take until they are cancelled. */
const readText: ConvertDocument = async (content, { filename, signal }) => {
  if (filename.startsWith('broken')) throw new Fault('unprocessable', `${filename} is corrupt.`);
  if (filename.startsWith('strange')) throw new Fault('unsupported-type', 'Its type is not known.');
  if (filename.startsWith('thick')) throw new Fault('too-large', 'Its text is too long.');
  if (filename.startsWith('slow')) await sleep(120_000, undefined, { signal: signal! });
  const text = await content.text();
  return { type: 'text/plain', text, places: [{ start: 0, end: text.length, page: 1 }] };
};

/** Sends a form with one file. */
async function upload(url: string, { key }: Person, path: string, name: string, content: string, fields: Record<string, string> = {}): Promise<Answer> {
  const form = new FormData();
  for (const [field, value] of Object.entries(fields)) form.append(field, value);
  form.append('file', new Blob([content]), name);
  const answer = await fetch(url + path, { method: 'POST', body: form, headers: { 'x-access-tokens': key } });
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Answer['body'] };
}

/** What was used shows a moment later: it is more than before where something was. */
async function teachTokens({ ask }: Person, before = -1): Promise<number> {
  const shown = async () => Number((await ask('POST', '/server/count-monthly-teach-tokens')).body['response']);
  await expect.poll(shown).toBeGreaterThan(before);
  await sleep(2500);
  return shown();
}

const items = ({ body }: Answer) => body['items'] as Record<string, unknown>[];

onBothDatabases('training', (database) => {
  const { place } = database;
  const together = visitedTogether(database);

  test(
    proves(
      [
        'server.train',
        'server.train-context',
        'server.train-content',
        'server.train-force-dataset',
        'server.get-all-files-ingested',
        'server.delete-filename-from-dataset',
        'server.count-monthly-teach-tokens',
      ],
      'a text is embedded, and put into a dataset where one is named; the same text is paid once, and counted as training',
    ),
    { timeout: long },
    async () => {
      const { ada, bob } = await twoPeopleOf(together());
      const alone = await ada.ask('POST', '/server/train', { content: hours, context: 'Opening hours' });
      expect(alone).toMatchObject({ status: 200, body: { status: 200 } });
      expect(alone.body['response']).toMatch(/^Ingesting the following content: The library .*\nThank you, I have learned this content \(\d+ tokens\)\.$/s);
      expect(alone.body['embedding']).toHaveLength(512);
      const first = await teachTokens(ada, 0);
      expect(first).toBeGreaterThan(0);
      expect((await ada.ask('POST', '/server/get-all-files-ingested')).body['response']).toEqual([]);

      const dataset = await newDataset(ada, 'library');
      expect((await bob.ask('POST', '/server/train', { content: hours, force_dataset: dataset })).status).toBe(404);
      const into = { content: hours, context: 'Opening hours', force_dataset: dataset };
      const learned = await ada.ask('POST', '/server/train', into);
      expect(learned).toMatchObject({ status: 200, body: { response: alone.body['response'], status: 200 } });
      expect(learned.body['embedding']).toHaveLength(512);
      const second = await teachTokens(ada, first);
      expect(second).toBeGreaterThan(first);
      expect((await ada.ask('POST', '/server/train', into)).status).toBe(200);
      expect(await teachTokens(ada)).toBe(second);
      const ingested = (await ada.ask('GET', '/server/get-all-files-ingested')).body['response'] as Record<string, unknown>[];
      expect(ingested).toEqual([
        {
          filename: expect.stringMatching(/^Opening-hours-[0-9a-f]{12}\.txt$/) as string,
          dataset,
          source_string: dataset,
          classification: 'Unclassified',
          chunk_count: 1,
          tokens: expect.any(Number) as number,
          bytes: hours.length,
          created_at: expect.any(String) as string,
          user_id: ada.id,
        },
      ]);
      const { filename } = ingested[0]!;
      expect((await ada.ask('POST', '/server/delete-filename-from-dataset', { dataset, filename: 'other.txt' })).status).toBe(404);
      expect((await bob.ask('POST', '/server/delete-filename-from-dataset', { dataset, filename })).status).toBe(404);
      expect((await ada.ask('POST', '/server/delete-filename-from-dataset', { dataset, filename })).body).toEqual({ response: 'OK', status: 200 });
      expect((await ada.ask('GET', '/server/get-all-files-ingested')).body['response']).toEqual([]);
    },
  );

  test(
    'what training spends is booked under the application and the tags of its request, and a summary is made by the models that it names',
    { timeout: long },
    async () => {
      const { ada } = await twoPeopleOf(together());
      const dataset = await newDataset(ada, 'labelled');
      const choices = (tag: string) => ({ headers: { 'x-app-name': 'desk', 'x-dragoman-tags': `case=${tag}`, 'x-dragoman-targets': 'built-in' } });
      const booked = async (tag: string) => {
        const { items } = (await ada.ask('GET', `/server/mine/logs?tag=case:${tag}`)).body as { items: { app: string; servedModel: string }[] };
        return items.map(({ app, servedModel }) => `${app} ${servedModel}`).toSorted();
      };
      const summarized = { content: `${hours} Always.`, summarize: true, summarize_model: 'no-such-model' };
      expect((await ada.ask('POST', '/server/train', { ...summarized, force_dataset: dataset }, choices('into'))).status).toBe(200);
      expect((await ada.ask('POST', '/server/train', { content: `${hours} Or so.` }, choices('alone'))).status).toBe(200);
      expect((await ada.ask('POST', '/server/train-with-array', { data: [`${hours} Mostly.`], dataset }, choices('array'))).status).toBe(200);
      const file = await ada.ask('POST', `/server/mine/datasets/${await idOf(ada, dataset)}/files?filename=hours.txt`, `${hours} Never.`, {
        headers: { ...choices('file').headers, 'content-type': 'application/octet-stream' },
      });
      expect([file.status, file.body]).toEqual([202, expect.anything()]);
      expect((await ada.ask('POST', '/server/get-dataset-results', { dataset, message: 'When does it open?' }, choices('search'))).status).toBe(200);
      await expect.poll(() => booked('into')).toEqual(['desk built-in', 'desk built-in-embedding']);
      for (const tag of ['alone', 'array', 'file', 'search']) await expect.poll(() => booked(tag)).toEqual(['desk built-in-embedding']);
    },
  );

  test(
    proves(['server.train-summarize', 'server.train-summarize-model'], 'a summary takes the place of the text; what is wrong with a field names it'),
    { timeout: long },
    async () => {
      const { ada } = await twoPeopleOf(together());
      const dataset = await newDataset(ada, 'summaries');
      const content = `${hours} It has a garden. Children may read in the garden of the library from nine to five.`;
      const made = await ada.ask('POST', '/server/train', { content, summarize: true, summarize_model: 'built-in', force_dataset: dataset });
      expect(made.status).toBe(200);
      const [, summary = ''] = /^Ingesting the following content: (.*)\nThank you/s.exec(String(made.body['response']))!;
      expect(content).toContain(summary);
      expect(summary.length).toBeLessThan(content.length);
      expect(made.body['embedding']).toHaveLength(512);
      const wrong: [body: object, status: number, field: RegExp][] = [
        [{}, 400, /content/],
        [{ content: '' }, 400, /content/],
        [{ content: ['a'] }, 400, /content/],
        [{ content: 'x', context: 7 }, 400, /context/],
        [{ content: 'x', summarize: 'perhaps' }, 400, /summarize/],
        [{ content: 'x', summarize: true, summarize_model: 'no-such-model' }, 400, /no-such-model/],
        [{ content: 'x', force_dataset: 'no such dataset' }, 404, /force_dataset/],
        [{ content: 'x', force_dataset: 5 }, 400, /force_dataset/],
      ];
      for (const [body, status, field] of wrong) {
        const answer = await ada.ask('POST', '/server/train', body);
        expect([body, answer.status, answer.body['response']]).toEqual([body, status, expect.stringMatching(field)]);
      }
      const narrow = await ada.ask('POST', '/server/mine/keys', { name: 'narrow', models: ['built-in'] });
      const unavailable = await together().as(String(narrow.body['key']))('POST', '/server/train', { content: 'x' });
      expect(unavailable).toMatchObject({ status: 400, body: { response: 'The embedding model built-in-embedding is not available.' } });
      expect((await ada.ask('GET', '/server/train')).status).toBe(405);
      expect((await ada.ask('POST', '/server/get-all-files-ingested')).body['response']).toHaveLength(1);
    },
  );

  test(
    proves(['server.train-with-file', 'server.train-with-array'], 'files and lists of texts are put into a dataset, at once or behind a job'),
    { timeout: long },
    async () => {
      const { all, ada, bob } = await twoPeople(await place(), { convert: readText });
      const { url } = all.server;
      const dataset = await newDataset(ada, 'papers');
      const path = '/server/train-with-file';
      const at = await upload(url, ada, path, '../hours.txt', hours, { dataset });
      expect(at).toMatchObject({ status: 200, body: { response: 'Successfully imported', status: 200 } });
      expect(at.body['embedding']).toHaveLength(1);
      for (const [name, content, status, response] of [
        ['broken.pdf', 'x', 422, 'file (broken.pdf): broken.pdf is corrupt.'],
        ['strange.bin', 'x', 415, 'file (strange.bin): Its type is not known.'],
        ['empty.txt', '', 422, 'file (empty.txt): The file is empty: it has no bytes.'],
        ['blank.txt', '  \n ', 422, 'file (blank.txt): blank.txt has no text.'],
        ['thick.txt', 'x', 413, 'file (thick.txt): Its text is too long.'],
        ['x'.repeat(300), 'x', 400, `file (${'x'.repeat(200)}): its name must have at most 255 characters.`],
      ] as const)
        expect(await upload(url, ada, path, name, content, { dataset })).toMatchObject({ status, body: { response } });
      expect((await upload(url, ada, path, 'hours.txt', hours, {})).body['response']).toMatch(/dataset/);
      expect((await upload(url, bob, path, 'hours.txt', hours, { dataset })).status).toBe(404);
      expect((await ada.ask('POST', path, { dataset })).body['response']).toMatch(/file/);

      const behind = await upload(url, ada, path, 'later.txt', hours, { dataset, async: 'true' });
      expect(behind).toMatchObject({ status: 202, body: { embedding: '', status: 202, job_id: expect.any(String) as string } });
      const { job_id: job } = behind.body;
      const statusOf = async () => (await ada.ask('POST', '/server/train-with-file-status', { job_id: job })).body['response'] as Record<string, unknown>;
      const told: Record<string, unknown>[] = [];
      await expect.poll(async () => (told.push(await statusOf()), told.at(-1)!['status']), { timeout: 30_000, interval: 1 }).toBe('succeeded');
      expect(told.filter((one) => one['status'] === 'running' && one['started_at'] === null)).toEqual([]);
      expect(await statusOf()).toMatchObject({ job_id: job, stage: null, filename: 'later.txt', dataset, chunk_count: 1, failed_chunk_count: 0, message: '' });
      expect((await bob.ask('POST', '/server/train-with-file-status', { job_id: job })).status).toBe(404);

      const array = await ada.ask('POST', '/server/train-with-array', { data: [hours, 'Books are lent for four weeks.'], dataset, context: 'Rules' });
      expect(array).toMatchObject({ status: 200, body: { status: 200 } });
      expect((array.body['embedding'] as number[][][]).map((one) => one.map((vector) => vector.length))).toEqual([[512], [512]]);
      const odd = { context: 'Half \ud83d and \0', dataset, force_dataset: dataset };
      const text = 'One half \ud83d of a character, and a zero \0.';
      const oddArray = await ada.ask('POST', '/server/train-with-array', { ...odd, data: [text, hours] });
      expect((oddArray.body['embedding'] as number[][][]).map((one) => one.map((vector) => vector.length))).toEqual([[512], [512]]);
      const paid = await teachTokens(ada, 0);
      const oddText = await ada.ask('POST', '/server/train', { ...odd, content: text });
      expect([oddText.status, (oddText.body['embedding'] as number[]).length]).toEqual([200, 512]);
      expect(oddText.body['response']).toMatch(/One half \ufffd of a character, and a zero \ufffd\./);
      expect(await teachTokens(ada)).toBe(paid); // the passage is that of the array
      for (const data of ['no list', '["cut off', '[1'])
        expect([data, (await ada.ask('POST', '/server/train-with-array', { data, dataset })).body]).toEqual([data, expect.objectContaining({ status: 400 })]);
      const many = Array.from({ length: 10_001 }, (_, place) => `Text ${place}.`);
      const tooMany = await ada.ask('POST', '/server/train-with-array', { data: many, dataset });
      expect([tooMany.status, tooMany.body['response']]).toEqual([400, expect.stringContaining('data')]);
      const same = Array.from({ length: 1001 }, () => 'Always the same text.'); // of which one vector is made
      const bounded = await ada.ask('POST', '/server/train-with-array', { data: same, dataset });
      expect(bounded).toMatchObject({ status: 202, body: { embedding: '', status: 202, job_id: expect.any(String) as string } });
      const pages = await upload(url, ada, path, 'many.txt', same.join('\n'.repeat(80)), { dataset });
      expect(pages).toMatchObject({ status: 202, body: { response: expect.stringContaining('many.txt is imported') as string, embedding: '' } });
      expect((await ada.ask('POST', '/server/train-with-array', { data: ['x', ''], dataset })).body['response']).toMatch(/data\[1\]/);
      expect((await ada.ask('POST', '/server/train-with-array', { data: ['x'] })).body['response']).toMatch(/dataset/);
    },
  );

  test('what is refused at once leaves no file and takes no room, and what the file was before stays', { timeout: long }, async () => {
    const { all, ada } = await twoPeople(await place(), { convert: readText });
    const { url } = all.server;
    const dataset = await newDataset(ada, 'refused');
    const path = `/server/mine/datasets/${await idOf(ada, dataset)}/files`;
    const array = (text: string) => ada.ask('POST', '/server/train-with-array', { data: [text], dataset, filename: 'rules.json' });
    expect((await array('Books.')).status).toBe(200);
    const before = items(await ada.ask('GET', path));
    const failed = items(await upload(url, ada, path, 'broken.txt', hours))[0]!; // in the background: it may be tried again
    await expect.poll(async () => (await ada.ask('GET', `${path}/${failed['id'] as number}`)).body['state'], { timeout: 30_000 }).toBe('failed');
    const used = async () => {
      const { balances } = (await ada.ask('GET', '/server/mine')).body as { balances: { limit: string; used: number }[] };
      return balances.find(({ limit }) => limit === 'storageBytes')?.used;
    };
    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { monthlyTrainTokens: 15, storageBytes: 1000 });
    const room = await used();
    expect(room).toBe(hours.length + '["Books."]'.length);
    for (const n of [1, 2, 3])
      expect((await ada.ask('POST', '/server/train', { content: `${hours} Number ${n}.`, context: 'Hours', force_dataset: dataset })).status).toBe(429);
    expect((await array(`${hours} Or other rules.`)).status).toBe(429);
    expect((await upload(url, ada, '/server/train-with-file', 'hours.txt', hours, { dataset })).status).toBe(429);
    expect((await upload(url, ada, '/server/train-with-file', 'broken.pdf', 'x', { dataset })).status).toBe(422);
    expect(await used()).toBe(room);
    const [rules, ...others] = items(await ada.ask('GET', path));
    expect(rules).toEqual({ ...before[0], jobId: null });
    expect(others).toMatchObject([{ filename: 'broken.txt', state: 'failed', jobId: failed['jobId'] }]);
    expect(items(await ada.ask('GET', `${path}/${rules!['id'] as number}/passages`)).map(({ text }) => text)).toEqual(['Books.']);
    const refused = items(await ada.ask('GET', '/server/mine/jobs?state=failed')).find(({ filename }) => filename === 'rules.json');
    expect((await ada.ask('POST', `/server/mine/jobs/${refused!['id'] as string}/retry`)).status).toBe(409);
    expect((await ada.ask('POST', `/server/mine/jobs/${failed['jobId'] as string}/retry`)).status).toBe(200);
    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { monthlyTrainTokens: null });
    expect((await ada.ask('POST', '/server/train', { content: `${hours} Number 1.`, context: 'Hours', force_dataset: dataset })).status).toBe(200);
  });

  test(proves('server.copy-files-dataset', 'files are copied without being paid again; each copy lives by itself'), { timeout: long }, async () => {
    const { ada, bob } = await twoPeopleOf(together());
    const [from, to, theirs] = [await newDataset(ada, 'from here'), await newDataset(ada, 'to there'), await newDataset(bob, 'of bob')];
    await ada.ask('POST', '/server/train-with-array', { data: [hours, 'Books are lent for four weeks.'], dataset: from, filename: 'rules.json' });
    const paid = await teachTokens(ada, 0);
    const file = { filename: 'rules.json', source_string: from };
    for (const [asker, body, status] of [
      [bob, { dataset: theirs, files: [file] }, 404],
      [ada, { dataset: theirs, files: [file] }, 404],
      [ada, { dataset: to, files: [{ ...file, filename: 'none.json' }] }, 404],
      [ada, { dataset: to, files: [] }, 400],
      [ada, { dataset: from, files: [file] }, 400],
    ] as const)
      expect([body, (await asker.ask('POST', '/server/copy-files-dataset', body)).status]).toEqual([body, status]);
    const copied = await ada.ask('POST', '/server/copy-files-dataset', { dataset: to, files: [file] });
    expect(copied).toMatchObject({ status: 200, body: { response: [expect.stringContaining('rules.json')], status: 200 } });
    expect(await teachTokens(ada)).toBe(paid);
    await ada.ask('DELETE', '/server/dataset', { dataset: from });
    const id = await idOf(ada, to);
    const [copy] = items(await ada.ask('GET', `/server/mine/datasets/${id}/files`));
    expect(copy).toMatchObject({ filename: 'rules.json', passages: 2, state: 'done' });
    await expect.poll(async () => items(await ada.ask('GET', `/server/mine/datasets/${id}/files/${copy!['id'] as number}/passages`)).length).toBe(2);
  });

  test('copies come all or none: there is room for all, or nothing is copied', { timeout: long }, async () => {
    const { all, ada, bob } = await twoPeopleOf(together());
    const [from, other, to] = [await newDataset(bob, 'from bob'), await newDataset(bob, 'from him too'), await newDataset(ada, 'to ada')];
    for (const dataset of [from, other])
      await bob.ask('PUT', `/server/mine/datasets/${await idOf(bob, dataset)}/grants`, { items: [{ user: ada.id, right: 'read' }] });
    for (const [dataset, filename, text] of [
      [from, 'one.json', hours],
      [from, 'two.json', `${hours} Once more.`],
      [other, 'one.json', 'Books are lent for four weeks.'],
    ])
      expect((await bob.ask('POST', '/server/train-with-array', { data: [text], dataset, filename })).status).toBe(200);
    const path = `/server/mine/datasets/${await idOf(ada, to)}/files`;
    const [one, two, otherOne] = [
      { filename: 'one.json', source_string: from },
      { filename: 'two.json', source_string: from },
      { filename: 'one.json', source_string: other },
    ];
    const copy = (...files: object[]) => ada.ask('POST', '/server/copy-files-dataset', { dataset: to, files });
    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { storageBytes: 150 });
    expect(await copy(one, two)).toMatchObject({ status: 413, body: { response: expect.stringMatching(/^file \(two\.json\): /) as string } });
    expect(items(await ada.ask('GET', path))).toEqual([]);
    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { storageBytes: null });
    expect(await copy(one, otherOne)).toMatchObject({ status: 400, body: { response: expect.stringMatching(/^files\[1\]\.filename /) as string } });
    expect(items(await ada.ask('GET', path))).toEqual([]);
    const lines = ['one.json', 'two.json'].map((name) => `${name} was copied from ${from}.`);
    expect(await copy(one, two, one)).toMatchObject({ status: 200, body: { response: lines } });
    expect(items(await ada.ask('GET', path))).toMatchObject([{ filename: 'one.json', state: 'done' }, { filename: 'two.json', state: 'done' }]); // prettier-ignore
  });
});

onBothDatabases('files in datasets', (database) => {
  const { place } = database;
  const together = visitedTogether(database, { convert: readText });

  test('are put in as a form or as bytes, read, changed, narrowed and deleted', { timeout: long }, async () => {
    const { all, ada, bob } = await twoPeopleOf(together());
    const { url } = all.server;
    const id = await idOf(ada, await newDataset(ada, 'the files'));
    const path = `/server/mine/datasets/${id}/files`;
    const made = await upload(url, ada, path, 'a <b>.txt', hours);
    expect(made).toMatchObject({ status: 202, body: { items: [{ filename: 'a <b>.txt', bytes: hours.length, jobId: expect.any(String) as string }] } });
    const one = `${path}/${items(made)[0]!['id'] as number}`;
    const raw = await ada.ask('POST', `${path}?filename=raw.md`, 'Books are lent for four weeks.', { headers: { 'content-type': 'text/markdown' } });
    expect(raw.status).toBe(202);
    for (const [query, body, status] of [
      ['', 'bytes', 400],
      ['?filename=..', 'bytes', 400],
      ['?filename=x.txt', '', 400],
      ['?filename=x.txt&colour=1', 'bytes', 400],
    ] as const)
      expect([query, (await ada.ask('POST', path + query, body, { headers: { 'content-type': 'application/octet-stream' } })).status]).toEqual([query, status]);
    await expect.poll(async () => (await ada.ask('GET', one)).body['state'], { timeout: 30_000 }).toBe('done');
    expect((await ada.ask('GET', one)).body).toMatchObject({ type: 'text/plain', pages: 1, passages: 1, stage: null, reason: null });

    const original = await fetch(`${url + one}/original`, { headers: { 'x-access-tokens': ada.key } });
    expect(await original.text()).toBe(hours);
    expect(original.headers.get('content-disposition')).toBe("attachment; filename*=UTF-8''a%20%3Cb%3E.txt");
    expect(original.headers.get('content-security-policy')).toContain('sandbox');
    const [passage] = items(await ada.ask('GET', `${one}/passages`));
    expect(passage).toEqual({ id: expect.any(Number) as number, page: 1, start: 0, end: hours.length, text: hours });
    const passagePath = `/server/mine/passages/${passage!['id'] as number}`;
    expect((await ada.ask('GET', passagePath)).body).toMatchObject({ datasetId: id, filename: 'a <b>.txt', text: hours });

    for (const [method, address] of [
      ['GET', path],
      ['GET', one],
      ['DELETE', one],
      ['GET', `${one}/original`],
      ['GET', `${one}/passages`],
      ['GET', `${one}/grants`],
      ['GET', passagePath],
    ] as const)
      expect([method, address, (await bob.ask(method, address)).status]).toEqual([method, address, 404]);
    await ada.ask('PUT', `/server/mine/datasets/${id}/grants`, { items: [{ user: bob.id, right: 'edit' }] });
    expect((await bob.ask('GET', passagePath)).status).toBe(200);
    for (const [user, right] of [
      [ada.email, 'read'],
      [ada.id, 'admin'],
    ] as const) {
      const alone = [{ user: ada.id, right }];
      expect((await ada.ask('PUT', `${one}/grants`, { items: [{ user, right }] })).body).toEqual({ items: alone });
      expect((await ada.ask('GET', `${one}/grants`)).body).toEqual({ items: alone });
      expect([(await bob.ask('GET', passagePath)).status, (await bob.ask('DELETE', one)).status]).toEqual([404, 404]);
      expect(items(await bob.ask('GET', path)).map(({ filename }) => filename)).toEqual(['raw.md']);
      expect((await ada.ask('PUT', `${one}/grants`, { items: [] })).body).toEqual({ items: [] });
      expect((await bob.ask('GET', passagePath)).status).toBe(200);
    }
    const both = [ada.id, bob.id].map((user) => ({ user, right: 'read' }));
    expect((await ada.ask('PUT', `${one}/grants`, { items: both })).body).toEqual({ items: both });
    expect((await bob.ask('GET', passagePath)).status).toBe(200);
    const { body: team } = await all.admin('POST', '/server/admin/teams', { name: 'nobody', plan: 'unlimited', members: [] });
    await ada.ask('PUT', `${one}/grants`, { items: [{ team: team['id'], right: 'read' }] });
    for (const address of [one, passagePath, `${one}/original`]) expect([address, (await bob.ask('GET', address)).status]).toEqual([address, 404]);
    expect(items(await bob.ask('GET', path)).map(({ filename }) => filename)).toEqual(['raw.md']);
    const sizes = async ({ ask }: Person) => {
      const listed = items(await ask('GET', '/server/mine/datasets')).find((dataset) => dataset['id'] === id);
      return [(await ask('GET', `/server/mine/datasets/${id}`)).body, listed!].map(({ files, passages }) => [files, passages]);
    };
    const counted = [await sizes(ada), await sizes(bob)];
    expect(counted).toEqual([Array.from({ length: 2 }, () => [2, 2]), Array.from({ length: 2 }, () => [1, 1])]);
    const { dataset } = (await ada.ask('GET', passagePath)).body;
    const own = await newDataset(bob, 'of bob');
    await upload(url, bob, '/server/train-with-file', 'a <b>.txt', 'A text of bob.', { dataset: own });
    for (const answer of [
      await upload(url, bob, path, 'a <b>.txt', 'Another text.'),
      await upload(url, bob, '/server/train-with-file', 'a <b>.txt', 'Another text.', { dataset: dataset as string }),
      await bob.ask('POST', '/server/train-with-array', { data: ['Another text.'], filename: 'a <b>.txt', dataset }),
      await bob.ask('POST', '/server/copy-files-dataset', { dataset, files: [{ filename: 'a <b>.txt', source_string: own }] }),
    ])
      expect([answer.status, JSON.stringify(answer.body)]).toEqual([403, expect.stringContaining('You may not change a <b>.txt.')]);
    expect((await ada.ask('GET', one)).body).toMatchObject({ state: 'done', bytes: hours.length, jobId: items(made)[0]!['jobId'] });
    // where all to whom the file was given are gone it stays closed, as its grants say
    expect((await all.admin('DELETE', `/server/admin/teams/${team['id'] as number}`)).status).toBe(200);
    const left = { items: [{ user: ada.id, right: 'admin' }] };
    expect((await ada.ask('GET', `${one}/grants`)).body).toEqual(left);
    expect((await ada.ask('PUT', `${one}/grants`, left)).body).toEqual(left);
    expect((await bob.ask('GET', one)).status).toBe(404);
    await ada.ask('PUT', `${one}/grants`, { items: [{ user: bob.id, right: 'read' }] });
    expect((await bob.ask('GET', one)).status).toBe(200);
    expect((await bob.ask('DELETE', one)).status).toBe(403);
    expect((await bob.ask('GET', `${one}/grants`)).status).toBe(403);

    expect(await ada.ask('DELETE', one)).toMatchObject({ status: 200, body: { filename: 'a <b>.txt' } });
    for (const address of [one, passagePath, `${one}/original`]) expect([address, (await ada.ask('GET', address)).status]).toEqual([address, 404]);
  });

  test('of the same name take the place of those before them when they are read, and not earlier', { timeout: long }, async () => {
    const { all, ada } = await twoPeopleOf(together());
    const id = await idOf(ada, await newDataset(ada, 'versions'));
    const path = `/server/mine/datasets/${id}/files`;
    const put = async (text: string) => items(await upload(all.server.url, ada, path, 'page.txt', text))[0]!;
    const { id: file } = await put(hours);
    const one = `${path}/${file as number}`;
    const state = async () => (await ada.ask('GET', one)).body['state'];
    const texts = async () => items(await ada.ask('GET', `${one}/passages`)).map(({ text }) => text);
    await expect.poll(state, { timeout: 30_000 }).toBe('done');
    expect((await put('A new text.'))['id']).toBe(file);
    await expect.poll(texts, { timeout: 30_000 }).toEqual(['A new text.']);
    await put('   '); // has no text
    await expect.poll(state, { timeout: 30_000 }).toBe('failed');
    expect((await ada.ask('GET', one)).body).toMatchObject({ reason: 'page.txt has no text.', stage: 'chunk', passages: 1 });
    expect(await texts()).toEqual(['A new text.']);
    expect(items(await ada.ask('GET', path))).toHaveLength(1);
  });

  test('of the same name that come while one is read take its place, and whoever waits for that one is told so', { timeout: long }, async () => {
    const { all, ada } = await twoPeopleOf(together());
    const dataset = await newDataset(ada, 'replaced');
    const path = `/server/mine/datasets/${await idOf(ada, dataset)}/files`;
    const replaced = upload(all.server.url, ada, '/server/train-with-file', 'slow.txt', hours, { dataset });
    const states = async () => items(await ada.ask('GET', path)).map(({ stage }) => stage);
    await expect.poll(states, { timeout: 30_000 }).toEqual(['parse']);
    const [file] = items(await upload(all.server.url, ada, path, 'slow.txt', 'Another text.'));
    expect(await replaced).toMatchObject({
      status: 409,
      body: { response: 'The job was cancelled, the file was deleted, or another content took its place.' },
    });
    const { body } = await ada.ask('POST', `/server/mine/jobs/${file!['jobId'] as string}/cancel`);
    expect(body).toMatchObject({ id: file!['jobId'] });
    const told = async () => (await ada.ask('POST', '/server/train-with-file-status', { job_id: file!['jobId'] })).body['response'];
    await expect.poll(told, { timeout: 30_000 }).toMatchObject({ status: 'failed', message: 'The job was cancelled.' });
  });

  test('in another language than the model reads have vectors in the answer, whichever way they come', { timeout: long }, async () => {
    const { all, ada } = await twoPeopleOf(together());
    const dataset = await newDataset(ada, 'german');
    const content = 'Die Bibliothek öffnet an jedem Werktag um neun Uhr morgens und schließt um fünf Uhr am Nachmittag, wenn niemand mehr liest.';
    const text = await ada.ask('POST', '/server/train', { content, force_dataset: dataset });
    const file = await upload(all.server.url, ada, '/server/train-with-file', 'zeiten.txt', content, { dataset });
    const array = await ada.ask('POST', '/server/train-with-array', { data: [content, hours], dataset });
    const sizes = [text.body['embedding'], (file.body['embedding'] as unknown[])[0], ...(array.body['embedding'] as unknown[][]).map(([one]) => one)];
    expect(sizes.map((vector) => (vector as number[]).length)).toEqual([512, 512, 512, 512]);
  });

  test('of the same name and content that come at the same time are read once, and each of them is answered', { timeout: long }, async () => {
    const { all, ada } = await twoPeopleOf(together());
    const dataset = await newDataset(ada, 'simultaneous');
    const path = `/server/mine/datasets/${await idOf(ada, dataset)}/files`;
    const put = async () => items(await upload(all.server.url, ada, path, 'slow.txt', hours))[0]!['jobId'] as string;
    const job = await put();
    expect(await put()).toBe(job);
    await ada.ask('POST', `/server/mine/jobs/${job}/cancel`);
    const again = await put();
    expect(again).not.toBe(job);
    await ada.ask('POST', `/server/mine/jobs/${again}/cancel`);

    for (const content of ['The heron eats fish.', 'The heron eats frogs.']) {
      const train = () => ada.ask('POST', '/server/train', { content, context: 'birds', force_dataset: dataset });
      const array = () => ada.ask('POST', '/server/train-with-array', { data: [content], dataset });
      const whole = () => upload(all.server.url, ada, '/server/train-with-file', 'birds.txt', content, { dataset });
      for (const ask of [train, array, whole])
        expect((await Promise.all([ask(), ask(), ask(), ask()])).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    }
    const listed = async () => items(await ada.ask('GET', path)).filter(({ filename }) => filename !== 'slow.txt');
    expect((await listed()).map(({ state }) => state)).toEqual(['done', 'done', 'done', 'done', 'done']);
  });

  test('come together, all or none, and what is wrong with one is said of that one', { timeout: long }, async () => {
    const { all, ada } = await twoPeople(await place(), { convert: readText, yaml: 'limits: { fileBytes: 2000 }\n' });
    const path = `/server/mine/datasets/${await idOf(ada, await newDataset(ada, 'together'))}/files`;
    const send = async (...files: (readonly [name: string, text: string])[]) => {
      const form = new FormData();
      for (const [name, text] of files) form.append('file', new Blob([text]), name);
      const answer = await fetch(all.server.url + path, { method: 'POST', body: form, headers: { 'x-access-tokens': ada.key } });
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
    };
    for (const [name, text, status, says] of [
      ['empty.txt', '', 422, 'file (empty.txt): The file is empty: it has no bytes.'],
      [`${'x'.repeat(300)}.txt`, 'text', 400, `file (${'x'.repeat(200)}): its name must have at most 255 characters.`],
    ] as const) {
      const { status: its, body } = await send(['good.txt', hours], [name, text]);
      expect([its, body['error']]).toEqual([status, says]);
    }
    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { storageBytes: 150 });
    const { status, body } = await send(['one.txt', hours], ['two.txt', `${hours} Once more.`]);
    expect([status, body['error']]).toEqual([413, expect.stringMatching(/^file \(two\.txt\): /)]);
    expect(items(await ada.ask('GET', path))).toEqual([]);
    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { storageBytes: null });
    expect(await send(['one.txt', hours], ['two.txt', `${hours} Once more.`])).toMatchObject({ status: 202, body: { items: [{}, {}] } });
    expect(items(await ada.ask('GET', path))).toHaveLength(2);
  });

  test('are put in by administrators for their owner, who pays for them and has the job', { timeout: long }, async () => {
    const { all, ada, bob } = await twoPeopleOf(together());
    const path = `/server/mine/datasets/${await idOf(ada, await newDataset(ada, 'for ada'))}/files`;
    const put = (who: Person['ask'], query: string) => who('POST', `${path}?filename=x.txt${query}`, hours, { headers: { 'content-type': 'text/plain' } });
    expect((await put(all.admin, '')).status).toBe(404);
    expect((await put(bob.ask, `&owner=${ada.id}`)).status).toBe(404);
    const [file] = items(await put(all.admin, `&owner=${ada.id}`));
    await expect.poll(async () => (await ada.ask('GET', `${path}/${file!['id'] as number}`)).body['state'], { timeout: 30_000 }).toBe('done');
    expect(items(await ada.ask('GET', '/server/mine/jobs'))).toMatchObject([{ id: file!['jobId'] }]);
    expect(await teachTokens(ada, 0)).toBeGreaterThan(0);
    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { status: 'suspended' });
    expect(await put(all.admin, `&owner=${ada.id}`)).toMatchObject({ status: 409, body: { error: 'owner is suspended, or not there.' } });
  });

  test('have passages that a persona cites: who may use it reads them, as far as whoever wrote it may', { timeout: long }, async () => {
    const { all, ada, bob } = await twoPeopleOf(together());
    const id = await idOf(ada, await newDataset(ada, 'cited'));
    const path = `/server/mine/datasets/${id}/files`;
    const [file] = items(await upload(all.server.url, ada, path, 'page.txt', hours));
    const one = `${path}/${file!['id'] as number}`;
    await expect.poll(async () => (await ada.ask('GET', one)).body['state'], { timeout: 30_000 }).toBe('done');
    const [passage] = items(await ada.ask('GET', `${one}/passages`));
    const address = `/server/mine/passages/${passage!['id'] as number}`;
    const persona = { name: 'Librarian', prompt: `You know ${address}, and nothing else.` };
    const reads = async () => (await bob.ask('GET', address)).status;

    const own = (await bob.ask('POST', '/server/mine/personas', persona)).body['id'] as number;
    expect(await reads()).toBe(404); // who may not read it gives it to nobody
    const its = `/server/mine/personas/${(await ada.ask('POST', '/server/mine/personas', persona)).body['id'] as number}`;
    expect(await reads()).toBe(404);
    await ada.ask('PUT', `${its}/grants`, { items: [{ user: bob.id, right: 'read' }] });
    expect(await reads()).toBe(200);
    expect((await bob.ask('GET', one)).status).toBe(404); // the passage, and not its file
    await ada.ask('PUT', `${its}/grants`, { items: [{ user: bob.id, right: 'edit' }] });
    await bob.ask('PUT', its, { ...persona, prompt: 'You know nothing.' });
    expect(await reads()).toBe(404);
    await bob.ask('PUT', its, persona); // an editor cites with an editor's rights
    expect(await reads()).toBe(404);
    await ada.ask('PUT', its, { ...persona, prompt: 'You know nothing.' });
    await ada.ask('PUT', its, persona);
    expect(await reads()).toBe(200);
    await ada.ask('DELETE', its);
    expect(await reads()).toBe(404);
    expect((await bob.ask('DELETE', `/server/mine/personas/${own}`)).status).toBe(200);
  });

  test('have jobs, which are listed, cancelled and tried again by who began them, and by nobody else', { timeout: long }, async () => {
    const { all, ada, bob } = await twoPeople(await place(), { convert: readText });
    const dataset = await newDataset(ada, 'the jobs');
    const path = `/server/mine/datasets/${await idOf(ada, dataset)}/files`;
    const [slow] = items(await upload(all.server.url, ada, path, 'slow.txt', hours));
    const job = `/server/mine/jobs/${slow!['jobId'] as string}`;
    await expect.poll(async () => (await ada.ask('GET', job)).body['stage'], { timeout: 30_000 }).toBe('parse');
    expect((await ada.ask('GET', job)).body).toEqual({
      id: slow!['jobId'],
      kind: 'ingestion',
      state: 'running',
      stage: 'parse',
      progress: 0.05,
      error: null,
      tries: 1,
      dataset,
      filename: 'slow.txt',
      addedAt: expect.any(String) as string,
      endedAt: null,
    });
    for (const [method, address] of [
      ['GET', job],
      ['POST', `${job}/cancel`],
      ['POST', `${job}/retry`],
    ] as const)
      // prettier-ignore
      expect([address, (await bob.ask(method, address)).status]).toEqual([address, 404]);
    expect(items(await bob.ask('GET', '/server/mine/jobs'))).toEqual([]);
    expect((await ada.ask('POST', `${job}/retry`)).status).toBe(409);
    expect((await ada.ask('POST', `${job}/cancel`)).status).toBe(200);
    await expect.poll(async () => (await ada.ask('GET', job)).body['state'], { timeout: 30_000 }).toBe('cancelled');
    expect((await ada.ask('POST', `${job}/cancel`)).status).toBe(409);
    await upload(all.server.url, ada, path, 'fast.txt', hours);
    await expect.poll(async () => items(await ada.ask('GET', '/server/mine/jobs?state=done')).length, { timeout: 30_000 }).toBe(1);
    expect(items(await ada.ask('GET', `/server/mine/jobs?state=cancelled&kind=ingestion&dataset=${encodeURIComponent(dataset)}`))).toHaveLength(1);
    const first = await ada.ask('GET', '/server/mine/jobs?limit=1');
    const next = await ada.ask('GET', `/server/mine/jobs?limit=1&cursor=${first.body['nextCursor'] as string}`);
    expect([...items(first), ...items(next)].map(({ filename }) => filename)).toEqual(['fast.txt', 'slow.txt']);
    expect(next.body['nextCursor']).toBeNull();
    expect((await ada.ask('GET', '/server/mine/jobs?cursor=nonsense')).status).toBe(400);
    expect((await ada.ask('POST', `${job}/retry`)).body).toMatchObject({ state: expect.stringMatching(/waiting|running/) as string });
    await expect.poll(async () => (await ada.ask('GET', job)).body['state'], { timeout: 30_000 }).toBe('running');
    expect((await all.admin('PATCH', `/server/admin/users/${ada.id}`, { status: 'suspended' })).status).toBe(200); // a suspended owner's stop
    await expect.poll(async () => (await all.admin('GET', `${job}?owner=${ada.id}`)).body['state'], { timeout: 30_000 }).toBe('failed');
    expect((await all.admin('GET', `${job}?owner=${ada.id}`)).body['error']).toMatch(/suspended/);
  });

  test('stop where the balance of training is spent, and go on from there', { timeout: long }, async () => {
    const { all, ada } = await twoPeople(await place(), { convert: readText });
    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { monthlyTrainTokens: 3000 });
    const path = `/server/mine/datasets/${await idOf(ada, await newDataset(ada, 'too much'))}/files`;
    const text = Array.from({ length: 400 }, (_, at) => `Sentence number ${at} says that the library has the book ${at * 7}.`).join(' ');
    const [file] = items(await upload(all.server.url, ada, path, 'long.txt', text));
    const job = `/server/mine/jobs/${file!['jobId'] as string}`;
    await expect.poll(async () => (await ada.ask('GET', job)).body['state'], { timeout: 60_000 }).toBe('failed');
    const failed = (await ada.ask('GET', job)).body;
    expect(failed).toMatchObject({ stage: 'embed', error: expect.stringMatching(/monthlyTrainTokens/) as string });
    const sync = await ada.ask('POST', '/server/train', { content: text, force_dataset: 'none' });
    expect(sync.status).toBe(429);
    const tooMuch = { content: `${text} And so on.`, force_dataset: await newDataset(ada, 'as text') };
    const waitedFor = await ada.ask('POST', '/server/train', tooMuch); // for the end of its job
    expect([waitedFor.status, waitedFor.body['message']]).toEqual([429, expect.stringMatching(/monthlyTrainTokens/)]);
    expect(Number(sync.headers.get('retry-after')) - Number(waitedFor.headers.get('retry-after'))).toBeLessThan(120); // both until the end of the month
    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { monthlyTrainTokens: null });
    expect((await ada.ask('POST', `${job}/retry`)).status).toBe(200);
    const seen: number[] = [];
    await expect
      .poll(
        async () => {
          const { body } = await ada.ask('GET', job);
          seen.push(body['progress'] as number);
          return body['state'];
        },
        { timeout: 120_000, interval: 50 },
      )
      .toBe('done');
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    expect(seen[0]).toBeGreaterThanOrEqual(failed['progress'] as number);
  });

  test('is refused with 429 where nothing is left to train with, before anything is kept and any model is asked', { timeout: long }, async () => {
    const { all, ada } = await twoPeopleOf(together());
    const dataset = await newDataset(ada, 'nothing left');
    const path = `/server/mine/datasets/${await idOf(ada, dataset)}/files`;
    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { monthlyTrainTokens: 0 });
    const refusals = [
      await upload(all.server.url, ada, path, 'hours.txt', hours),
      await upload(all.server.url, ada, '/server/train-with-file', 'hours.txt', hours, { dataset }),
      await upload(all.server.url, ada, '/server/train-with-file', 'hours.txt', hours, { dataset, async: 'true' }),
      await ada.ask('POST', '/server/train-with-array', { data: [hours], dataset }),
      await ada.ask('POST', '/server/train', { content: hours, force_dataset: dataset }),
      await ada.ask('POST', '/server/train', { content: hours, force_dataset: dataset, summarize: true }),
      await ada.ask('POST', '/server/train', { content: hours, summarize: true }),
    ];
    const spent = expect.stringMatching(/allows no training tokens \(monthlyTrainTokens\)/) as string;
    for (const { status, body, headers } of refusals) expect([status, body['message'], headers.get('x-should-retry')]).toEqual([429, spent, 'false']);
    expect(items(await ada.ask('GET', path))).toEqual([]);
    expect(items(await ada.ask('GET', '/server/mine/jobs'))).toEqual([]);
    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { monthlyTrainTokens: null });
    expect((await upload(all.server.url, ada, path, 'hours.txt', hours)).status).toBe(202);
    await expect.poll(async () => items(await ada.ask('GET', '/server/mine/jobs?state=done')).length).toBe(1);
    const rows = items(await ada.ask('GET', '/server/mine/logs'));
    expect(rows.filter(({ balance }) => balance === 'inference')).toEqual([]);
  });

  test('that takes longer than a request may goes on, and the answer names its job', { timeout: long }, async () => {
    const { all, ada } = await twoPeople(await place(), { yaml: 'limits: { requestSeconds: 1 }\n', convert: readText });
    const dataset = await newDataset(ada, 'takes long');
    const { status, body } = await upload(all.server.url, ada, '/server/train-with-file', 'slow.txt', hours, { dataset });
    expect([status, body['embedding']]).toEqual([202, '']);
    const job = `/server/mine/jobs/${body['job_id'] as string}`;
    expect((await ada.ask('GET', job)).body['state']).toMatch(/waiting|running/);
    await ada.ask('POST', `${job}/cancel`);
  });
});
