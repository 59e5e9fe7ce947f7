/* The passages that a question finds, asked for over HTTP. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { grantTo } from '#store/grants';
import { openStore } from '#store/open';
import { openPassageIndex } from '../../../src/resources/datasets/search/index.ts';
import { filed, migrations, newDataset, newFile } from '../../support/datasets.ts';
import { onBothDatabases, type Place } from '../../support/databases.ts';
import { startTestServer } from '../../support/server.ts';
import { person, visited, type Answer, type Person } from './visitors.ts';
import { listening } from '../../support/fakes/listening.ts';

const long = 180_000;
const path = '/server/get-dataset-results';
const texts = ['The holiday allowance is thirty days a year.', 'Salaries are paid at the end of each month.', 'The server room is kept cold.'];

type Results = { readonly text: string; readonly chunk_id: number; readonly ranks: object; readonly cut?: string }[];
const results = ({ body }: Answer) => body['response'] as Results;

interface Filled {
  readonly place: Place;
  readonly yaml: string;
  readonly name: string;
}

/** A place whose first user owns a dataset of three files with vectors of the built-in model. */
async function filled(place: Place, yaml = ''): Promise<Filled> {
  const server = await startTestServer({ ...place, yaml });
  const answer = await server.ask('/server/chatcompat/v1/embeddings', { model: 'built-in-embedding', input: texts });
  const vectors = await answer.text();
  expect([answer.status, vectors]).toEqual([200, expect.stringContaining('embedding')]);
  const { data } = JSON.parse(vectors) as { data: { embedding: number[] }[] };
  await server.close();
  const store = await openStore({ ...place, folder: join(place.folder, 'data'), migrations, clock: systemClock });
  const index = openPassageIndex(store);
  const { id, name } = await newDataset(store, 1, { model: 'built-in-embedding', dimensions: 512 });
  for (const [at, text] of texts.entries())
    await filed(store, index, {
      datasetId: id,
      fileId: await newFile(store, id, `${at}.md`),
      text,
      model: 'built-in-embedding',
      embed: () => Float32Array.from(data[at]!.embedding),
    });
  await store.close();
  return { place, yaml, name };
}

const reopened = ({ place, yaml }: Filled) => visited(place, { yaml });

/** Lets a person read the dataset. */
async function allow({ place, name }: Filled, { id }: Person): Promise<void> {
  const store = await openStore({ ...place, folder: join(place.folder, 'data'), migrations, clock: systemClock });
  const found = await store.db
    .$extendTables<{ datasets: { id: number; full_name: string } }>()
    .selectFrom('datasets')
    .select('id')
    .where('full_name', '=', name)
    .executeTakeFirstOrThrow();
  await grantTo(store, 'dataset', found.id, id, 'read');
  await store.close();
}

/** A reranking service that a test plays. */
async function service(answer: (body: Record<string, unknown>, response: ServerResponse, request: IncomingMessage) => void): Promise<string> {
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (piece: Buffer) => (text += piece.toString()));
    request.on('end', () => answer(JSON.parse(text) as Record<string, unknown>, response, request));
  });
  return `${await listening(server)}/v1/rerank`;
}

onBothDatabases('the results of a dataset', ({ place }) => {
  test('are passages with the rank of each channel, found by words and by meaning; not by GET, for they are paid', { timeout: long }, async () => {
    const made = await filled(await place());
    const all = await reopened(made);
    const found = await all.admin('POST', path, { dataset: made.name, message: 'How much vacation is there?', limit: 2 });
    expect(found.status).toBe(200);
    expect(found.body).toMatchObject({ count: 2, status: 200 });
    expect(results(found)[0]).toEqual({
      index: 1,
      dataset: made.name,
      filename: '0.md',
      page: null,
      chunk_id: expect.any(Number) as number,
      score: expect.any(Number) as number,
      text: texts[0],
      ranks: { lexical: null, vector: 1, fused: 1, rerank: null },
    });
    const explained = await all.admin('POST', path, { dataset: made.name, message: 'holiday allowance', limit: 1, explain: true });
    expect((await all.admin('GET', `${path}?dataset=${made.name}&message=holiday`)).status).toBe(405);
    expect(results(explained).map(({ cut }) => cut)).toEqual([undefined, 'limit', 'limit']);
    expect(results(explained)[0]!.ranks).toEqual({ lexical: 1, vector: 1, fused: 1, rerank: null });
    // as a form, with several datasets
    const form = await all.admin('POST', path, `dataset=${made.name}&dataset=all&message=cold`, {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    expect(results(form)[0]).toMatchObject({ text: texts[2] });
    const both = await all.admin('POST', path, { dataset: ` ${made.name}, ${made.name},none`, message: 'cold', limit: null, explain: null });
    expect(results(both)[0]).toMatchObject({ text: texts[2] });
    // the question's vector is booked
    const usage = async () => JSON.stringify((await all.admin('GET', '/server/mine/logs')).body);
    await expect.poll(usage, { timeout: 30_000 }).toContain('built-in-embedding');
  });

  test('are those of a dataset with commas in its name, alone and among others', { timeout: long }, async () => {
    const { ask } = await person(await visited(await place()));
    const made = async (name: string) => (await ask('POST', '/user/add-dataset', { dataset: name })).body['dataset'] as string;
    const [name, other] = [await made('red, green,blue'), await made('other')];
    await ask('POST', '/server/train', { content: 'The heron sits on the pier.', force_dataset: name });
    for (const dataset of [name, `${other}, ${name}`, `${name},${other},none`, [name]]) {
      const { status, body } = await ask('POST', path, { dataset, message: 'heron' });
      expect([status, body['response']]).toEqual([200, [expect.objectContaining({ dataset: name })]]);
    }
  });

  test('are refused for what is wrong, and for datasets of others as for those that nobody has', { timeout: long }, async () => {
    const made = await filled(await place());
    const all = await reopened(made);
    const eve = await person(all);
    const refused = async (body: unknown, ask = all.admin) => {
      const { status, body: answer } = await ask('POST', path, body);
      return [status, answer['response']];
    };
    const asked = { dataset: made.name, message: 'holiday' };
    for (const limit of [0, 101, -1, 1.5, 'many']) expect(await refused({ ...asked, limit })).toEqual([400, expect.stringContaining('limit')]);
    expect(await refused({ dataset: made.name })).toEqual([400, expect.stringContaining('message')]);
    expect(await refused({ message: 'holiday' })).toEqual([400, expect.stringContaining('dataset')]);
    expect(await refused({ ...asked, message: '' })).toEqual([400, expect.stringContaining('message')]);
    for (const dataset of [[], '', ',', null]) expect(await refused({ ...asked, dataset })).toEqual([400, expect.stringContaining('dataset')]);
    expect(await refused({ ...asked, dataset: `${made.name},gone` })).toEqual([404, 'There is no dataset gone.']);
    expect(await refused({ ...asked, dataset: Array.from({ length: 1001 }, (_, at) => `d${at}`) })).toEqual([400, expect.stringContaining('dataset')]);
    expect(await refused({ ...asked, explain: 'perhaps' })).toEqual([400, expect.stringContaining('explain')]);
    expect(await refused(asked, eve.ask)).toEqual([404, `There is no dataset ${made.name}.`]);
    expect(await refused({ ...asked, dataset: 'nobody-has-it' }, eve.ask)).toEqual([404, 'There is no dataset nobody-has-it.']);
    expect(await refused({ ...asked, dataset: "x' or '1'='1" }, eve.ask)).toEqual([404, "There is no dataset x' or '1'='1."]);
    expect((await eve.ask('POST', path, { ...asked, dataset: 'all' })).body).toEqual({ response: [], count: 0, status: 200 });
    expect((await all.nobody('POST', path, asked)).status).toBe(401);
    const narrow = await person(all, {}, { scopes: ['passthrough'] });
    expect((await narrow.ask('POST', path, asked)).status).toBe(403);
    // 1 MB of question
    const large = await all.admin('POST', path, { ...asked, message: `holiday ${'x1 '.repeat(350_000)}` });
    expect([large.status, results(large)[0]?.text]).toEqual([200, texts[0]]);
    await all.server.close();
    await allow(made, eve);
    const again = await reopened(made);
    expect(results(await again.as(eve.key)('POST', path, asked))[0]).toMatchObject({ text: texts[0] });
  });

  test('are found by words alone, and say so, where the model of the vectors is gone', { timeout: long }, async () => {
    const made = await filled(await place());
    const all = await visited(made.place, { yaml: 'models: { built-in: false }\n' });
    const found = await all.admin('POST', path, { dataset: made.name, message: 'holiday allowance' });
    expect(found.body).toMatchObject({ vectors_down: true, count: 1, warnings: [expect.stringContaining('built-in-embedding')] });
    expect(results(found)[0]).toMatchObject({ text: texts[0], ranks: { lexical: 1, vector: null } });
  });

  test('stand in the order of the reranking service, and in their own where it is slow or broken', { timeout: long }, async () => {
    const asked: Record<string, unknown>[] = [];
    let mode: 'well' | 'slow' | 'broken' = 'well';
    const url = await service((body, response, { headers }) => {
      asked.push({ ...body, key: headers.authorization });
      const documents = body['documents'] as string[];
      if (mode === 'slow') return;
      response.writeHead(mode === 'broken' ? 500 : 200, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify({
          results: [
            { index: documents.indexOf(texts[2]!), relevance_score: 0.75 },
            { index: 99, relevance_score: 1 },
          ],
        }),
      );
    });
    const made = await filled(await place(), `rerank: { url: "${url}", apiKey: secret, model: ranker-1 }\n`);
    const all = await reopened(made);
    const ask = () => all.admin('POST', path, { dataset: made.name, message: 'holiday', explain: true });
    const found = results(await ask());
    expect(found.map(({ text, cut }) => [text, cut])).toEqual([
      [texts[2], undefined],
      [texts[0], 'rerank'],
      [texts[1], 'rerank'],
    ]);
    expect(found[0]).toMatchObject({ score: 0.75, ranks: { rerank: 1 } });
    expect(asked).toEqual([{ model: 'ranker-1', query: 'holiday', documents: expect.arrayContaining([...texts]) as unknown, top_n: 3, key: 'Bearer secret' }]);
    for (const next of ['broken', 'slow'] as const) {
      mode = next;
      const since = performance.now();
      const without = await ask();
      expect(performance.now() - since).toBeLessThan(10_000);
      expect(results(without)[0]).toMatchObject({ text: texts[0], ranks: { fused: 1, rerank: null } });
      expect(without.body['warnings']).toEqual(['The reranking service did not answer: the passages stand in the order of the search.']);
    }
  });
});
