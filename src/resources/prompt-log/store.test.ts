import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { sealer } from '#kit/crypto/sealing';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { openPromptStore } from './store.ts';

const migrations = [new URL('.', import.meta.url), new URL('../usage/', import.meta.url)];

onBothDatabases('the log of prompts', ({ open }) => {
  test('is sealed for its user and request, and goes after the days that the settings say', async () => {
    const store = await open({ migrations });
    const clock = testClock();
    const prompts = openPromptStore({
      store,
      seal: sealer(randomBytes(32)),
      clock,
      bodies: () => 'own',
      days: () => 30,
      log: (problem) => expect.fail(problem),
    });
    onTestFinished(() => prompts.close());
    const answer = { text: 'It is a secret answer.', length: 22 };
    for (const requestId of ['req_young', 'req_old', 'req_swapped'])
      prompts.record({ requestId, userId: 1, address: '', prompt: 'A secret question', promptLength: 17, answer });
    clock.advance(1000);
    const texts = async () => Promise.all(['req_young', 'req_old', 'req_swapped'].map((requestId) => prompts.find({ requestId, userId: 1 }, false)));
    const kept = { prompt: 'A secret question', answer: answer.text };
    expect(await texts()).toEqual([kept, kept, kept]);
    const { rows } = await sql<{ sealed: Buffer }>`select sealed from prompt_log`.execute(store.db);
    for (const { sealed } of rows) expect(sealed.toString('latin1')).not.toContain('secret');

    await sql`update prompt_log set sealed = (select sealed from prompt_log where request_id = 'req_young') where request_id = 'req_swapped'`.execute(store.db);
    await sql`update prompt_log set at = now() - interval '30 days' + interval '1 minute' where request_id = 'req_young'`.execute(store.db);
    await sql`update prompt_log set at = now() - interval '30 days' - interval '1 minute' where request_id = 'req_old'`.execute(store.db);
    clock.advance(60_000);
    await expect.poll(texts, { timeout: 5000 }).toEqual([kept, undefined, { prompt: '', answer: '' }]);
  });
});
