/* Runs in the background, as one process works on them: the production module on the database's jobs and responses. */
import { queued } from '#dialects/openai/responses/response';
import { callOf } from '#dialects/openai/responses/decode-request';
import type { ResponsesRequest } from '#dialects/openai/responses/wire';
import type { Exchange } from '#http/exchange';
import { Fault } from '#core/fault';
import type { Context } from '#core/context';
import type { Generate } from '#core/generate';
import { Pauses } from '#store/job-pauses';
import { openBackground, type Background, type BackgroundDeps } from '../../src/faces/chatcompat/responses/background.ts';
import type { Rights } from '../../src/faces/chatcompat/responses/stored-body.ts';
import type { Over } from './network.ts';
import { leaseMilliseconds, ownerOf, type RunEnding, type RunsModel, type Taken } from './runs-model.ts';
import type { Life } from './world.ts';

export interface OwnRuns {
  /** @param said what the caller asks to be answered */
  begin(asked: RunAsked, context: Context): Promise<void>;
  /** Takes no more, interrupts what runs, and resolves when it has ended. */
  close(): Promise<void>;
}

export interface RunAsked {
  readonly requestId: string;
  readonly max: number | undefined;
}

export interface OwnRunsParts {
  readonly life: Life;
  readonly over: Over;
  readonly model: RunsModel;
  readonly rights: Rights;
  readonly generate: Generate;
  readonly affords: BackgroundDeps['affords'];
  readonly chance: () => number;
  readonly log: (problem: string, cause: unknown) => void;
}

const lookMilliseconds = 300;
/** Runs at a time in one process, and those of one user. */
const [concurrency, mostEach] = [8, 6];
const settleMilliseconds = 700;
const streamSeconds = 600;

type Stop = 'cancelled' | 'lost' | 'closing';

interface Working {
  readonly owner: string;
  hasBegun: boolean;
  stop(why: Stop): void;
  readonly ended: Promise<void>;
}

export function runsOf({ life, over, model, rights, generate, affords, chance, log }: OwnRunsParts): OwnRuns {
  const { clock } = life;
  const working = new Set<Working>();
  const pauses = new Pauses(clock, () => {}); // every look comes soon
  let isClosing = false;
  let jobs = 0;
  const nothing = () => Promise.reject(new Error('No life has conversations.'));
  const background: Background = openBackground({
    generate,
    clock,
    limits: () => ({ holdHeadersSeconds: 10, requestSeconds: 600, streamSeconds }),
    responses: {
      keep: nothing,
      renew: (entry, statuses) => over(() => model.renewEntry(entry, statuses)),
      find: (_, id) => over(() => model.find(id)),
      chain: nothing,
      bytes: (_, id) => over(() => (model.find(id) ? 1000 : 0)),
      change: nothing,
      remove: nothing,
      mostItems: 500,
      enter: () => undefined,
    },
    conversations: { make: nothing, find: nothing, describe: nothing, remove: nothing, add: nothing, removeEntry: nothing, count: nothing },
    runs: {
      begin: (make, keyId) => over(() => model.keep(make(`${life.name}/${++jobs}`), keyId)),
      cancel: (job) => over(() => model.cancel(job)),
      waiting: async (userId) => (await over(() => model.waiting(userId))).map(({ id: job, responseId: id, keyId }) => ({ job, id, keyId })),
      work: (handler) => {
        clock.after(chance() * lookMilliseconds, () => void look(handler));
      },
    },
    rights,
    memoryOf: () => ({ take: () => true, add: () => {}, letGo: () => {} }),
    storing: () => true,
    log,
    affords,
  });

  return {
    begin({ requestId, max }, context) {
      const request: ResponsesRequest = { model: 'm', input: 'hello', background: true, ...(max === undefined ? {} : { max_output_tokens: max }) };
      const said = [{ role: 'user' as const, parts: [{ type: 'text' as const, text: 'hello' }] }];
      const response = queued(request, { id: `resp_${requestId}`, created: 0 }, true);
      const exchange = { sendJson: () => {} } as unknown as Exchange;
      return background.begin({
        exchange,
        request,
        response,
        continuation: { before: [], hasStored: false, isRepeating: false, itemsBefore: 0, said },
        call: callOf(request, said),
        context,
      });
    },
    async close() {
      isClosing = true;
      pauses.close();
      for (const one of working) one.stop('closing');
      await Promise.all([...working].map(({ ended }) => ended));
    },
  };

  type Handler = Parameters<BackgroundDeps['runs']['work']>[0];

  async function look(handler: Handler): Promise<void> {
    while (!isClosing) {
      try {
        const free = concurrency - working.size;
        const taken = pauses.taken(working, mostEach);
        if (free > 0) for (const job of await over(() => model.take(free, (owner) => mostEach - (taken[owner] ?? 0)))) work(handler, job);
      } catch {
        // the database is away
      }
      await clock.sleep(lookMilliseconds);
    }
  }

  function work(handler: Handler, job: Taken): void {
    const aborting = new AbortController();
    let why: Stop | undefined;
    let renewed = clock.monotonic();
    let hasEnded = false;
    const stop = (reason: Stop) => {
      why ??= reason;
      aborting.abort(new Fault('overloaded', 'The job was interrupted.'));
    };
    const renew = async () => {
      const asked = clock.monotonic();
      try {
        const own = await over(() => model.renew(job));
        if (!own) stop('lost');
        else if (own.isCancelWanted) stop('cancelled');
        renewed = asked;
      } catch {
        if (clock.monotonic() - renewed > leaseMilliseconds) stop('lost');
      }
      if (!hasEnded) clock.after(leaseMilliseconds / 3, () => void (!hasEnded && renew()));
    };
    clock.after(leaseMilliseconds / 3, () => void (!hasEnded && renew()));
    const settle = async (ending: RunEnding) => {
      while (clock.monotonic() - renewed <= leaseMilliseconds)
        try {
          return await over(() => model.settle(job, ending));
        } catch {
          await clock.sleep(settleMilliseconds);
        }
    };
    const { userId, responseId: id, tries, taken } = job;
    const owner = ownerOf(job);
    const begun = () => {
      if (one.hasBegun) return;
      one.hasBegun = true;
      pauses.began(owner);
    };
    /** The seconds for which it was postponed. */
    let postponed: number | undefined;
    const ended = handler({ userId, id, tries, taken, signal: aborting.signal, begun })
      .then(
        (seconds) => settle((postponed = seconds) === undefined ? 'over' : 'postponed'),
        async (error: unknown) => {
          if (why === 'lost') return;
          if (why === undefined && !(error instanceof Fault && error.code === 'overloaded')) log('A run failed.', error);
          await settle(why === 'cancelled' ? 'over' : why === 'closing' ? 'interrupted' : 'again');
        },
      )
      .finally(() => {
        hasEnded = true;
        working.delete(one);
        if (postponed === undefined) pauses.ended(owner, ![...working].some((other) => other.owner === owner));
        else pauses.postpone(owner, postponed);
      });
    const one: Working = { owner, hasBegun: false, stop, ended };
    working.add(one);
    if (isClosing) stop('closing');
  }
}
