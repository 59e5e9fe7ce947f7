import { expect, test } from 'vitest';
import { began, settled } from '../../../test/fakes/journals.ts';
import { beganJson, settledJson, spokeJson, type RecordKind } from './journal-record.ts';
import { placeOf } from './journal-segments.ts';
import { Replay } from './replay.ts';

function replayOf(...records: readonly (readonly [RecordKind, string, number?])[]) {
  const replay = new Replay(true);
  for (const [kind, json, segment = 0] of records) replay.note({ kind, json: Buffer.from(json), to: placeOf(segment, 10) });
  return replay;
}

const died = (replay: Replay) => replay.deaths().map((json) => (JSON.parse(json) as { requestId: string }).requestId);

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
  const [row] = replayOf(['began', beganJson(began('a', { price: undefined, balance: 'train' }))], ['spoke', spokeJson('b', 0, 9)]).deaths();
  expect(JSON.parse(row!)).toMatchObject({
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
  const replay = replayOf(['began', first, 0], ['settled', last, 0], ['began', first, 1], ['settled', last, 1], ['began', first, 2]);
  expect(died(replay)).toEqual([]);
  expect(replay.oldest).toBe(Infinity);
  expect(replay.booked.find(({ account }) => account.owner === 'user:12' && account.kind === 'inference')?.amount).toBe(20);
});
