import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Caller } from '#core/context';
import { Fault } from '#core/fault';
import { systemClock as clock } from '#kit/async/clock';
import { sealer } from '#kit/crypto/sealing';
import { folderBlobs, type Blobs } from '#store/blobs';
import { grantTo } from '#store/grants';
import { jobs, type Jobs } from '#store/jobs';
import type { Store } from '#store/open';
import { openUploads, type UploadFolder } from '#store/uploads';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { workOnIngestion, type IngestingDeps } from './ingesting.ts';
import { openIngestion, type Incoming } from './ingestion.ts';
import { openRemoval } from './removal.ts';
import { chunked, openEmbeddingCache, openPassageIndex } from './search/index.ts';
import { openSources } from './sources/store.ts';
import { openDatasets } from './store.ts';

const folder = (path: string) => new URL(path, import.meta.url);
const text = Array.from({ length: 90 }, (_, at) => `# Part ${at}\n\n${`The text of part ${at} says what there is. `.repeat(40)}`).join('\n\n');

/** What a worker does, in the order in which it does it the first time. */
const steps = ['convert', 'chunked', 'cache.find', 'embed', 'cache.keep', 'index.prepare', 'index.add', 'index.flip', 'index.remove'] as const;

onBothDatabases('ingestion', ({ shared }) => {
  const store = shared({ migrations: ['../users/', '../teams/', './', './search/'].map(folder) });
  let home: string;
  let blobs: Blobs;
  let uploads: UploadFolder;
  let caller: Caller;
  let made = 0;
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'dragoman-ingestion-'));
    blobs = await folderBlobs(join(home, 'blobs'), clock);
    uploads = await openUploads(join(home, 'uploads'), clock);
    const { rows } = await sql<{ id: number }>`insert into users (email, plan) values ('a@example.org', 'p') returning id`.execute(store().db);
    caller = { userId: rows[0]!.id, email: 'a@example.org', role: 'user', plan: 'p', teamIds: [], keyId: 1, keyName: 'k' };
  });
  afterAll(() => rm(home, { recursive: true, force: true }));

  /** @param at called before and after each step of the worker */
  function worker(at: (step: string) => Promise<void>, more: Partial<IngestingDeps> = {}) {
    const mine = jobs({ store: { ...store() }, clock }); // a store of its own, as another process has
    const index = openPassageIndex(store());
    const cache = openEmbeddingCache(store());
    const told =
      <Given extends readonly unknown[], Result>(step: string, run: (...given: Given) => Promise<Result>) =>
      async (...given: Given) => {
        await at(`before ${step}`);
        const result = await run(...given);
        await at(`after ${step}`);
        return result;
      };
    const deps: IngestingDeps = {
      store: store(),
      jobs: mine,
      blobs,
      uploads,
      convert: told('convert', async (content) => ({ type: 'text/markdown', text: await content.text(), places: [] })),
      chunked: told('chunked', chunked),
      index: {
        ...index,
        prepare: told('index.prepare', index.prepare),
        add: told('index.add', index.add),
        flip: told('index.flip', index.flip),
        remove: told('index.remove', index.remove),
      },
      cache: { find: told('cache.find', cache.find), keep: told('cache.keep', cache.keep) },
      embed: told('embed', async ({ texts }) => texts.map((one, place) => Float32Array.of(one.length, place, 1, made))),
      reads: () => true,
      callerOf: async () => caller,
      watch: () => () => {},
      now: () => clock.now(),
      sleep: (milliseconds, signal) => clock.sleep(milliseconds, signal),
      ...more,
    };
    workOnIngestion(deps);
    const stop = () => mine.close();
    onTestFinished(stop);
    return stop;
  }

  function ingestionBy(its: Jobs) {
    const removal = openRemoval({ store: store(), jobs: its, datasets: openDatasets(store()) });
    return openIngestion({ store: store(), jobs: its, clock, blobs, fileBytes: () => 1e7, affords: async () => {}, removal });
  }

  async function put(content: string, source: Incoming['source'] = { form: 'file' }) {
    const ingestion = ingestionBy(jobs({ store: store(), clock }));
    const dataset = await openDatasets(store()).add(caller.userId, { name: `dataset ${++made}`, classification: 'Unclassified', isTabular: false, model: 'm' });
    return { ingestion, dataset, ...(await ingestion.begin(caller, dataset, { filename: 'a.md', content: Buffer.from(content), source })) };
  }

  /** What is found of a file: each of its passages. */
  async function found({ db }: Store, fileId: number) {
    const { rows } = await sql<{ ordinal: number; editions: number; file: number }>`
      select ordinal, (select count(*)::int from editions where file_id = ${fileId}) as editions, dataset_files.passages as file from passages
      join editions on editions.id = edition_id join dataset_files on dataset_files.id = file_id and dataset_files.generation = editions.generation
      where file_id = ${fileId} order by ordinal`.execute(db);
    return rows;
  }

  test('that is killed at any step is done by the next worker, and has each passage once', { timeout: 240_000 }, async () => {
    for (const place of steps.flatMap((step) => [`before ${step}`, `after ${step}`])) {
      const { jobId, fileId, ingestion } = await put(`${text}\n\n${place}`);
      const reached = Promise.withResolvers<void>();
      const dead = Promise.withResolvers<never>();
      dead.promise.catch(() => {});
      // within the transaction of a step the embedded database would wait for the dead one
      const isInside = store().kind === 'embedded' && /index\.(add|flip)/.test(place);
      const end = worker(async (step) => {
        if (step !== place) return;
        reached.resolve();
        if (isInside) throw new Error('killed');
        await dead.promise;
      });
      await reached.promise;
      if (isInside) await end(); // it would begin again itself
      await sql`update job set lease_until = now() - interval '1 second', run_at = now(), holder = 'nobody' where id = ${jobId}`.execute(store().db);
      const endNext = worker(async () => {});
      await ingestion.ended(jobId);
      dead.reject(new Error('killed')); // what the dead one wrote before stays, and it writes nothing more
      await Promise.all([end(), endNext()]);
      const rows = await found(store(), fileId);
      expect([place, rows.length]).toEqual([place, rows[0]!.file]);
      expect(rows.length).toBeGreaterThan(64);
      expect(rows.map(({ ordinal }) => ordinal)).toEqual(rows.map((_, at) => at));
    }
  });

  test('tells why it failed, and goes on from what was embedded', { timeout: 120_000 }, async () => {
    const { jobId, fileId, ingestion } = await put(text.replaceAll('part', 'piece'));
    const asked: number[] = [];
    const owners = new Set<string | undefined>();
    let isSpent = true;
    worker(async () => {}, {
      async convert(content, { owner }) {
        owners.add(owner);
        return { type: 'text/markdown', text: await content.text(), places: [] };
      },
      embed: async ({ texts }) => {
        if (asked.length > 0 && isSpent) throw new Fault('quota-spent', 'The monthlyTrainTokens of user:1 are spent.');
        asked.push(texts.length);
        return texts.map((one) => Float32Array.of(one.length, 1, 2, 3));
      },
    });
    await expect(ingestion.ended(jobId)).rejects.toMatchObject({ code: 'quota-spent', message: expect.stringContaining('monthlyTrainTokens') as string });
    expect(await found(store(), fileId)).toEqual([]);
    isSpent = false;
    expect(await jobs({ store: store(), clock }).retry(jobId)).toBe(true);
    await ingestion.ended(jobId);
    const rows = await found(store(), fileId);
    expect(asked.reduce((sum, one) => sum + one, 0)).toBe(rows.length);
    expect(asked[0]).toBe(64);
    expect([...owners]).toEqual([String(caller.userId)]); // users take turns
  });

  test('goes on for those alone who may still change the dataset, and read what they copy', { timeout: 120_000 }, async () => {
    const mine = jobs({ store: store(), clock });
    const ingestion = ingestionBy(mine);
    const { rows } = await sql<{ id: number }>`insert into users (email, plan) values ('b@example.org', 'p') returning id`.execute(store().db);
    const bob: Caller = { ...caller, userId: rows[0]!.id, email: 'b@example.org' };
    const { dataset, fileId, jobId } = await put('What is shared for a while.');
    const of = (name: string) => openDatasets(store()).add(bob.userId, { name, classification: 'Unclassified', isTabular: false, model: 'm' });
    const revoke = () => sql`delete from grants where user_id = ${bob.userId}`.execute(store().db);
    const stop = worker(async () => {});
    await ingestion.ended(jobId);
    await stop();

    const source = { id: fileId, filename: 'a.md', bytes: 27, blob: null };
    await grantTo(store(), 'dataset', dataset.id, bob.userId, 'read');
    const [copy] = await ingestion.copyAll(bob, await of('of bob'), [source]);
    await mine.cancel(copy!.jobId);
    await revoke();
    expect(await mine.retry(copy!.jobId)).toBe(true);
    const stopCopies = worker(async () => {}, { callerOf: async () => bob });
    await expect(ingestion.ended(copy!.jobId)).rejects.toMatchObject({ code: 'not-found' });
    expect(await found(store(), copy!.fileId)).toEqual([]);
    await stopCopies();

    await grantTo(store(), 'dataset', dataset.id, bob.userId, 'edit');
    const late = await ingestion.begin(bob, dataset, { filename: 'late.md', content: Buffer.from('Late.'), source: { form: 'file' } });
    await revoke();
    const stopLate = worker(async () => {}, { callerOf: async () => bob });
    await expect(ingestion.ended(late.jobId)).rejects.toMatchObject({ code: 'forbidden', message: 'You may not change late.md.' });
    await stopLate();

    await grantTo(store(), 'dataset', dataset.id, bob.userId, 'edit');
    const { jobId: cut, fileId: file } = await ingestion.begin(bob, dataset, { filename: 'x.md', content: Buffer.from('X.'), source: { form: 'file' } });
    worker(async (step) => void (step === 'after embed' && (await revoke())), { callerOf: async () => bob });
    await expect(ingestion.ended(cut)).rejects.toMatchObject({ code: 'forbidden' });
    expect(await found(store(), file)).toEqual([]);
  });

  test('of very many short texts lets others have the event loop between them', { timeout: 120_000 }, async () => {
    const texts = Array.from({ length: 1500 }, (_, at) => `Text ${at}.`);
    const { jobId, ingestion } = await put(JSON.stringify(texts), { form: 'array', title: 'Texts' });
    let cut = 0;
    let inOneTurn = 0;
    let most = 0;
    worker(async () => {}, {
      async chunked(document, options) {
        most = Math.max(most, ++inOneTurn);
        if (inOneTurn === 1) setImmediate(() => (inOneTurn = 0));
        cut++;
        const until = performance.now() + 1;
        while (performance.now() < until); // a millisecond of work
        return cut <= 3 ? chunked(document, options) : { chunks: [], language: 'en' };
      },
    });
    await ingestion.ended(jobId);
    expect(cut).toBe(texts.length);
    expect(most).toBeLessThan(20);
  });

  test('that cannot say how far it is ends its watch, and is tried again', { timeout: 120_000 }, async () => {
    const { jobId, ingestion } = await put('A text.');
    let [watches, ends, times] = [0, 0, 0];
    worker(async () => {}, {
      watch() {
        watches++;
        return () => void ends++;
      },
      now() {
        if (times++ === 0) throw new Error('no time');
        return clock.now();
      },
    });
    await ingestion.ended(jobId);
    expect([watches, ends]).toEqual([2, 2]);
  });

  test('waits for a limit per minute where it stands', { timeout: 120_000 }, async () => {
    const { jobId, ingestion } = await put(text.replaceAll('part', 'verse'));
    const slept: number[] = [];
    const done: string[] = [];
    let calls = 0;
    worker(async (step) => void done.push(step), {
      async sleep(milliseconds) {
        slept.push(milliseconds);
      },
      async embed({ texts }) {
        if (++calls === 2) throw new Fault('rate-limited', 'The tokensPerMinute of user:1 are used up.', { retryAfter: 42 });
        return texts.map((one) => Float32Array.of(one.length, 1, 2, 3));
      },
    });
    await ingestion.ended(jobId);
    expect(slept).toEqual([42_000]);
    expect(done.filter((step) => step === 'before convert')).toHaveLength(1);
  });

  test('of a file that was deleted meanwhile ends, and leaves nothing behind its removal', { timeout: 120_000 }, async () => {
    const { jobId, fileId, ingestion } = await put(text.replaceAll('part', 'chapter'));
    worker(async (step) => {
      if (step === 'after embed') await sql`update dataset_files set deleted_at = now() where id = ${fileId}`.execute(store().db);
    });
    await expect(ingestion.ended(jobId)).rejects.toMatchObject({ code: 'not-found' });
    const { rows } = await sql`select id from editions where file_id = ${fileId}`.execute(store().db);
    expect(rows).toEqual([]);
  });

  test.each(['is to be removed', 'is gone'])('takes nothing into a dataset that %s, and neither does a source', { timeout: 120_000 }, async (which) => {
    const { dataset, ingestion } = await put('A text.');
    await sql`update datasets set deleted_at = now() where id = ${dataset.id}`.execute(store().db);
    if (which === 'is gone') await sql`delete from datasets where id = ${dataset.id}`.execute(store().db);
    const late = { filename: 'late.md', content: Buffer.from('Late.'), source: { form: 'file' } } as const;
    await expect(ingestion.begin(caller, dataset, late)).rejects.toMatchObject({ code: 'not-found' });
    const sources = openSources({ store: store(), seal: sealer(randomBytes(32)) });
    const page = {
      datasetId: dataset.id,
      place: { type: 'page', url: 'https://a.example/' },
      keys: undefined,
      everyHours: null,
      userId: caller.userId,
      keyId: 1,
    } as const;
    await expect(store().transaction((inside) => sources.add(inside, page))).rejects.toMatchObject({ code: 'not-found' });
  });
});
