/* What a share of a dataset lets another user do, and for how long; and that no search finds what was not shared. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { ConvertDocument } from '#core/document';
import { newDataset } from '../api/datasets/people.ts';
import { person, visitorsOf, type Person } from '../api/native/visitors.ts';
import { embedded } from '../support/databases.ts';
import { proves } from '../support/proves.ts';
import { startTestServer } from '../support/server.ts';

const readText: ConvertDocument = async (content) => ({ type: 'text/plain', text: await content.text(), places: [] });
const server = await startTestServer({ convert: readText });
afterAll(() => server.close());
const all = visitorsOf(server);
const long = 120_000;

const train = (who: Person, dataset: string, texts: readonly string[], filename = 'facts.txt') =>
  who.ask('POST', '/server/train-with-array', { data: texts, dataset, filename });
const share = (owner: Person, dataset: string, email: string, permissions: string) =>
  owner.ask('POST', '/user/assign-dataset', { dataset, email, permissions });
const found = async (who: Person, dataset: string | readonly string[], message: string) => {
  const { status, body } = await who.ask('POST', '/server/get-dataset-results', { dataset, message, limit: 25 });
  return { status, text: JSON.stringify(body) };
};
const copy = (who: Person, dataset: string, ...files: readonly (readonly [source: string, filename: string])[]) =>
  who.ask('POST', '/server/copy-files-dataset', { dataset, files: files.map(([source, filename]) => ({ source_string: source, filename })) });
const stateOf = async (who: Person, dataset: string) => (await who.ask('POST', '/server/get-dataset-info', { dataset })).body['response'];

test(proves('T-03', 'files are copied where both sides allow it, all of them or none'), { timeout: long }, async () => {
  const [ada, bob] = [await person(all), await person(all)];
  const [hers, his] = [await newDataset(ada, 'hers alone'), await newDataset(bob, 'his own')];
  const third = await newDataset(bob, 'his third');
  await train(ada, hers, ['The heron is hers.'], 'heron.txt');
  await train(bob, his, ['The stork is his.'], 'stork.txt');
  const both = async () => [await stateOf(ada, hers), await stateOf(bob, his), await stateOf(bob, third)];
  const before = await both();
  for (const answer of [
    await copy(bob, his, [hers, 'heron.txt']),
    await copy(bob, hers, [his, 'stork.txt']),
    await copy(bob, third, [his, 'stork.txt'], [hers, 'heron.txt']),
    await copy(ada, his, [hers, 'heron.txt']),
    await bob.ask('POST', '/user/deassign-dataset', { dataset: hers, email: ada.email }),
    await bob.ask('POST', '/user/update-permission-dataset', { dataset: hers, email: bob.email, permissions: 'admin' }),
    await bob.ask('POST', '/server/delete-filename-from-dataset', { dataset: hers, filename: 'heron.txt' }),
  ])
    expect(answer.status).toBe(404);
  expect(await both()).toEqual(before);

  await share(ada, hers, bob.email, 'read');
  expect((await copy(bob, hers, [his, 'stork.txt'])).status).toBe(403); // it may be read, and not written
  expect((await bob.ask('POST', '/user/update-permission-dataset', { dataset: hers, email: bob.email, permissions: 'admin' })).status).toBe(403);
  expect((await copy(bob, his, [hers, 'heron.txt'], [hers, 'nothing.txt'])).status).toBe(404);
  expect(await both()).toEqual(before);
  expect((await copy(bob, his, [hers, 'heron.txt'])).status).toBe(200);
  expect((await found(bob, his, 'heron')).text).toContain('The heron is hers.');
});

test(proves('T-04', 'a dataset that is shared to be read is read and nothing else, and no more once it is taken back'), { timeout: long }, async () => {
  const [ada, bob] = [await person(all), await person(all)];
  const dataset = await newDataset(ada, 'to read');
  await train(ada, dataset, ['The heron eats forty-two fish.']);
  await share(ada, dataset, bob.email, 'read');
  const { body: agent } = await bob.ask('POST', '/server/mine/agents', {
    name: 'Reader',
    mode: 'single',
    instructions: 'Answer.',
    model: 'built-in',
    tools: [{ type: 'dataset', dataset }],
  });
  const ask = () => bob.ask('POST', '/server/query', { message: 'How many fish does the heron eat?', dataset, model: 'built-in' });
  expect((await found(bob, dataset, 'heron fish')).text).toContain('forty-two');
  expect((await ask()).status).toBe(200);
  for (const [path, body] of [
    ['/server/train', { content: 'A line.', force_dataset: dataset }],
    ['/server/train-with-array', { data: ['A line.'], dataset }],
    ['/server/delete-filename-from-dataset', { dataset, filename: 'facts.txt' }],
    ['/user/delete-dataset', { dataset }],
    ['/user/assign-dataset', { dataset, email: 'admin@localhost', permissions: 'read' }],
    ['/user/update-permission-dataset', { dataset, email: bob.email, permissions: 'edit' }],
  ] as const)
    expect([path, (await bob.ask('POST', path, body)).status]).toEqual([path, 403]);

  await ada.ask('POST', '/user/deassign-dataset', { dataset, email: bob.email });
  const takenBack = performance.now();
  await expect.poll(async () => (await ask()).status, { timeout: 30_000 }).toBe(404);
  expect((await found(bob, dataset, 'heron fish')).status).toBe(404);
  expect(performance.now() - takenBack).toBeLessThan(20_000); // a second, on a machine with nothing else to do
  const run = await bob.ask('POST', '/server/execute-agent', { agent_id: agent['id'], message: 'How many fish?', streaming: false });
  expect(JSON.stringify(run.body)).not.toContain('forty-two');
});

test(proves('T-08', 'nobody finds what is in another’s dataset, though it has the same name and is asked for word by word'), { timeout: 120_000 }, async () => {
  const people = [await person(all), await person(all)];
  const canaries = people.map(({ id }) => Array.from({ length: 200 }, (_, at) => `canary${id}x${at} stands on the shore of lake ${at}`));
  const datasets = await Promise.all(people.map((who) => newDataset(who, 'of one name')));
  await Promise.all(people.map((who, at) => train(who, datasets[at]!, canaries[at]!)));
  for (const [at, who] of people.entries()) {
    const foreign = `canary${people[1 - at]!.id}x`;
    for (const number of [0, 7, 42, 100, 199]) {
      const own = await found(who, datasets[at]!, canaries[1 - at]![number]!);
      expect([own.status, own.text.includes('"passages"') || own.text.length > 100]).toEqual([200, true]);
      expect(own.text.replaceAll(canaries[1 - at]![number]!, '')).not.toContain(foreign);
      expect((await found(who, datasets[1 - at]!, 'canary')).status).toBe(404);
      expect((await found(who, [datasets[at]!, datasets[1 - at]!], 'canary')).status).not.toBe(200);
      const answer = await who.ask('POST', '/server/query', { message: 'Which lake?', dataset: datasets[1 - at]!, model: 'built-in' });
      expect([answer.status, JSON.stringify(answer.body).includes(foreign)]).toEqual([404, false]);
    }
  }
});

test(proves('I-22', 'names of datasets and files and ids of files that look like paths are names, and reach no file'), { timeout: 120_000 }, async () => {
  const where = await embedded.place();
  const own = await startTestServer({ ...where, convert: readText });
  try {
    const visitors = visitorsOf(own);
    const ada = await person(visitors);
    const dataset = await newDataset(ada, 'papers');
    const { body: info } = await ada.ask('GET', '/server/mine/datasets');
    const id = (info['items'] as { id: number }[])[0]!.id;
    const before = (await readdir(where.folder)).toSorted();
    const odd = [
      '../../x',
      '..\\..\\x',
      '/etc/passwd',
      '%2e%2e%2fx',
      '..%252f..%252fx',
      '....//x',
      'a/../../b',
      'C:\\x',
      '\\\\host\\x',
      'x/../../../tmp/x',
      '-rf',
      '~/x',
      '$HOME',
      'file:///etc/passwd',
    ];
    for (const name of odd) {
      for (const [path, body] of [
        ['/user/add-dataset', { dataset: name }],
        ['/server/train', { content: 'A line.', force_dataset: name }],
        ['/server/train-with-array', { data: ['A line.'], dataset, filename: name }],
        ['/server/get-dataset-info', { dataset: name }],
        ['/server/get-dataset-results', { dataset: name, message: 'x' }],
        ['/server/delete-filename-from-dataset', { dataset, filename: name }],
        ['/server/train-with-file-status', { job_id: name }],
        ['/server/query', { message: 'x', dataset: name, model: 'built-in' }],
      ] as const)
        expect([path, name, (await ada.ask('POST', path, body)).status]).toEqual([
          path,
          name,
          expect.toSatisfy((status: number) => [200, 400, 404].includes(status)),
        ]);
      for (const path of [
        `/server/mine/datasets/${id}/files/${encodeURIComponent(name)}`,
        `/server/mine/datasets/${encodeURIComponent(name)}`,
        `/server/mine/passages/${encodeURIComponent(name)}`,
      ])
        expect([path, (await ada.ask('GET', path)).status]).toEqual([path, 404]);
      const form = new FormData();
      form.set('file', new Blob(['A line about herons.']), name);
      const put = await fetch(`${own.url}/server/mine/datasets/${id}/files`, { method: 'POST', headers: { 'x-access-tokens': ada.key }, body: form });
      expect([name, put.status]).toEqual([name, expect.toSatisfy((status: number) => status < 300 || status === 400)]);
    }
    const inData = await readdir(join(where.folder, 'data'), { recursive: true });
    expect(inData.filter((name) => /passwd|^x$|\/x$|HOME/.test(name))).toEqual([]);
    expect((await readdir(where.folder)).toSorted()).toEqual(before);
  } finally {
    await own.close();
  }
});
