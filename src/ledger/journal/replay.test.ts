import { expect, test } from 'vitest';
import { began, settled } from '../../../test/support/fakes/journals.ts';
import { wholeRow } from '../../../test/support/usage-rows.ts';
import { Bookings } from './bookings.ts';
import { beganJson, settledJson, spokeJson, type RecordKind } from './record.ts';
import { placeOf } from './segments.ts';
import { Replay } from './replay.ts';

type Records = readonly (readonly [RecordKind, string, number?])[];

const replayOf = (...records: Records) => replayed(records);

function replayed(records: Records, bookings?: Bookings) {
  const replay = new Replay(bookings);
  for (const [kind, json, segment = 0] of records) replay.note({ kind, json: Buffer.from(json), to: placeOf(segment, 10) });
  return replay;
}

const died = (replay: Replay) => replay.deaths(Number).map(({ json }) => (JSON.parse(json.toString()) as { requestId: string }).requestId);

test('who died comes in the order in which it was last written down, so that files that are gone change nothing', () => {
  const [a, b] = [beganJson(began('a')), beganJson(began('b'))];
  expect(died(replayOf(['began', a, 0], ['began', b, 1], ['began', a, 2]))).toEqual(['b', 'a']);
  expect(died(replayOf(['began', b, 1], ['began', a, 2]))).toEqual(['b', 'a']);
});

test('the oldest file is the oldest that a running call needs', () => {
  const replay = replayOf(['began', beganJson(began('a')), 3], ['began', beganJson(began('b')), 4], ['settled', settledJson(settled(began('a'))), 5]);
  expect(replay.oldest).toBe(4);
  expect(replayOf().oldest).toBe(Infinity);
});

test('a call without a price costs nothing known, and one that said nothing costs its prompt', () => {
  const [row] = replayOf(['began', beganJson(began('a', { price: undefined, balance: 'train' }))], ['spoke', spokeJson('b', 0, 9)]).deaths(Number);
  expect(wholeRow(JSON.parse(row!.json.toString()) as object)).toMatchObject({
    costUsd: null,
    inputTokens: 10,
    outputTokens: 0,
    planTokens: 10,
    balance: 'train',
    end: 'gateway-died',
    status: 500,
  });
});

test('what is written again after a failed sync is booked once, and nobody dies of it who was over', () => {
  const call = began('a');
  const [first, last] = [beganJson(call), settledJson(settled(call))];
  const bookings = new Bookings();
  const records: Records = [
    ['began', first, 0],
    ['settled', last, 0],
    ['began', first, 1],
    ['settled', last, 1],
    ['began', first, 2],
  ];
  const replay = replayed(records, bookings);
  expect(died(replay)).toEqual([]);
  expect(replay.oldest).toBe(Infinity);
  expect(bookings.take().find(({ account }) => account.owner === 'user:12' && account.kind === 'inference')?.amount).toBe(20);
});

test('the tags of a call that died stand in its row, and a call without any has none', () => {
  const rows = replayOf(['began', beganJson(began('a', { tags: { team: 'search' } }))], ['began', beganJson(began('b'))]).deaths(Number);
  expect(JSON.parse(rows[0]!.json.toString())).toMatchObject({ tags: { team: 'search' } });
  expect(rows[1]!.json.toString()).not.toContain('tags');
});
