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

test('the tags of a call that died stand in its row, and a call without any has none', () => {
  const rows = replayOf(['began', beganJson(began('a', { tags: { team: 'search' } }))], ['began', beganJson(began('b'))]).deaths();
  expect(JSON.parse(rows[0]!)).toMatchObject({ tags: { team: 'search' } });
  expect(rows[1]).not.toContain('tags');
});
