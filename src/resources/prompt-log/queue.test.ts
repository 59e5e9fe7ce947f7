import { describe, expect, test } from 'vitest';
import { Fault } from '#core/fault';
import type { ToldRequest } from '#core/prompt-log';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { openQueue } from './queue.ts';

const told = (at: number): ToldRequest => ({
  requestId: `req_${at}`,
  userId: 1,
  address: '',
  prompt,
  promptLength: prompt.length,
  answer: { text: '', length: 0 },
});

/** A lot of a megabyte has room for some hundreds. */
const prompt = 'p'.repeat(4000);

/** A queue whose statements end when they are let go. */
function queued() {
  const clock = testClock();
  const statements: { readonly ids: readonly string[]; readonly end: (error?: Error) => void }[] = [];
  const problems: string[] = [];
  const queue = openQueue({
    clock,
    log: (problem) => problems.push(problem),
    write: (some) =>
      new Promise((resolve, reject) => statements.push({ ids: some.flatMap(({ requests }) => requests), end: (error) => (error ? reject(error) : resolve()) })),
  });
  const add = (from: number, to: number) => {
    for (let at = from; at < to; at++) queue.add(told(at));
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  return { clock, statements, problems, queue, add, turn };
}

test('a lonely prompt waits a quarter of a second for others, which go with it in their order', async () => {
  const { clock, statements, add } = queued();
  add(0, 1);
  clock.advance(200);
  add(1, 3);
  expect(statements).toEqual([]);
  clock.advance(50);
  expect(statements.map(({ ids }) => ids)).toEqual([['req_0', 'req_1', 'req_2']]);
});

test('a full lot goes at once, one after the other, whatever comes meanwhile', async () => {
  const { statements, add, turn } = queued();
  add(0, 800);
  expect(statements).toHaveLength(1);
  const rows = statements[0]!.ids.length;
  expect(rows).toBeGreaterThan(200);
  for (let at = 0; at < 2; at++) {
    statements[at]!.end();
    await turn();
  }
  expect(statements.map(({ ids }) => [ids[0], ids.length])).toEqual([
    ['req_0', rows],
    [`req_${rows}`, rows],
    [`req_${2 * rows}`, rows],
  ]);
});

test('what is beyond 16 lots that wait is dropped, and so is what cannot be written: a line each for all of them', async () => {
  const { statements, problems, add, turn } = queued();
  add(0, 6000);
  const rows = statements[0]!.ids.length;
  statements[0]!.end(new Error('The database is away.'));
  await turn();
  expect(problems).toEqual([
    `${rows} prompts could not be logged.`,
    `${6000 - 17 * rows} prompts came faster than they could be logged, and are not in the log.`,
  ]);
  expect(statements[1]!.ids[0]).toBe(`req_${rows}`);
});

test('to wait for what was added before writes it at once, and does not wait for what is added later', async () => {
  const { statements, queue, add, turn } = queued();
  add(0, 1);
  let isWritten = false;
  const written = queue.written().then(() => (isWritten = true));
  await turn();
  add(1, 2000);
  statements[0]!.end();
  await written;
  expect([isWritten, statements[0]!.ids]).toEqual([true, ['req_0']]);
});

test('who waits for what was added before waits for its statement, though it was begun for others', async () => {
  const { statements, queue, add, turn } = queued();
  add(0, 400);
  const rows = statements[0]!.ids.length;
  let isWritten = false;
  const written = queue.written().then(() => (isWritten = true));
  add(400, 700);
  statements[0]!.end();
  await turn();
  expect([statements[1]!.ids[0], isWritten]).toEqual([`req_${rows}`, false]);
  statements[1]!.end();
  await written;
});

describe('while the database is away', () => {
  const away = () => new Fault('overloaded', 'The database is away.');

  test('a lot is tried again every second, before those that came later, and nothing is lost', async () => {
    const { clock, statements, problems, add, turn } = queued();
    add(0, 600);
    const rows = statements[0]!.ids.length;
    for (let tried = 0; tried < 60; tried++) {
      statements.at(-1)!.end(away());
      await turn();
      expect(statements).toHaveLength(tried + 1);
      clock.advance(1000);
    }
    expect(statements.at(-1)!.ids).toEqual(statements[0]!.ids);
    statements.at(-1)!.end();
    await turn();
    expect([statements.at(-1)!.ids[0], problems]).toEqual([`req_${rows}`, []]);
  });

  test('no more than 16 lots wait, however long it takes: what comes then is dropped', async () => {
    const { clock, statements, problems, add, turn } = queued();
    add(0, 6000);
    const rows = statements[0]!.ids.length;
    for (let tried = 0; tried < 1000; tried++) {
      statements.at(-1)!.end(away());
      await turn();
      clock.advance(1000);
    }
    expect([statements.at(-1)!.ids, problems]).toEqual([statements[0]!.ids, []]);
    statements.at(-1)!.end();
    await turn();
    expect(problems).toEqual([`${6000 - 17 * rows} prompts came faster than they could be logged, and are not in the log.`]);
    expect(statements.at(-1)!.ids[0]).toBe(`req_${rows}`);
  });

  test('nobody who reads waits for it, and at the close what waits is given up', async () => {
    const { clock, statements, problems, queue, add, turn } = queued();
    add(0, 600);
    statements[0]!.end(away());
    await turn();
    const read = queue.written();
    await turn();
    statements[1]!.end(away());
    await read;
    const closed = queue.close();
    await turn();
    statements[2]!.end(away());
    await closed;
    clock.advance(10_000);
    expect([statements.length, problems]).toEqual([3, ['600 prompts could not be logged: the database is away.']]);
  });
});
