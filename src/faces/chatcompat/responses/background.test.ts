import { describe, expect, test } from 'vitest';
import { queued } from '#dialects/openai/responses/response';
import type { ResponsesRequest } from '#dialects/openai/responses/wire';
import { Cancelled } from '#kit/async/client-left';
import type { Caller } from '#core/context';
import { Fault } from '#core/fault';
import type { Generate } from '#core/generate';
import { testClock } from '../../../../test/support/fakes/clock.ts';
import { openBackground, type BackgroundDeps } from './background.ts';
import type { Entry, Run } from './stored-body.ts';

const request: ResponsesRequest = { model: 'm', input: 'hello', background: true };
const run: Run = { job: 'j', request, requestId: 'r', keyId: 1, app: 'a', strict: false, headers: {} };
const said = [{ role: 'user' as const, parts: [{ type: 'text' as const, text: 'hello' }] }];
const id = 'resp_0123456789abcdefghijkl';
const queuedResponse = queued(request, { id, created: 0 }, true);

/** One run, whose entry is all that is stored. */
function stored(status: string, more: Partial<Run>, generate: Generate, renewed: (entry: Entry) => void = () => {}) {
  const clock = testClock();
  let isAway = false;
  let entry: Entry = { userId: 1, id, status, items: 1, body: { response: { ...queuedResponse, status }, said, run: { ...run, ...more } } };
  let handler: Parameters<BackgroundDeps['runs']['work']>[0] | undefined;
  const nothing = () => Promise.reject(new Error('Nobody asks for this.'));
  openBackground({
    generate,
    clock,
    limits: () => ({ holdHeadersSeconds: 1, requestSeconds: 1, streamSeconds: 1 }),
    responses: {
      keep: nothing,
      async renew(one, statuses) {
        if (isAway) throw new Fault('overloaded', 'The database is away.');
        if (!statuses.includes(entry.status)) return false;
        entry = one;
        renewed(one);
        return true;
      },
      find: async () => entry,
      chain: nothing,
      change: nothing,
      mostItems: 500,
      bytes: async () => 0,
      remove: nothing,
      enter: () => undefined,
    },
    conversations: { make: nothing, find: nothing, describe: nothing, remove: nothing, add: nothing, removeEntry: nothing, count: nothing },
    runs: { begin: nothing, cancel: nothing, waiting: nothing, work: (given) => void (handler = given) },
    rights: { callerOf: async () => ({ userId: 1, keyId: 1 }) as Caller, watch: () => () => {}, hear: () => {} },
    memoryOf: () => ({ take: () => true, add: () => {}, letGo: () => {} }),
    storing: () => true,
    log: () => {},
    affords: nothing,
  });
  return {
    work: (signal: AbortSignal) => handler!({ userId: 1, id, tries: 1, taken: 1, signal, begun: () => {} }),
    status: () => entry.status,
    goAway: () => void (isAway = true),
    /** Some seconds later it is back, and `meanwhile` was written by another process. */
    async comeBack(meanwhile = entry.status) {
      for (let passed = 0; passed < 15; passed++) {
        clock.advance(1000);
        await new Promise(setImmediate);
      }
      [entry, isAway] = [{ ...entry, status: meanwhile }, false];
      clock.advance(1000);
    },
  };
}

describe('a run that ends while the database is away', () => {
  const ending = () => {
    const one = stored('queued', {}, async function* () {
      yield [{ type: 'text', candidate: 0, text: 'hello' }];
      one.goAway();
      yield [{ type: 'finished', candidate: 0, reason: 'stop', raw: 'stop' }];
    });
    return one;
  };

  test('is completed when it is back', async () => {
    const one = ending();
    const worked = one.work(new AbortController().signal);
    await one.comeBack();
    await worked;
    expect(one.status()).toBe('completed');
  });

  test('is not written over what another process has made of it', async () => {
    const one = ending();
    const worked = one.work(new AbortController().signal);
    await one.comeBack('failed');
    await worked;
    expect(one.status()).toBe('failed');
  });

  test('is given back when its process stops meanwhile', async () => {
    const one = ending();
    const stopping = new AbortController();
    const worked = one.work(stopping.signal);
    await new Promise(setImmediate);
    stopping.abort(new Fault('overloaded', 'The job was interrupted.'));
    await expect(worked).rejects.toMatchObject({ code: 'overloaded' });
  });
});

describe('a run that is cancelled', () => {
  test('ends as cancelled where its process died before it could end it', async () => {
    const one = stored('in_progress', { spoke: true }, () => expect.fail('asked again'));
    await one.work(AbortSignal.abort(new Cancelled()));
    expect(one.status()).toBe('cancelled');
  });

  test('ends as cancelled where what was said first was written over the wish', async () => {
    const aborting = new AbortController();
    const one = stored(
      'queued',
      {},
      async function* () {
        yield [{ type: 'text', candidate: 0, text: 'hello' }];
        aborting.signal.throwIfAborted();
      },
      ({ status }) => status === 'in_progress' && aborting.abort(new Cancelled()),
    );
    await one.work(aborting.signal);
    expect(one.status()).toBe('cancelled');
  });
});
