/* From an empty folder to cited answers, over HTTP alone, with the real converters and models. */
import { expect, test } from 'vitest';
import { embedded } from '../../support/databases.ts';
import { documentBytes } from '../../support/documents.ts';
import { fakeSite, following, html } from './following.ts';
import { idOf, newDataset, twoPeople, type Person } from './people.ts';

interface Citation {
  readonly filename: string;
  readonly page: number | null;
  readonly quote: string;
}

const mail = [
  'From: Adele <adele@example.org>',
  'Subject: Berth fees',
  'MIME-Version: 1.0',
  'Content-Type: text/plain; charset=utf-8',
  '',
  'From August on the fee for a berth is forty-one crowns a night.',
].join('\r\n');

test('documents are put in, seen to become searchable, asked with their pages, shared, taken back and deleted', { timeout: 300_000 }, async () => {
  const web = await fakeSite();
  web.pages.set('/ferry', html('The timetable of the ferry to Ostra'));
  const { all, ada, bob } = await twoPeople(await embedded.place(), { outside: web.outside });
  const [dataset, other] = [await newDataset(ada, 'harbour'), await newDataset(ada, 'letters')];
  const put = async (into: string, filename: string, content: Uint8Array<ArrayBuffer> | string) => {
    const form = new FormData();
    form.append('file', new Blob([content]), filename);
    const path = `${all.server.url}/server/mine/datasets/${await idOf(ada, into)}/files`;
    const answer = await fetch(path, { method: 'POST', body: form, headers: { 'x-access-tokens': ada.key } });
    expect([filename, answer.status]).toEqual([filename, 202]);
    const { items } = (await answer.json()) as { items: { jobId: string }[] };
    return items[0]!.jobId;
  };
  const jobs = [
    await put(dataset, 'report.pdf', await documentBytes('report.pdf')),
    await put(dataset, 'sheets.xlsx', await documentBytes('sheets.xlsx')),
    await put(dataset, 'scan.png', await documentBytes('scan.png')),
    await put(dataset, 'fees.eml', mail),
    await put(other, 'report.docx', await documentBytes('report.docx')),
  ];

  // the progress of each only grows, up to the end
  const progress = new Map(jobs.map((id) => [id, [0]]));
  const look = async () => {
    for (const id of jobs) {
      const { body } = await ada.ask('GET', `/server/mine/jobs/${id}`);
      progress.get(id)!.push(body['progress'] as number);
      if (body['state'] !== 'done') return body['state'] === 'failed' ? body : 'under way';
    }
    return 'done';
  };
  await expect.poll(look, { timeout: 200_000, interval: 100 }).toBe('done');
  for (const seen of progress.values()) expect(seen).toEqual(seen.toSorted((one, next) => one - next));
  const page = await following(ada, await idOf(ada, dataset)).add({ type: 'page', url: `${web.host}/ferry` });
  expect(page).toMatchObject({ state: 'done', changed: 1 });
  await following(ada, await idOf(ada, dataset)).files();

  const ask = async (who: Person, message: unknown, name = dataset) => {
    const { status, body } = await who.ask('POST', '/server/query', { message, dataset: name });
    return { status, cited: ((body['citations'] ?? []) as Citation[]).map(({ filename, page: at, quote }) => ({ filename, page: at, quote })) };
  };
  const questions: [question: string, filename: unknown, place: object, quote: RegExp][] = [
    ['When was the lighthouse built, and by whom?', 'report.pdf', { page: 2 }, /1871/],
    ['Under which flag is the Kestrel?', 'sheets.xlsx', {}, /Flag[^]*Kestrel/],
    ['Which bell is out of order until May?', 'scan.png', {}, /bell of Lindwick/],
    ['What is the fee for a berth from August on?', 'fees.eml', {}, /forty-one crowns/],
    ['What is explained about the timetable of the ferry to Ostra?', expect.stringMatching(/ferry.*html$/), {}, /timetable of the ferry/],
  ];
  for (const [question, filename, place, quote] of questions)
    expect([question, (await ask(ada, question)).cited[0]]).toMatchObject([question, { filename, quote: expect.stringMatching(quote) as string, ...place }]);
  expect((await ask(ada, 'Which berths are for pilots?', other)).cited[0]).toMatchObject({ filename: 'report.docx' });

  // another user may ask, and change nothing, until it is taken back
  const lighthouse = questions[0]![0];
  expect((await ask(bob, lighthouse)).status).toBe(404);
  const grant = (path: string, more: object = {}) => ada.ask('POST', `/user/${path}`, { dataset, email: bob.email, ...more });
  await grant('assign-dataset', { permissions: 'read' });
  expect((await ask(bob, lighthouse)).cited[0]).toMatchObject({ filename: 'report.pdf', page: 2 });
  expect((await bob.ask('POST', '/server/delete-filename-from-dataset', { dataset, filename: 'report.pdf' })).status).toBe(403);
  await grant('deassign-dataset');
  expect((await ask(bob, lighthouse)).status).toBe(404);

  // a file is deleted while an answer that cites it streams: the next turn cites it no more
  const stream = await fetch(`${all.server.url}/server/query_stream`, {
    method: 'POST',
    headers: { 'x-access-tokens': ada.key, 'content-type': 'application/json' },
    body: JSON.stringify({ message: lighthouse, dataset }),
  });
  const reader = stream.body!.getReader();
  const begun = await reader.read();
  expect((await ada.ask('POST', '/server/delete-filename-from-dataset', { dataset, filename: 'report.pdf' })).status).toBe(200);
  let said = '';
  for (let piece = begun; !piece.done; piece = await reader.read()) said += Buffer.from(piece.value).toString();
  expect(said).toContain('report.pdf');
  const { message } = JSON.parse(said.split('@|@sep@|@').at(-1)!) as { message: string };
  const turns = [{ user: 'me', message: lighthouse }, { user: 'gpt', message }, { user: 'me', message: lighthouse }]; // prettier-ignore
  const next = await ask(ada, turns);
  expect([next.status, next.cited.filter(({ filename }) => filename === 'report.pdf')]).toEqual([200, []]);
});
