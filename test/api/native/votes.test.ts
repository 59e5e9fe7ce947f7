/* Votes against answers: who may vote, and who sees what. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { onBothDatabases } from '../../support/databases.ts';
import { proves } from '../../support/proves.ts';
import { person, visited } from './visitors.ts';

const long = 120_000;
const votes = '/server/admin/votes';

onBothDatabases('votes', ({ place }) => {
  test(
    proves('server.vote-down', 'POST /server/vote-down keeps an answer with what was asked; administrators see it, auditors without its texts'),
    { timeout: long },
    async () => {
      const all = await visited(await place());
      const [ada, bob, aud] = [await person(all), await person(all), await person(all, { role: 'auditor' })];
      const answers = [];
      for (const word of ['heron', 'stork']) answers.push((await ada.ask('POST', '/server/query', { message: `Say exactly: ${word}` })).body['uuid']);
      expect((await all.admin('GET', votes)).body).toEqual({ items: [], nextCursor: null });
      const [first, second] = answers;
      for (const uuid of [first, String(first).toUpperCase(), second])
        expect(await ada.ask('POST', '/server/vote-down', { uuid })).toMatchObject({ status: 200, body: { response: 'OK', status: 200 } });
      for (const [who, uuid] of [
        [bob, first],
        [ada, '00000000-0000-4000-8000-000000000000'],
      ] as const)
        expect((await who.ask('POST', '/server/vote-down', { uuid })).status).toBe(404);

      const { body } = await all.admin('GET', votes);
      const vote = (uuid: unknown, word: string) => ({
        id: expect.any(Number) as number,
        at: expect.stringMatching(/Z$/) as string,
        userId: ada.id,
        uuid,
        requestId: expect.stringMatching(/^req_/) as string,
        model: 'built-in',
        message: `Say exactly: ${word}`,
        answer: word,
        passages: [],
      });
      expect(body).toEqual({ items: [vote(second, 'stork'), vote(first, 'heron')], nextCursor: null });
      const page = (await all.admin('GET', `${votes}?limit=1`)).body as { items: { uuid: string }[]; nextCursor: string };
      expect(page.items.map(({ uuid }) => uuid)).toEqual([second]);
      const rest = (await all.admin('GET', `${votes}?limit=1&cursor=${page.nextCursor}`)).body as { items: { uuid: string }[]; nextCursor: null };
      expect([rest.items.map(({ uuid }) => uuid), rest.nextCursor]).toEqual([[first], null]);
      expect((await all.admin('GET', `${votes}?userId=${bob.id}`)).body['items']).toEqual([]);
      expect((await all.admin('GET', `${votes}?from=2090-01-01T00:00:00Z`)).body['items']).toEqual([]);
      expect((await all.admin('GET', `${votes}?userId=${ada.id}&to=2090-01-01`)).body['items']).toHaveLength(2);
      expect((await all.admin('GET', `${votes}?from=yesterday`)).body['error']).toMatch(/^from must be/);
      expect((await all.admin('GET', `${votes}?cursor=x`)).status).toBe(400);

      const seen = (await aud.ask('GET', votes)).body as { items: { uuid: string }[] };
      expect(seen.items).toMatchObject([{ uuid: second, message: null, answer: null, passages: [] }, { uuid: first }]);
      expect(JSON.stringify(seen)).not.toMatch(/heron|stork/);
      expect((await ada.ask('GET', votes)).status).toBe(404);
      const { items } = (await all.admin('GET', '/server/admin/audit?action=votes.read')).body as { items: unknown[] };
      expect(items.length).toBeGreaterThan(0);
    },
  );

  test('the bench asks once more what was voted against, and tells which passages are still found', { timeout: long }, async () => {
    const all = await visited(await place());
    const { dataset } = (await all.admin('POST', '/user/add-dataset', { dataset: 'birds' })).body;
    const content = 'The heron nests in the reeds of the northern marsh.';
    expect((await all.admin('POST', '/server/train', { content, force_dataset: dataset })).status).toBe(200);
    for (const message of ['Where does the heron nest?', 'Say exactly: stork']) {
      const { uuid } = (await all.admin('POST', '/server/query', { message, dataset: message.startsWith('Where') ? dataset : 'none' })).body;
      expect((await all.admin('POST', '/server/vote-down', { uuid })).status).toBe(200);
    }
    const replay = async () => {
      const bench = ['--conditions=dragoman-source', 'bench/retrieval.ts', '--votes', '--url', all.server.url];
      return (await promisify(execFile)(process.execPath, bench, { env: { ...process.env, DRAGOMAN_KEY: all.server.key } })).stdout;
    };
    expect(await replay()).toMatch(/: 1 of 1 passages found again, among 1\n1 of 1 questions asked again: 1 of 1 passages found again\n$/);
    await all.admin('POST', '/user/delete-dataset', { dataset });
    expect(await replay()).toMatch(/404.*\n0 of 1 questions asked again/);
  });

  test('with `bodies: none` a vote is kept without its texts', { timeout: long }, async () => {
    const all = await visited(await place(), { yaml: 'bodies: none' });
    const ada = await person(all);
    const { uuid } = (await ada.ask('POST', '/server/query', { message: 'Say exactly: heron' })).body;
    expect((await ada.ask('POST', '/server/vote-down', { uuid })).status).toBe(200);
    expect((await all.admin('GET', votes)).body['items']).toMatchObject([{ uuid, message: null, answer: null, passages: [] }]);
  });

  test('what is no uuid is refused with 400 naming the field, and a read of it is 405', { timeout: long }, async () => {
    const all = await visited(await place());
    for (const body of [{}, { uuid: 'x' }, { uuid: 7 }, { uuid: `${'0'.repeat(35)}'` }])
      expect((await all.admin('POST', '/server/vote-down', body)).body['error']).toMatch(/^uuid /);
    expect((await all.admin('GET', '/server/vote-down?uuid=x')).status).toBe(405);
  });
});
