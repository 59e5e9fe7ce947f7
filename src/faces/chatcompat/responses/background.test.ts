import { describe, expect, test } from 'vitest';
import { queued } from '#dialects/openai/responses/response';
import type { ResponsesRequest } from '#dialects/openai/responses/wire';
import { Cancelled } from '#kit/async/client-left';
import type { Caller } from '#core/context';
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
  let entry: Entry = { userId: 1, id, status, items: 1, body: { response: { ...queuedResponse, status }, said, run: { ...run, ...more } } };
  let handler: Parameters<BackgroundDeps['runs']['work']>[0] | undefined;
  const nothing = () => Promise.reject(new Error('Nobody asks for this.'));
  openBackground({
    generate,
    clock: testClock(),
    limits: () => ({ holdHeadersSeconds: 1, requestSeconds: 1, streamSeconds: 1 }),
    responses: {
      keep: nothing,
      async renew(one, statuses) {
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
  return { work: (signal: AbortSignal) => handler!({ userId: 1, id, tries: 1, taken: 1, signal, begun: () => {} }), status: () => entry.status };
}

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
