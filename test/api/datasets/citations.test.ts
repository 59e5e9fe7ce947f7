/* What answers cite, from the front door: files as they are now, in the datasets that the asker may read now. */
import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { anyPlace } from '../../support/databases.ts';
import { listening } from '../../support/fakes/listening.ts';
import { proves } from '../../support/proves.ts';
import { plainText } from './following.ts';
import { newDataset, twoPeople, type Answer, type Person } from './people.ts';

const long = 180_000;

const begun = async () => twoPeople(await anyPlace(), { convert: plainText });
const train = ({ ask }: Person, dataset: string, context: string, content: string) =>
  ask('POST', '/server/train', { content, context, force_dataset: dataset });
const question = ({ ask }: Person, message: string, dataset: unknown, more: object = {}) => ask('POST', '/server/query', { message, dataset, ...more });
const cited = ({ body }: Answer) => (body['citations'] as { filename: string; text: string }[]).map(({ text }) => text).join('\n');
const warnings = ({ headers }: Answer) => headers.get('x-dragoman-warnings') ?? '';

test('a file that is deleted is cited no more', { timeout: long }, async () => {
  const { ada } = await begun();
  const dataset = await newDataset(ada, 'rules of the house');
  await train(ada, dataset, 'Opening hours', 'The library opens at nine in the morning.');
  await train(ada, dataset, 'Loans', 'Books are lent for four weeks.');
  const ask = () => question(ada, 'When does the library open?', dataset);
  expect(cited(await ask())).toContain('opens at nine');
  const { body } = await ada.ask('POST', '/server/get-all-files-ingested');
  const files = (body['response'] as { filename: string }[]).map(({ filename }) => filename);
  const hours = files.find((name) => name.includes('Opening'))!;
  expect((await ada.ask('POST', '/server/delete-filename-from-dataset', { dataset, filename: hours })).status).toBe(200);
  const after = await ask();
  expect([after.status, cited(after).includes('opens at nine'), JSON.stringify(after.body).includes('opens at nine')]).toEqual([200, false, false]);
});

test('texts and questions that are not English are searched by their words, and the answer says so', { timeout: long }, async () => {
  const { ada } = await begun();
  const dataset = await newDataset(ada, 'Regeln');
  const german = 'Die Bibliothek öffnet an jedem Werktag um neun Uhr morgens und schließt am Abend um fünf, außer an den Feiertagen des Landes.';
  await train(ada, dataset, 'Öffnungszeiten', german);
  const inGerman = await question(ada, 'Um wie viel Uhr öffnet die Bibliothek an einem Werktag, und wann schließt sie wieder?', dataset);
  expect([inGerman.status, cited(inGerman), inGerman.body['vectors_down']]).toEqual([200, expect.stringContaining('öffnet an jedem Werktag'), false]);
  expect(warnings(inGerman)).toMatch(/not English were searched by their words alone/);
  const { body } = await ada.ask('POST', '/server/get-dataset-results', { dataset, message: 'Wann öffnet die Bibliothek am Morgen eines Werktages?' });
  expect(body['response']).toMatchObject([{ ranks: { lexical: 1, vector: null } }]);

  const english = await newDataset(ada, 'english rules');
  await train(ada, english, 'Hours', 'The library opens at nine in the morning and closes at five in the evening.');
  expect(warnings(await question(ada, 'When does the library open in the morning?', english))).toBe('');
  const foreign = await question(ada, 'Um wie viel Uhr öffnet die Bibliothek an einem Werktag, und wann schließt sie wieder?', english);
  expect(warnings(foreign)).toMatch(/reads English only: the question was searched by its words alone/);
});

test('where the model of the vectors fails, passages are found by their words, and the answer says so, whole and streamed', { timeout: long }, async () => {
  let isDown = false;
  const provider = createServer((request, response) => {
    const data = [{ object: 'embedding', index: 0, embedding: [1, 0] }];
    const answer = () => response.writeHead(isDown ? 500 : 200, { 'content-type': 'application/json' }).end(JSON.stringify({ object: 'list', data }));
    request.resume().on('end', answer);
  });
  const fake = `{ dialect: openai-chat, baseUrl: "${await listening(provider)}/v1", apiKeys: [k] }`;
  const models = '{ meaning: { targets: [{ provider: fake }], kind: embedding } }';
  const yaml = `providers: { fake: ${fake} }\nmodels: ${models}\ndefaults: { embedding: meaning, chat: built-in }\n`;
  const { ada } = await twoPeople(await anyPlace(), { yaml, convert: plainText });
  const dataset = await newDataset(ada, 'rules of the house');
  await train(ada, dataset, 'Opening hours', 'The library opens at nine in the morning.');
  const told = async () => {
    const { body } = await question(ada, 'When does the library open?', dataset);
    const streamed = await question(ada, 'When does the library open?', dataset, { streaming: true });
    const { text = JSON.stringify(streamed.body) } = streamed.body as { readonly text?: string };
    const last = JSON.parse(text.split('@|@sep@|@').at(-1)!) as Answer['body'];
    return [body, last].map(({ embedding_down, vectors_down, citations }) => [embedding_down, vectors_down, (citations as unknown[]).length]);
  };
  expect(await told()).toEqual(Array.from({ length: 2 }, () => [false, false, 1]));
  isDown = true;
  expect(await told()).toEqual(Array.from({ length: 2 }, () => [true, true, 1]));
});

test('an English table is searched by its meaning too', { timeout: long }, async () => {
  const { ada } = await begun();
  const dataset = await newDataset(ada, 'price list');
  await train(ada, dataset, 'Furniture', '| Product | Price |\n| --- | --- |\n| Garden chair | 49 |\n| Wooden table | 199 |');
  const { body } = await ada.ask('POST', '/server/get-dataset-results', { dataset, message: 'How much does a seat for outdoors cost?' });
  expect(body['response']).toMatchObject([{ text: expect.stringContaining('Garden chair'), ranks: { lexical: null, vector: 1 } }]);
  const answer = await question(ada, 'What does a | garden | chair cost?', dataset);
  expect([cited(answer).includes('Garden chair'), warnings(answer)]).toEqual([true, '']);
});

test('a file of no bytes is refused, naming the field', { timeout: long }, async () => {
  const { all, ada } = await begun();
  const dataset = await newDataset(ada, 'empty files');
  for (const [path, fields] of [
    ['/server/file', {}],
    ['/server/query_with_file', { message: 'x' }],
    ['/server/train-with-file', { dataset }],
    ['/server/execute-plugin-with-file', { plugin_name: 'summarise', plugin_values: '{}' }],
  ] as const) {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    form.append('file', new Blob([]), 'nothing.txt');
    const answer = await fetch(all.server.url + path, { method: 'POST', body: form, headers: { 'x-access-tokens': ada.key } });
    const { error } = (await answer.json()) as { error: string };
    expect([path, answer.status, error]).toEqual([path, 422, expect.stringMatching(/^file.*nothing\.txt.*empty/)]);
  }
});

test(proves('T-08', 'no question finds a passage of another’s dataset, though it has the same name and the very words'), { timeout: long }, async () => {
  const { ada, bob } = await begun();
  const canaries = (whose: string) => Array.from({ length: 40 }, (_, at) => `The canary ${whose}-${at} sings in the harbour of number ${at}.`);
  const names: string[] = [];
  for (const [who, whose] of [
    [ada, 'ada'],
    [bob, 'bob'],
  ] as const) {
    const dataset = await newDataset(who, 'canaries');
    names.push(dataset);
    const answer = await who.ask('POST', '/server/train-with-array', { data: canaries(whose), dataset, filename: 'canaries.json' });
    expect(answer.status).toBe(200);
  }
  const [adas, bobs] = names as [string, string];
  expect((await question(bob, 'canary ada-7', adas)).status).toBe(404);
  expect((await question(bob, 'canary ada-7', [bobs, adas])).status).toBe(404);
  expect((await bob.ask('POST', '/server/get-dataset-results', { dataset: adas, message: 'canary' })).status).toBe(404);
  for (const at of [0, 7, 23, 39]) {
    for (const dataset of ['all', bobs]) {
      const answer = await question(bob, `The canary ada-${at} sings in the harbour of number ${at}.`, dataset);
      expect([at, answer.status, cited(answer).includes(`bob-${at}`), cited(answer).includes('ada-')]).toEqual([at, 200, true, false]);
    }
    const { body } = await bob.ask('POST', '/server/get-dataset-results', { dataset: bobs, message: `canary ada-${at}`, limit: 100, explain: true });
    expect(JSON.stringify(body)).not.toContain('ada-');
  }
});

test(proves('T-04', 'a dataset that is shared to be read is asked, and not changed, and ends with the share'), { timeout: long }, async () => {
  const { ada, bob } = await begun();
  const dataset = await newDataset(ada, 'shared rules');
  await train(ada, dataset, 'Hours', 'The library opens at nine in the morning.');
  const grant = (path: string, more: object = {}) => ada.ask('POST', `/user/${path}`, { dataset, email: bob.email, ...more });
  expect((await grant('assign-dataset', { permissions: 'read' })).status).toBe(200);
  const ask = (name: unknown = dataset) => question(bob, 'When does the library open?', name);
  expect(cited(await ask())).toContain('opens at nine');
  for (const [method, path, body] of [
    ['POST', '/server/train', { content: 'Another text.', force_dataset: dataset }],
    ['POST', '/server/train-with-array', { data: ['Another text.'], dataset }],
    ['POST', '/server/delete-filename-from-dataset', { dataset, filename: 'Hours' }],
    ['POST', '/user/assign-dataset', { dataset, email: bob.email }],
    ['POST', '/user/update-permission-dataset', { dataset, email: bob.email, permissions: 'admin' }],
    ['DELETE', '/server/dataset', { dataset }],
  ] as const)
    expect([path, (await bob.ask(method, path, body)).status]).toEqual([path, expect.toBeOneOf([403, 404])]);
  expect(cited(await ask())).toContain('opens at nine');
  expect((await grant('deassign-dataset')).status).toBe(200);
  expect((await ask()).status).toBe(404); // at once
  expect(cited(await ask('all'))).toBe('');
});

test(proves('T-03', 'files are copied where the caller may read the one dataset and change the other, all of them or none'), { timeout: long }, async () => {
  const { ada, bob } = await begun();
  const [adas, bobs, shared] = [await newDataset(ada, 'of ada'), await newDataset(bob, 'of bob'), await newDataset(ada, 'to be read')];
  for (const [who, dataset] of [
    [ada, adas],
    [bob, bobs],
    [ada, shared],
  ] as const)
    await who.ask('POST', '/server/train-with-array', { data: [`A text of ${dataset}.`], dataset, filename: `${dataset}.json` });
  await ada.ask('POST', '/user/assign-dataset', { dataset: shared, email: bob.email, permissions: 'read' });
  const file = (dataset: string) => ({ filename: `${dataset}.json`, source_string: dataset });
  const copy = ({ ask }: Person, dataset: string, ...from: readonly string[]) => ask('POST', '/server/copy-files-dataset', { dataset, files: from.map(file) });
  const filesOf = async ({ ask }: Person, dataset: string) =>
    ((await ask('POST', '/server/get-all-files-ingested')).body['response'] as { filename: string; dataset: string }[]).flatMap((one) =>
      one.dataset === dataset ? [one.filename] : [],
    );
  expect((await copy(bob, bobs, adas)).status).toBe(404);
  expect((await copy(bob, adas, bobs)).status).toBe(404);
  expect((await copy(bob, shared, bobs)).status).toBe(403);
  expect((await copy(bob, bobs, shared, adas)).status).toBe(404); // one of two may not be read: none comes
  expect([await filesOf(bob, bobs), await filesOf(ada, shared), await filesOf(ada, adas)]).toEqual([[`${bobs}.json`], [`${shared}.json`], [`${adas}.json`]]);
  expect((await copy(bob, bobs, shared)).status).toBe(200);
  await expect.poll(async () => (await filesOf(bob, bobs)).toSorted(), { timeout: 30_000 }).toEqual([`${bobs}.json`, `${shared}.json`].toSorted());
  expect((await bob.ask('POST', '/user/deassign-dataset', { dataset: adas })).status).toBe(404);
  expect((await bob.ask('POST', '/user/deassign-dataset', { dataset: shared, email: ada.email })).status).toBeGreaterThanOrEqual(400);
});
