/* A dataset with files gets another embedding model: its vectors are made while those of the first are searched. */
import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import type { ConvertDocument } from '#core/document';
import { onBothDatabases, type Place } from '../../support/databases.ts';
import { idOf, newDataset, twoPeople, type Person } from './people.ts';
import { listening } from '../../support/fakes/listening.ts';

const long = 180_000;
const fruits = ['apple', 'pear', 'plum'] as const;
/** How near each fruit is to the question, by model: they rank in opposite orders. */
const nearness: Readonly<Record<string, readonly number[]>> = { 'meaning-a': [0.9, 0.6, 0.3], 'meaning-b': [0.3, 0.6, 0.9] };

const readText: ConvertDocument = async (content) => ({ type: 'text/plain', text: await content.text(), places: [] });

/** A provider of two embedding models. `meaning-b` waits for the gate, and may be broken. */
async function provider() {
  const state = { gate: Promise.resolve(), isBroken: false, asked: 0 };
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (piece: Buffer) => (text += piece.toString()));
    const answer = async () => {
      const { model, input } = JSON.parse(text) as { model: string; input: string | string[] };
      const texts = [input].flat();
      const isDocument = texts.some((one) => fruits.some((fruit) => one.includes(fruit)));
      if (model === 'meaning-b' && isDocument) {
        state.asked++;
        await state.gate;
        if (state.isBroken) response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"It is broken."}}');
        if (state.isBroken) return;
      }
      const data = texts.map((one, index) => {
        const near = nearness[model]![fruits.findIndex((fruit) => one.includes(fruit))] ?? 1;
        const vector = [near, Math.sqrt(1 - near * near), ...(model === 'meaning-b' ? [0] : [])];
        return { object: 'embedding', index, embedding: vector };
      });
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ object: 'list', model, data, usage: { prompt_tokens: 3, total_tokens: 3 } }));
    };
    request.on('end', () => void answer());
  });
  const url = `${await listening(server)}/v1`;
  const target = 'targets: [{ provider: fake }], kind: embedding';
  const yaml = `providers:\n  fake: { dialect: openai-chat, baseUrl: "${url}", apiKeys: [k] }\nmodels:\n  meaning-a: { ${target} }\n  meaning-b: { ${target} }\ndefaults: { embedding: meaning-a }\n`;
  /** Closes the gate. @returns what opens it */
  const close = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    state.gate = promise;
    return resolve;
  };
  return { state, yaml, close };
}

async function filled(place: Place) {
  const scripted = await provider();
  const people = await twoPeople(place, { yaml: scripted.yaml, convert: readText });
  const { ada } = people;
  const name = await newDataset(ada, 'fruits');
  const root = `/server/mine/datasets/${await idOf(ada, name)}`;
  const put = async (filename: string, text: string) => {
    const { body } = await ada.ask('POST', `${root}/files?filename=${filename}`, text, { headers: { 'content-type': 'text/plain' } });
    const [file] = body['items'] as { id: number }[];
    return async () => (await ada.ask('GET', `${root}/files/${file!.id}`)).body['state'];
  };
  for (const fruit of fruits) await expect.poll(await put(`${fruit}.txt`, `This is about an ${fruit}.`), { timeout: 30_000 }).toBe('done');
  const embedding = async () => (await ada.ask('GET', root)).body['embedding'] as { model: string; dimensions: number; building: number | null };
  const change = (model: string, by: Person = ada) => by.ask('PUT', root, { name: 'fruits', embedding: model });
  /** The fruits by the vectors of whichever model is searched. */
  const order = async () => {
    const { status, body } = await ada.ask('POST', '/server/get-dataset-results', { dataset: name, message: 'What is sweet?' });
    const found = (body['response'] as { filename: string; ranks: { vector: number } }[]).toSorted((a, b) => a.ranks.vector - b.ranks.vector);
    return [status, String(body['vectors_down'] === true), ...found.map(({ filename }) => filename.replace('.txt', ''))].join(' ');
  };
  const jobs = async () => (await ada.ask('GET', '/server/mine/jobs?kind=second-index')).body['items'] as { id: string; state: string; error: string }[];
  return { ...people, ...scripted, name, root, put, embedding, change, order, jobs };
}

const byA = '200 false apple pear plum';
const byB = '200 false plum pear apple';

onBothDatabases('another embedding model', ({ place }) => {
  test('is built beside the first and takes its place at once: no question fails or sees both', { timeout: long }, async () => {
    const { ada, bob, state, close, root, put, embedding, change, order, jobs, name } = await filled(await place());
    expect(await order()).toBe(byA);
    expect(await embedding()).toEqual({ model: 'meaning-a', dimensions: 2, building: null });
    expect((await change('meaning-b', bob)).status).toBe(404);
    expect((await change('nobody')).status).toBe(400);
    const open = close();
    expect((await change('meaning-b')).body).toMatchObject({ embedding: { model: 'meaning-a', dimensions: 2, building: 0 } });
    await expect.poll(() => state.asked, { timeout: 30_000 }).toBeGreaterThan(0);
    expect(await order()).toBe(byA);
    // a file that comes meanwhile has the vectors of both in the end
    await expect.poll(await put('late.txt', 'This came late.'), { timeout: 30_000 }).toBe('done');

    const seen: string[] = [];
    let isOver = false;
    const asking = Array.from({ length: 4 }, async () => {
      while (!isOver) seen.push((await order()).replace(/ late/, ''));
    });
    await expect.poll(() => seen.length, { timeout: 30_000 }).toBeGreaterThan(4);
    open();
    await expect.poll(async () => (await embedding()).model, { timeout: 60_000 }).toBe('meaning-b');
    const since = seen.length;
    await expect.poll(() => seen.length, { timeout: 30_000 }).toBeGreaterThan(since + 8);
    isOver = true;
    await Promise.all(asking);
    expect(new Set(seen)).toEqual(new Set([byA, byB]));
    expect(await order()).toContain('plum pear apple');
    expect(await embedding()).toEqual({ model: 'meaning-b', dimensions: 3, building: null });
    expect(await jobs()).toMatchObject([{ kind: 'second-index', state: 'done', progress: 1, dataset: name, filename: null }]);
    const { body } = await ada.ask('POST', '/server/get-dataset-results', { dataset: name, message: 'late' });
    expect((body['response'] as { filename: string; ranks: object }[]).find(({ filename }) => filename === 'late.txt')!.ranks).toMatchObject({
      vector: expect.any(Number) as number,
    });
    await expect.poll(await put('new.txt', 'This is about another apple.'), { timeout: 30_000 }).toBe('done');
    expect((await ada.ask('GET', root)).body).toMatchObject({ files: 5 });
  });

  test('that is cancelled, fails or is not wanted any more leaves the first as it is, and may be tried again', { timeout: long }, async () => {
    const { ada, state, close, embedding, change, order, jobs } = await filled(await place());
    const first = { model: 'meaning-a', dimensions: 2, building: null };
    const cancelled = close();
    await change('meaning-b');
    await expect.poll(() => state.asked, { timeout: 30_000 }).toBeGreaterThan(0);
    const [job] = await jobs();
    expect((await ada.ask('POST', `/server/mine/jobs/${job!.id}/cancel`)).status).toBe(200);
    cancelled();
    await expect.poll(async () => (await jobs())[0]!.state, { timeout: 30_000 }).toBe('cancelled');
    expect([await embedding(), await order()]).toEqual([first, byA]);

    const unwanted = close();
    await change('meaning-b');
    expect(await embedding()).toMatchObject({ building: 0 });
    expect((await change('meaning-a')).body).toMatchObject({ embedding: first });
    unwanted();
    await expect.poll(async () => (await jobs()).map(({ state: its }) => its), { timeout: 30_000 }).toEqual(['cancelled', 'cancelled']);

    state.isBroken = true;
    await change('meaning-b');
    await expect.poll(async () => (await jobs())[0]!.state, { timeout: 60_000 }).toBe('failed');
    const [failed] = await jobs();
    expect(failed!.error).not.toBe('');
    expect([await embedding(), await order()]).toEqual([first, byA]);
    state.isBroken = false;
    expect((await ada.ask('POST', `/server/mine/jobs/${failed!.id}/retry`)).status).toBe(200);
    await expect.poll(async () => (await embedding()).model, { timeout: 60_000 }).toBe('meaning-b');
    expect(await order()).toBe(byB);
  });
});
