import { expect, test } from 'vitest';
import { RecentRows } from './recent-rows.ts';

const rowOf = (number: number, bytes = 100) => Buffer.from(`{"row":${number}}`.padEnd(bytes));
const textsOf = (rows: RecentRows) => rows.take().map(({ json, to }) => [json.toString().trimEnd(), to]);

test('rows are taken once, in their order, when they are written', () => {
  const rows = new RecentRows();
  rows.add(rowOf(0), 1);
  rows.begin();
  for (let at = 1; at <= 3; at++) rows.add(rowOf(at), at * 10);
  expect(rows.take()).toEqual([]);
  rows.written();
  rows.add(rowOf(4), 40);
  expect(textsOf(rows)).toEqual([1, 2, 3].map((at) => [`{"row":${at}}`, at * 10]));
  expect(rows.take()).toEqual([]);
  rows.written();
  expect(textsOf(rows)).toEqual([['{"row":4}', 40]]);
});

test('what was taken stands until more is taken, however many rows come meanwhile', () => {
  const rows = new RecentRows();
  rows.begin();
  let added = 0;
  let seen = 0;
  const add = (count: number, bytes: number) => {
    for (let at = 0; at < count; at++) rows.add(rowOf(++added, bytes), added);
    rows.written();
  };
  for (let round = 0; round < 40; round++) {
    add(700 + 300 * (round % 3), round % 7 === 0 ? 2000 : 900);
    if (round === 5) add(1, 600_000); // larger than what is kept together
    for (let taken = rows.take(); taken.length > 0; taken = rows.take()) {
      add(round < 20 ? 50 : 0, 900);
      for (const { json, to } of taken) {
        expect(to).toBe(++seen);
        expect(JSON.parse(json.toString())).toEqual({ row: seen });
      }
      if (round < 20) break;
    }
  }
  for (let taken = rows.take(); taken.length > 0; taken = rows.take()) seen += taken.length;
  expect(seen).toBe(added);
  expect(rows.isLost).toBe(false);
});

test('more than fits into memory is lost here, and kept again from a beginning on', () => {
  const rows = new RecentRows();
  rows.begin();
  for (let at = 0; at < 10 && !rows.isLost; at++) rows.add(rowOf(at, 1_000_000), at);
  expect(rows.isLost).toBe(true);
  rows.written();
  expect(rows.take()).toEqual([]);
  rows.begin();
  rows.add(rowOf(1), 5);
  rows.written();
  expect(textsOf(rows)).toEqual([['{"row":1}', 5]]);
});
