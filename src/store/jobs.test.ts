import { setImmediate as nextTurn } from 'node:timers/promises';
import { sql, type KyselyPlugin } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { Cancelled } from '#kit/async/client-left';
import { systemClock } from '#kit/async/clock';
import { Fault } from '#core/fault';
import type { Json } from '#core/json';
import { Postponed } from '#store/job-pauses';
import { jobs } from '#store/jobs';
import type { Handler, RunningJob, WorkOptions } from './job.ts';
import type { Store } from '#store/open';
import { onBothDatabases } from '../../test/support/databases.ts';

onBothDatabases('jobs', ({ open, shared }) => {
  const store = shared();
  let count = 0;
  const freshKind = () => `kind-${++count}`;

  /** A worker of this test, as another process would be. */
  function worker(kind: string, handler: Handler, options: WorkOptions = {}, on: Store = store()) {
    const mine = jobs({ store: on, clock: systemClock });
    mine.work(kind, handler, { retrySeconds: 0.05, leaseSeconds: 5, ...options });
    onTestFinished(() => mine.close());
    return mine;
  }
  const aborted = (signal: AbortSignal) => new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
  const all = () => jobs({ store: store(), clock: systemClock });
  const stateOf = (id: string) => async () => (await all().find(id))?.state;

  test('are done with their result and progress, soon after they are added', async () => {
    const kind = freshKind();
    worker(kind, async ({ payload, tries, progress }) => {
      await progress({ half: true });
      return { payload, tries };
    });
    await expect.poll(stateOf(await all().add(kind, 'first')), { interval: 10 }).toBe('done'); // from here on the worker waits
    const since = performance.now();
    const id = await all().add(kind, { file: 'ä', list: [1] });
    await expect.poll(stateOf(id), { interval: 10 }).toBe('done');
    expect(performance.now() - since).toBeLessThan(10_000);
    expect(await all().find(id)).toMatchObject({
      kind,
      tries: 1,
      progress: { half: true },
      result: { payload: { file: 'ä', list: [1] }, tries: 1 },
      error: null,
      endedAt: expect.any(Date),
    });
    expect(await all().find('job_unknown')).toBeUndefined();
  });

  test('are told how often they were taken, which grows also where a try does not count', async () => {
    const kind = freshKind();
    const seen: (readonly [number, number])[] = [];
    const hung = async ({ tries, taken, signal }: RunningJob) => {
      seen.push([tries, taken]);
      await aborted(signal);
    };
    const id = await all().add(kind, null);
    for (let round = 1; round <= 2; round++) {
      const one = worker(kind, hung);
      await expect.poll(() => seen.length, { interval: 10, timeout: 30_000 }).toBe(round);
      await one.close();
    }
    worker(kind, async ({ tries, taken }) => void seen.push([tries, taken]));
    await expect.poll(stateOf(id), { interval: 10, timeout: 30_000 }).toBe('done');
    expect(seen).toEqual([
      [1, 1],
      [1, 2],
      [1, 3],
    ]);
  });

  test('give the next place to the owner who has fewest, however many another one has waiting', async () => {
    const kind = freshKind();
    const order: string[] = [];
    const gates: (() => void)[] = [];
    for (let at = 0; at < 50; at++) await all().add(kind, 'many', { owner: 'many' });
    worker(
      kind,
      async ({ payload }) => {
        order.push(payload as string);
        await new Promise<void>((resolve) => gates.push(resolve));
      },
      { concurrency: 4, mostEach: 3 },
    );
    await expect.poll(() => order, { interval: 10, timeout: 30_000 }).toEqual(['many', 'many', 'many']);
    await all().add(kind, 'few', { owner: 'few' });
    await expect.poll(() => order, { interval: 10, timeout: 30_000 }).toEqual(['many', 'many', 'many', 'few']); // there was a place left
    for (let at = 0; at < 2; at++) await all().add(kind, 'few', { owner: 'few' });
    gates[0]!();
    await expect.poll(() => order.length, { interval: 10, timeout: 30_000 }).toBe(5);
    expect(order.at(-1)).toBe('few');
    expect(await all().pending(kind, 'many')).toBe(49);
    while ((await all().pending(kind, 'many')) > 0) for (const open of gates.splice(0)) open();
  });

  test('that ended long ago are all deleted, however many there are', async () => {
    const kind = freshKind();
    await sql`
      insert into job (id, kind, payload, state, most_tries, ended_at)
      select ${kind} || n, ${kind}, 'null', 'done', 1, now() - case when n > 3500 then interval '1 day' else interval '40 days' end
      from generate_series(1, 3510) n`.execute(store().db);
    worker(kind, async () => {});
    const left = async () => (await sql<{ left: number }>`select count(*)::int as left from job where kind = ${kind}`.execute(store().db)).rows[0]!.left;
    await expect.poll(left, { timeout: 30_000 }).toBe(10);
  });

  test('run once each among many workers, at most so many at once, the oldest first', async () => {
    const kind = freshKind();
    const ids = [];
    for (let n = 0; n < 60; n++) ids.push(await all().add(kind, n));
    const ran: number[] = [];
    let now = 0;
    let most = 0;
    for (let workers = 0; workers < 3; workers++) {
      worker(
        kind,
        async ({ payload }) => {
          most = Math.max(most, ++now);
          ran.push(payload as number);
          await nextTurn();
          now--;
        },
        { concurrency: 2 },
      );
    }
    for (const id of ids) await expect.poll(stateOf(id), { timeout: 30_000 }).toBe('done');
    expect(ran.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, n) => n));
    expect(most).toBeLessThanOrEqual(6);
    expect(ran.indexOf(0)).toBeLessThan(10);
  });

  test('wait for their time', async () => {
    const kind = freshKind();
    let ranAt = 0;
    worker(kind, async () => void (ranAt = Date.now()));
    const runAt = new Date(Date.now() + 700);
    const id = await all().add(kind, null, { runAt });
    await expect.poll(stateOf(id), { timeout: 30_000 }).toBe('done');
    expect(ranAt).toBeGreaterThanOrEqual(runAt.getTime() - 20);
    expect(ranAt).toBeLessThan(runAt.getTime() + 10_000);
  });

  test('of one key are one until it is over', async () => {
    const kind = freshKind();
    const added = await Promise.all(Array.from({ length: 20 }, () => all().add(kind, null, { unique: 'a' })));
    expect(new Set(added).size).toBe(1);
    expect(await all().add(kind, null, { unique: 'b' })).not.toBe(added[0]);
    expect(await all().add(freshKind(), null, { unique: 'a' })).not.toBe(added[0]);
    await all().cancel(added[0]!);
    expect(await all().add(kind, null, { unique: 'a' })).not.toBe(added[0]);
  });

  test('added in a transaction exist only if it does', async () => {
    const kind = freshKind();
    const ran: unknown[] = [];
    worker(kind, async ({ payload }) => void ran.push(payload));
    await store()
      .transaction(async (inside) => {
        await all().add(kind, 'rolled back', { inside });
        throw new Error('no');
      })
      .catch(() => {});
    await store().transaction((inside) => all().add(kind, 'kept', { inside }));
    await expect.poll(() => ran).toEqual(['kept']);
  });

  test('that fail are tried again, so often as was said, and then say why', async () => {
    const kind = freshKind();
    const tried: number[] = [];
    worker(kind, async ({ tries, payload }) => {
      tried.push(tries);
      if (payload === 'never' || tries < 3) throw new Fault('upstream-failed', 'The provider broke off.');
      return 'ok';
    });
    const mended = await all().add(kind, 'third time');
    await expect.poll(stateOf(mended), { timeout: 30_000 }).toBe('done');
    expect(tried).toEqual([1, 2, 3]);
    const hopeless = await all().add(kind, 'never', { tries: 2 });
    await expect.poll(stateOf(hopeless), { timeout: 30_000 }).toBe('failed');
    expect(await all().find(hopeless)).toMatchObject({ tries: 2, error: 'The provider broke off.' });
  });

  test('that cannot succeed are not tried again; what is our own mistake says nothing of itself', async () => {
    const kind = freshKind();
    worker(kind, async ({ payload }) => {
      throw payload === 'theirs' ? new Fault('unprocessable', 'The file is not a PDF.') : new Error('sk-canary in a stack');
    });
    const theirs = await all().add(kind, 'theirs');
    const ours = await all().add(kind, 'ours', { tries: 1 });
    await expect.poll(stateOf(theirs)).toBe('failed');
    await expect.poll(stateOf(ours)).toBe('failed');
    expect(await all().find(theirs)).toMatchObject({ tries: 1, error: 'The file is not a PDF.' });
    expect((await all().find(ours))?.error).not.toContain('canary');
  });

  test('that are cancelled never begin, or are told and end so', async () => {
    const kind = freshKind();
    const began = Promise.withResolvers<void>();
    const waiting = await all().add(kind, null, { runAt: new Date(Date.now() + 3_600_000) });
    expect(await all().cancel(waiting)).toBe(true);
    expect(await stateOf(waiting)()).toBe('cancelled');
    worker(kind, async ({ signal }) => {
      began.resolve();
      await aborted(signal);
    });
    const running = await all().add(kind, null);
    await began.promise;
    const since = performance.now();
    expect(await all().cancel(running)).toBe(true);
    await expect.poll(stateOf(running), { interval: 20 }).toBe('cancelled');
    expect(performance.now() - since).toBeLessThan(10_000);
    expect(await all().cancel(running)).toBe(false);
    expect(await all().cancel('job_unknown')).toBe(false);
  });

  test('that are cancelled before their worker dies are handed to another, which is told at once', async () => {
    const kind = freshKind();
    const id = await all().add(kind, null);
    await sql`
      update job set state = 'running', tries = 1, taken = 1, holder = 'dead', lease_until = now() - interval '1 second', cancel_wanted = true where id = ${id}`.execute(
      store().db,
    );
    const told: unknown[] = [];
    worker(kind, async ({ signal }) => {
      told.push(signal.reason);
      signal.throwIfAborted();
    });
    await expect.poll(stateOf(id), { interval: 20, timeout: 30_000 }).toBe('cancelled');
    expect(told).toEqual([expect.any(Cancelled)]);
  });

  test('that take longer than their lease keep it by renewing', async () => {
    const kind = freshKind();
    let ran = 0;
    for (let workers = 0; workers < 2; workers++) {
      worker(
        kind,
        async ({ id }) => {
          ran++;
          const first = (await sql<{ until: Date }>`select lease_until as until from job where id = ${id}`.execute(store().db)).rows[0]!.until;
          const isOver = () => sql<{ over: boolean }>`select now() > ${first}::timestamptz + interval '0.5 seconds' as over`.execute(store().db);
          await expect.poll(async () => (await isOver()).rows, { timeout: 30_000 }).toEqual([{ over: true }]);
        },
        { leaseSeconds: 2 },
      );
    }
    const id = await all().add(kind, null);
    await expect.poll(stateOf(id), { timeout: 30_000 }).toBe('done');
    expect(ran).toBe(1);
  });

  test('of a worker that died are taken again after their lease, and fail when they kill every worker', async () => {
    const kind = freshKind();
    const id = await all().add(kind, null, { tries: 3 });
    const die = () =>
      sql`update job set state = 'running', tries = tries + 1, holder = 'dead', lease_until = now() + interval '0.3 seconds' where id = ${id}`.execute(
        store().db,
      );
    await die();
    let ran = 0;
    const alive = worker(
      kind,
      async ({ signal }) => {
        ran++;
        await die(); // as if this process, too, ended here
        await aborted(signal);
      },
      { leaseSeconds: 0.3 },
    );
    await expect.poll(stateOf(id), { timeout: 30_000 }).toBe('failed');
    expect(ran).toBe(1);
    expect((await alive.find(id))?.error).toBe('The process that worked on it ended.');
  });

  test('whose lease was lost can write nothing over the one who has them now', async () => {
    const kind = freshKind();
    const lost = Promise.withResolvers<void>();
    let first = true;
    worker(
      kind,
      async ({ signal, id }) => {
        if (!first) return 'the second';
        first = false;
        await sql`update job set holder = null, lease_until = null, state = 'waiting', run_at = now() + interval '0.4 seconds' where id = ${id}`.execute(
          store().db,
        );
        await aborted(signal).catch(() => {});
        lost.resolve();
        return 'the first';
      },
      { leaseSeconds: 0.6, concurrency: 2 },
    );
    const id = await all().add(kind, null);
    await lost.promise;
    await expect.poll(stateOf(id), { timeout: 30_000 }).toBe('done');
    expect((await all().find(id))?.result).toBe('the second');
  });

  test('that are postponed keep their places and count no try; after the first of them one at a time is tried, and those of others go on', async () => {
    const kind = freshKind();
    const ids: string[] = [];
    for (const owner of ['a', 'a', 'a', 'a', 'b', 'b', 'b']) ids.push(await all().add(kind, owner, { owner }));
    const ended: string[] = [];
    let isFree = false;
    let [rounds, atOnce, most] = [0, 0, 0];
    worker(
      kind,
      async ({ id, payload, begun, tries }) => {
        expect(tries).toBe(1);
        if (payload === 'a' && !isFree) {
          atOnce++;
          if (rounds > 0) most = Math.max(most, atOnce);
          await expect.poll(() => ended.length > 2, { timeout: 30_000 }).toBe(true);
          rounds++;
          atOnce--;
          throw new Postponed(0.01);
        }
        begun();
        ended.push(id);
      },
      { concurrency: 4, mostEach: 3 },
    );
    await expect.poll(() => ended.toSorted(), { timeout: 30_000 }).toEqual(ids.slice(4).toSorted()); // several at once end in any order
    await expect.poll(() => rounds, { timeout: 30_000 }).toBeGreaterThan(4);
    expect(most).toBe(1);
    for (const id of ids.slice(0, 4)) expect(await all().find(id)).toMatchObject({ state: expect.toBeOneOf(['waiting', 'running']) as string });
    isFree = true;
    await expect.poll(() => ended.length, { timeout: 30_000 }).toBe(ids.length);
    expect(ended[3]).toBe(ids[0]);
    expect(ended.slice(3).toSorted()).toEqual(ids.slice(0, 4).toSorted());
  }, 120_000);

  test('under way when the process stops are given back at once and not counted as tried', async () => {
    const kind = freshKind();
    const began = Promise.withResolvers<void>();
    const stopping = worker(kind, async ({ signal }) => {
      began.resolve();
      await aborted(signal);
    });
    const id = await all().add(kind, null);
    await began.promise;
    await stopping.close();
    expect(await all().find(id)).toMatchObject({ state: 'waiting', tries: 0 });
    worker(kind, async () => 'by another');
    await expect.poll(stateOf(id)).toBe('done');
  });

  test('go on after the database was away', async () => {
    const own = await open();
    const kind = freshKind();
    const mine = worker(
      kind,
      async ({ payload }) => {
        if (payload === 'break') await sql`select count(*) from generate_series(1, 100000000000)`.execute(own.long(0.3).db);
        return 'done';
      },
      {},
      own,
    );
    const id = await mine.add(kind, 'break', { tries: 2 });
    const next = await mine.add(kind, 'fine');
    const ended = async () => (await mine.find(next).catch(() => undefined))?.state;
    await expect.poll(ended, { timeout: 30_000 }).toBe('done');
    await expect.poll(async () => (await mine.find(id).catch(() => undefined))?.state, { timeout: 30_000 }).toBe('failed');
    await mine.close();
  }, 120_000);

  test('that need files of a place are done there alone, and others anywhere', async () => {
    const kind = freshKind();
    const at = (id: string) => {
      const mine = jobs({ store: store(), clock: systemClock, place: { id } });
      onTestFinished(() => mine.close());
      return mine;
    };
    const [here, there] = [at(`${kind}-here`), at(`${kind}-there`)];
    const done: string[] = [];
    there.work(kind, async ({ id }) => void done.push(id));
    const placed = await here.add(kind, null, { here: true });
    const free = await here.add(kind, null);
    await expect.poll(stateOf(free), { interval: 10 }).toBe('done');
    expect(await stateOf(placed)()).toBe('waiting');
    here.work(kind, async () => {});
    await expect.poll(stateOf(placed), { interval: 10 }).toBe('done');
    expect(done).toEqual([free]);
  });

  test('that wait for a place where nobody worked for a day fail with that reason', async () => {
    const kind = freshKind();
    const place = { id: `${kind}-gone` };
    const there = jobs({ store: store(), clock: systemClock, place });
    const id = await there.add(kind, null, { here: true });
    await sql`insert into job_place (id, machine, seen_at) values (${place.id}, 'gone', now() - interval '25 hours')`.execute(store().db);
    worker(kind, async () => {});
    await expect.poll(stateOf(id), { interval: 10 }).toBe('failed');
    expect((await all().find(id))?.error).toContain('a machine that has not been running for a day');
    there.work(kind, async () => {});
    onTestFinished(() => there.close());
    await expect.poll(async () => (await sql`select from job_place where id = ${place.id} and seen_at > now() - interval '1 minute'`.execute(store().db)).rows.length).toBe(1); // prettier-ignore
    expect(await all().retry(id)).toBe(true);
    await expect.poll(stateOf(id), { interval: 10 }).toBe('done');
  });

  test('are asked for by one statement for all kinds, now and then, which finds those that nobody announced', async () => {
    const [kinds, pauses] = [Array.from({ length: 10 }, freshKind), [] as (() => void)[]];
    const clock = { ...systemClock, sleep: (_: number, signal?: AbortSignal) => Promise.race([aborted(signal!), new Promise<void>((go) => pauses.push(go))]) };
    let statements = 0;
    const counting: KyselyPlugin = { transformQuery: ({ node }) => (statements++, node), transformResult: async ({ result }) => result };
    const own = { ...store(), db: store().db.withPlugin(counting) };
    const idle = jobs({ store: own, clock });
    onTestFinished(() => idle.close());
    const done: Json[] = [];
    for (const kind of kinds) idle.work(kind, async ({ payload }) => void done.push(payload));
    const round = () => {
      const before = pauses.length;
      pauses.at(-1)!();
      return expect.poll(() => pauses.length, { interval: 10 }).toBe(before + 1);
    };
    await expect.poll(() => pauses.length, { interval: 10 }).toBeGreaterThan(0);
    await round(); // whoever was roused at the begin has looked
    statements = 0;
    for (let rounds = 0; rounds < 5; rounds++) await round();
    expect(statements).toBeLessThanOrEqual(5 * 2);
    await sql`insert into job (id, kind, payload, most_tries) values (${`job_${kinds[3]}`}, ${kinds[3]}, '"unannounced"', 5)`.execute(store().db);
    expect(done).toEqual([]);
    await round();
    await expect.poll(() => done, { interval: 10 }).toEqual(['unannounced']);
  });
});
