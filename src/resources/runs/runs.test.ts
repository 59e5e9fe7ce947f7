import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import type { Caller } from '#core/context';
import { Fault } from '#core/fault';
import type { Generate } from '#core/generate';
import type { RunLoop } from '#core/run';
import { systemClock, type Clock } from '#kit/async/clock';
import { sealer } from '#kit/crypto/sealing';
import { ByteBudget, memoryOf } from '#kit/memory/byte-budget';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { openRuns } from './store.ts';

const migrations = ['../users/', '../teams/', '../usage/', './'].map((folder) => new URL(folder, import.meta.url));
const mebibyte = 2 ** 20;
const noModel: Generate = () => {
  throw new Error('No model is asked.');
};
const answerCall = { model: 'm', turns: [], asked: '', tools: [], output: { type: 'text' }, sampling: {}, extra: {} } as const;

onBothDatabases('runs', ({ open }) => {
  interface Opening {
    readonly each?: number;
    readonly clock?: Clock;
    readonly generate?: Generate;
  }

  async function opened({ each = 4 * mebibyte, clock = systemClock, generate = noModel }: Opening = {}) {
    const store = await open({ migrations });
    const { rows } = await sql<{ id: number }>`insert into users (email, plan) values ('ada@example.org', 'unlimited') returning id`.execute(store.db);
    const caller: Caller = { userId: rows[0]!.id, email: 'ada@example.org', role: 'user', plan: 'unlimited', teamIds: [], keyId: 1, keyName: 'k' };
    const budget = new ByteBudget({ total: 64 * mebibyte, each });
    const runs = openRuns({
      store,
      seal: sealer(Buffer.alloc(32, 7)),
      clock,
      rights: { callerOf: () => Promise.resolve(caller), watch: () => () => {} },
      memoryOf: (userId) => memoryOf(budget, userId),
      log: () => {},
    });
    onTestFinished(() => runs.close());
    const work = (loop: RunLoop) => runs.work({ loops: { agent: loop, deep_agent: loop }, generate });
    const limits = { steps: 5, calls: 5, seconds: 60, tokens: 1000 };
    const begin = (message: string) =>
      runs.begin({ kind: 'agent', agentId: null, version: null, asked: { message, more: {} }, limits, requestId: 'req', caller, app: '' });
    return { store, caller, budget, runs, work, begin };
  }

  test('count against the memory of their user, and wait for room in it', async () => {
    const { store, caller, budget, runs, work, begin } = await opened();
    const held: number[] = [];
    const loop: RunLoop = async (run) => {
      held.push(budget.held);
      await run.step('large', () => Promise.resolve('x'.repeat(mebibyte)));
      held.push(budget.held);
      return { message: 'done' };
    };
    const other = memoryOf(budget, caller.userId);
    expect(other.take(3 * mebibyte)).toBe(true);
    work(loop);
    const id = await begin('y'.repeat(2 * mebibyte));
    const taken = async () => (await sql`select from run where holder is not null`.execute(store.db)).rows.length;
    await expect.poll(taken, { timeout: 30_000 }).toBe(1);
    expect([held, budget.held]).toEqual([[], 3 * mebibyte]);
    other.letGo();
    await expect.poll(async () => (await runs.one(caller.userId, id)).state, { timeout: 30_000 }).toBe('completed');
    expect(held[0]).toBeGreaterThan(2 * mebibyte);
    expect(held[1]! - held[0]!).toBeGreaterThan(mebibyte);
    await expect.poll(() => budget.held).toBe(0);
  });

  test('end with that reason when they have 16 MB', async () => {
    const { caller, runs, work, begin } = await opened({ each: 64 * mebibyte });
    work(async (run) => {
      for (let at = 0; at < 20; at++) await run.step(`step ${at}`, () => Promise.resolve('x'.repeat(mebibyte)));
      return { message: 'done' };
    });
    const id = await begin('Go.');
    await expect.poll(async () => (await runs.one(caller.userId, id)).state, { timeout: 30_000 }).toBe('failed');
    expect(await runs.one(caller.userId, id)).toMatchObject({ error: 'The run has reached its limit of 16777216 bytes.' });
  });

  test('end when answers fail that wait for the tokens of one another', async () => {
    const { caller, runs, work, begin } = await opened();
    work(async (run) => {
      await run.all(['a', 'b', 'c'], (key) => run.answer(key, answerCall));
      return { message: 'done' };
    });
    const id = await begin('Go.');
    await expect.poll(async () => (await runs.one(caller.userId, id)).state, { timeout: 30_000 }).toBe('failed');
  });

  test('count what an answer has used that fails', async () => {
    const generate: Generate = async function* (_, { progress }) {
      yield [{ type: 'text', candidate: 0, text: 'The her' }];
      await systemClock.sleep(300); // what was told before is written meanwhile
      Object.assign(progress, { attempts: [{}], booked: { input: 70, output: 7 }, planTokens: 77 });
      throw new Fault('upstream-failed', 'The provider went away.');
    };
    const { caller, runs, work, begin } = await opened({ generate });
    work(async (run) => ({ message: (await run.answer('a', answerCall)).text }));
    const id = await begin('Go.');
    await expect.poll(async () => (await runs.one(caller.userId, id)).state, { timeout: 30_000 }).toBe('failed');
    expect(await runs.one(caller.userId, id)).toMatchObject({ error: 'The provider went away.', planTokens: 77 });
  });

  test('end before an answer whose prompt alone has more tokens than are left', async () => {
    const { caller, runs, work, begin } = await opened();
    const turns = [{ role: 'user', parts: [{ type: 'text', text: 'heron '.repeat(1000) }] }] as const;
    work(async (run) => ({ message: (await run.answer('a', { ...answerCall, turns })).text }));
    const id = await begin('Go.');
    await expect.poll(async () => (await runs.one(caller.userId, id)).state, { timeout: 30_000 }).toBe('failed');
    const error = 'The run ended: it has reached its limit of 1000 tokens, of which too few are left for another answer.';
    expect(await runs.one(caller.userId, id)).toMatchObject({ error, steps: 0 });
  });

  test('tell when an answer was cut off because few tokens were left', async () => {
    const asked: (number | undefined)[] = [];
    const generate: Generate = async function* ({ sampling }) {
      asked.push(sampling.maxTokens);
      yield [
        { type: 'started', model: 'm', ignored: [] },
        { type: 'text', candidate: 0, text: 'The her' },
        { type: 'finished', candidate: 0, reason: 'length', raw: 'length' },
      ];
    };
    const { caller, runs, work, begin } = await opened({ generate });
    work(async (run) => ({ message: (await run.answer('a', answerCall)).text }));
    const id = await begin('Go.');
    const told: string[] = [];
    for await (const event of runs.follow(caller.userId, id, { after: 0, signal: new AbortController().signal }))
      if (event?.event === 'warning') told.push(event.data.message);
    expect(told).toEqual(['An answer was cut off: few of the 1000 tokens of the run were left.']);
    expect(asked).toEqual([expect.toSatisfy((one: number) => one > 900 && one <= 1000)]);
  });

  test('are deleted after 30 days', async () => {
    const clock = testClock();
    const { store, caller, runs, begin } = await opened({ clock });
    const [old, young] = [await begin('Old.'), await begin('Young.')];
    for (const [id, days] of [
      [old, 31],
      [young, 29],
    ] as const)
      await sql`update run set started_at = now() - make_interval(days => ${days}) where id = ${id}`.execute(store.db);
    clock.advance(3_600_000);
    await expect.poll(async () => runs.one(caller.userId, old).catch((error: unknown) => String(error)), { timeout: 30_000 }).toContain('no such run');
    expect(await runs.one(caller.userId, young)).toMatchObject({ id: young });
  });

  test('that wait with their process are ended by it when they are cancelled, with all that they told', { timeout: 120_000 }, async () => {
    const { caller, runs, work, begin } = await opened();
    const call = { call: 'c', tool: 't', server: 's', arguments: {}, isReadOnly: true, needsApproval: false };
    work(async (run) => {
      try {
        await run.tool(call, async ({ ask }) => {
          const { action } = await ask({ message: 'Say.' }, run.signal);
          return { text: action, isError: false };
        });
        return { message: 'done' };
      } finally {
        run.emit({ event: 'warning', data: { message: 'The last word.' } });
      }
    });
    const id = await begin('Ask.');
    await expect.poll(async () => (await runs.one(caller.userId, id)).state, { timeout: 30_000 }).toBe('waiting');
    expect(await runs.cancel(caller.userId, id)).toMatchObject({ state: 'cancelled', waitsFor: null });
    const told: string[] = [];
    for await (const one of runs.follow(caller.userId, id, { after: 0, signal: new AbortController().signal })) if (one) told.push(one.event);
    expect(told.slice(-2)).toEqual(['warning', 'run.cancelled']);
  });

  test('that are being cancelled are not approved any more: what was not begun yet is not begun', { timeout: 120_000 }, async () => {
    const { store, caller, runs, work, begin } = await opened();
    const made: string[] = [];
    const call = { call: 'c', tool: 't', server: 's', arguments: {}, isReadOnly: false, needsApproval: true };
    work(async (run) => {
      await run.tool(call, async () => ({ text: String(made.push('c')), isError: false }));
      return { message: 'done' };
    });
    const id = await begin('Call.');
    const state = async () => (await runs.one(caller.userId, id)).state;
    await expect.poll(state, { timeout: 30_000 }).toBe('waiting');
    await sql`update run set cancel_wanted = true where id = ${id}`.execute(store.db); // another machine begins to cancel it
    const who = { userId: caller.userId, by: caller };
    await expect(runs.approve(who, id, 'c', { approved: true, always: false })).rejects.toMatchObject({ code: 'conflict' });
    expect(await runs.cancel(caller.userId, id)).toMatchObject({ state: 'cancelled' });
    expect([await state(), made]).toEqual(['cancelled', []]);
  });
});
