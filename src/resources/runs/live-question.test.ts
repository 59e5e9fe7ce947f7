import { beforeEach, expect, test } from 'vitest';
import { Fault } from '#core/fault';
import { Permits } from '#core/permits';
import type { Json } from '#core/json';
import type { QuestionAnswer } from '#core/run';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { LiveQuestions, LiveWaits } from './live-question.ts';

let clock = testClock();
beforeEach(() => void (clock = testClock()));
const minute = 60_000;

/** Time goes by while what waits for it goes on. */
async function pass(milliseconds: number) {
  const others = async () => {
    for (let turn = 0; turn < 50; turn++) await Promise.resolve();
  };
  await others();
  for (let left = milliseconds; left > 0; left -= 250) {
    clock.advance(Math.min(left, 250));
    await others();
  }
}

/** A run in which questions are asked, over a database that can be away. */
function asking({ userId = 1, waits = new LiveWaits(), waited = 0 } = {}) {
  const job = new AbortController();
  const permits = new Permits();
  permits.hold();
  const state = { told: 0, isShown: false, noted: waited, lost: 0, away: '', permits, answers: new Map<string, QuestionAnswer>() };
  const there = (what: string) => {
    if (state.away === what) throw new Fault('overloaded', 'The database is away.');
  };
  const rows = {
    sealed: (_: number, value: Json) => Buffer.from(JSON.stringify(value)),
    opened: (_: number, sealed: Buffer) => JSON.parse(sealed.toString()) as Json,
    async waitHere() {
      there('waitHere');
      return (state.isShown = true);
    },
    async waitHereNoMore() {
      there('waitHereNoMore');
      state.isShown = false;
    },
    async answerOf(_: string, key: string) {
      there('answerOf');
      const answer = state.answers.get(key);
      return answer && Buffer.from(JSON.stringify(answer));
    },
  };
  const deps = { rows, runId: '1', userId, holder: 'h', clock, signal: job.signal, waits, permits, onChange: () => () => {}, rest: () => () => {} };
  const live = new LiveQuestions({ ...deps, lost: () => state.lost++, note: (ms) => (state.noted = ms) }, waited);
  const run = { emit: () => void state.told++, keep: () => Promise.resolve() };
  const ask = (key: string, signal = new AbortController().signal) => live.ask(run, key, { question: key, message: 'Say.' }, signal);
  return { state, ask, answer: (key: string) => state.answers.set(key, { action: 'decline' }) };
}

test('four runs of a user wait with their process, and 32 of all: further questions are cancelled', async () => {
  const waits = new LiveWaits();
  const mine = Array.from({ length: 4 }, () => asking({ waits }));
  const first = mine.map(({ ask }) => ask('a'));
  await pass(250);
  const fifth = asking({ waits });
  expect(await fifth.ask('a')).toEqual({ action: 'cancel' });
  expect(fifth.state).toMatchObject({ told: 0, isShown: false });
  for (let userId = 2; userId <= 8; userId++) for (let at = 0; at < 4; at++) void asking({ waits, userId }).ask('a');
  await pass(250);
  expect(await asking({ waits, userId: 9 }).ask('a')).toEqual({ action: 'cancel' });
  mine[0]!.answer('a');
  await pass(1000);
  expect(await first[0]).toEqual({ action: 'decline' });
  const again = asking({ waits });
  const answered = again.ask('a');
  again.answer('a');
  await pass(1000);
  expect([await answered, again.state.told]).toEqual([{ action: 'decline' }, 1]);
});

test('a run waits with its process for half an hour in all, also when it was taken up again', async () => {
  const { state, ask } = asking();
  for (const key of ['a', 'b', 'c']) {
    const asked = ask(key);
    await pass(10 * minute);
    expect(await asked).toEqual({ action: 'cancel' });
  }
  expect(await ask('d')).toEqual({ action: 'cancel' });
  expect(state).toMatchObject({ told: 3, isShown: false, noted: 30 * minute });
  const later = asking({ waited: 29 * minute });
  const last = later.ask('a');
  await pass(minute);
  expect([await last, later.state.told, later.state.noted]).toEqual([{ action: 'cancel' }, 1, 30 * minute]);
});

test('a run that waits gives back its concurrent streams', async () => {
  const { state, ask, answer } = asking();
  const asked = ask('a');
  await pass(250);
  expect(state.permits.isHeld).toBe(false);
  answer('a');
  await pass(1000);
  await asked;
  expect(state.permits.isHeld).toBe(true);
});

test.each(['waitHere', 'answerOf', 'waitHereNoMore'])('a question outlives a short failure of the database at %s', async (away) => {
  const { state, ask, answer } = asking();
  let isOver = false;
  answer('a');
  state.away = away;
  const asked = ask('a').finally(() => (isOver = true));
  await pass(5000);
  expect(isOver).toBe(false);
  state.away = '';
  await pass(1000);
  expect([await asked, state.isShown, state.lost]).toEqual([{ action: 'decline' }, false, 0]);
});

test.each(['answerOf', 'waitHereNoMore'])('a run is lost that a long failure of the database keeps from going on, at %s', async (away) => {
  const { state, ask, answer } = asking();
  answer('a');
  state.away = away;
  const asked = ask('a').catch((error: unknown) => error);
  await pass(30_000);
  expect([await asked, state.lost]).toMatchObject([{ name: 'RunLost' }, 1]);
});

test('a question that is over while another is asked is not waited for, and the next one waits', async () => {
  const { state, ask, answer } = asking();
  const over = new AbortController();
  const first = ask('a');
  const second = ask('b', over.signal).catch((error: unknown) => error);
  const third = ask('c');
  await pass(250);
  over.abort(new Error('over'));
  expect(await second).toMatchObject({ message: 'over' });
  await pass(1000);
  expect(state.told).toBe(1);
  answer('a');
  answer('c');
  await pass(2000);
  expect([await first, await third, state.told]).toEqual([{ action: 'decline' }, { action: 'decline' }, 2]);
});
