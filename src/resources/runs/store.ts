import { randomInt } from 'node:crypto';
import { Fault } from '#core/fault';
import type { Json, JsonObject } from '#core/json';
import { covers } from '#core/narrowed';
import type { NewRun, QuestionAnswer, QuestionAsked, RunDecider, Runs, ShownRun } from '#core/run';
import { unknownThing } from '#http/noun-route';
import type { Clock } from '#kit/async/clock';
import type { Sealer } from '#kit/crypto/sealing';
import { isElicitedSchema, problemOf, type ElicitedSchema } from '#kit/mcp/elicitation';
import { jobs, type Jobs } from '#store/jobs';
import type { Store } from '#store/open';
import { jobOwner } from '../owner.ts';
import { follow } from './follow.ts';
import { LiveWaits } from './live-question.ts';
import { RunRows, topic, type FoundRun, type RunsWanted } from './rows.ts';
import type { Approval } from './tool-call.ts';
import { endingOf, workOn, type RunWorkerDeps } from './worker.ts';
import { repeated } from '#kit/async/repeated';

/** The runs of users, and what their users do with them. */
export interface OpenRuns extends Runs {
  /** The newest first. */
  list(userId: number, wanted: RunsWanted): Promise<readonly FoundRun[]>;
  /** Answers an approval that a run waits for. @throws Fault `not-found`; `conflict` where it does not wait for that; `forbidden` as `RunDecider` says */
  approve(who: RunDecider, id: string, call: string, approval: Approval): Promise<ShownRun>;
  /** Answers a question that a run waits for. @throws as `approve` */
  answer(who: RunDecider, id: string, question: string, answer: QuestionAnswer): Promise<ShownRun>;
  /** Lets a run that failed go on from its last step. @throws Fault `not-found`; `conflict` where it has not failed; `forbidden` as `RunDecider` says */
  resume(who: RunDecider, id: string): Promise<ShownRun>;
  /** Takes runs from now on. */
  work(deps: Pick<RunWorkerDeps, 'loops' | 'generate'>): void;
  /** Interrupts the runs of this process: they are taken up again. */
  close(): Promise<void>;
}

export interface RunsDeps extends Pick<RunWorkerDeps, 'rights' | 'memoryOf' | 'log'> {
  readonly store: Store;
  readonly seal: Sealer;
  readonly clock: Clock;
}

const kind = 'run';
/** Ids are integers of 15 digits, as some clients take them as numbers. They are drawn, so that nobody comes upon another's by counting. */
const [leastId, ids] = [10 ** 14, 2 ** 47];
/** Runs that one process works on at once, and those of one user among them. */
const [concurrency, mostEach] = [128, 48];
const leaseSeconds = 10;
/** The run says when it is enough: one whose job has failed by itself would never end. */
const mostTries = 1_000_000;
/** Runs of one user that are running. */
const mostRunning = 200;
/** Bytes of what a run is begun with, and of the answer to a question. */
const [mostAsked, mostAnswered] = [8_388_608, 65_536];
const keptDays = 30;
const purgeMilliseconds = 600_000;
/** How long the end of a cancelled run is awaited, and that a run waits which has asked; and how often that is looked for. */
const [cancelMilliseconds, settleMilliseconds, lookMilliseconds] = [2000, 3000, 20];

export function openRuns({ store, seal, clock, rights, memoryOf, log }: RunsDeps): OpenRuns {
  const rows = new RunRows(store, seal);
  const working = jobs({ store, clock });
  const stopPurging = purging(rows, clock, log);
  const one = async (userId: number, id: string): Promise<FoundRun> => {
    const found = isId(id) ? await rows.find(userId, id) : undefined;
    if (!found) throw unknownThing('run');
    return found;
  };
  const settled = (userId: number, id: string) => settledRun(() => one(userId, id), clock);
  const goOn = goingOn({ store, rows, working });
  const answerHere = answeringHere(rows);
  const mayDecide = deciding(rights);

  return {
    one: (userId, id) => one(userId, id),
    list: (userId, wanted) => rows.list(userId, wanted),
    async *follow(userId, id, options) {
      if (!isId(id)) throw unknownThing('run');
      yield* follow({ store, rows, clock }, { userId, id }, options);
    },

    async begin(run) {
      const id = String(randomInt(leastId, leastId + ids));
      const [userId, owner] = [run.caller.userId, jobOwner(run.caller.userId)];
      const row = rowOf(id, run, rows.sealed(userId, run.asked as unknown as Json));
      within(row.asked.length, mostAsked, 'message', 'What a run is begun with, its message, conversation and files,');
      await store.transaction(async (inside) => {
        await rows.add(row, await working.add(kind, { id }, { inside, owner, tries: mostTries }), inside);
        if ((await working.pending(kind, owner, inside)) > mostRunning)
          throw new Fault('rate-limited', `${mostRunning} runs of this user are running: ask again when some have ended.`, { retryAfter: 10 });
      });
      return id;
    },

    async cancel(userId, id) {
      await one(userId, id);
      const wanted = await rows.wantCancelled(userId, id);
      if (!wanted) throw new Fault('conflict', 'The run is over.');
      await working.cancel(wanted.job);
      const isOver = async () => !isOpen.has((await rows.progress(userId, id))?.state);
      if (wanted.state === 'running' && (await working.find(wanted.job))?.state === 'running')
        for (let waited = 0; waited < cancelMilliseconds && !(await isOver()); waited += lookMilliseconds) await clock.sleep(lookMilliseconds);
      // one that nobody works on, or whose process does not answer
      await rows.end(id, endingOf(rows, { userId }, clock, { state: 'cancelled' }));
      return one(userId, id);
    },

    async approve({ userId, by }, id, call, approval) {
      const run = await mayDecide(by, userId, await settled(userId, id));
      const { waiting } = run;
      if (waiting?.waitsFor.type !== 'approval' || waiting.waitsFor.call !== call) throw waitsForOther();
      await goOn(userId, run, { from: 'waiting', key: waiting.key, answer: { ...approval } });
      return one(userId, id);
    },

    async answer({ userId, by }, id, question, answer) {
      const run = await mayDecide(by, userId, await settled(userId, id));
      const { waiting } = run;
      if (waiting?.waitsFor.type !== 'question' || waiting.waitsFor.question !== question) throw waitsForOther();
      conforming(waiting.waitsFor, answer);
      if (run.heldFor) await answerHere(userId, run.heldFor, { id, key: waiting.key, answer });
      else await goOn(userId, run, { from: 'waiting', key: waiting.key, answer: { ...answer } });
      return one(userId, id);
    },

    async resume({ userId, by }, id) {
      const run = await mayDecide(by, userId, await one(userId, id));
      if (run.state !== 'failed') throw new Fault('conflict', 'Only a run that has failed is resumed.');
      await goOn(userId, run, { from: 'failed' });
      return one(userId, id);
    },

    work({ loops, generate }) {
      const onChange = (id: string, heard: () => void) => store.subscribe(topic, (change) => (change.type === 'reset' || change.payload === id) && heard());
      const deps = { rows, loops, generate, rights, memoryOf, onChange, waits: new LiveWaits(), clock, log };
      working.work(kind, ({ id: job, payload, signal }) => workOn({ id: (payload as { readonly id: string }).id, job }, signal, deps), {
        concurrency,
        mostEach,
        leaseSeconds,
      });
    },

    async close() {
      stopPurging();
      await working.close();
    },
  };
}

/** The run, a moment later where it is still running: its user is told what it wants before it waits for that. */
async function settledRun(look: () => Promise<FoundRun>, clock: Clock): Promise<FoundRun> {
  let run = await look();
  for (let waited = 0; run.state === 'running' && waited < settleMilliseconds; waited += lookMilliseconds) {
    await clock.sleep(lookMilliseconds);
    run = await look();
  }
  return run;
}

/** @throws Fault `too-large` */
function within(bytes: number, most: number, field: string, what: string): void {
  if (bytes > most) throw new Fault('too-large', `${what} may have at most ${most} bytes.`, { field });
}

/** @throws Fault `invalid` naming the field, `too-large` */
function conforming({ schema }: QuestionAsked, answer: QuestionAnswer): void {
  within(Buffer.byteLength(JSON.stringify(answer)), mostAnswered, 'content', 'The answer');
  const { action, content = {} } = answer;
  if (action !== 'accept' || !schema || !isElicitedSchema(schema)) return;
  const problem = problemOf(schema as unknown as ElicitedSchema, content);
  if (problem) throw new Fault('invalid', `content.${problem.field} ${problem.text}`, { field: `content.${problem.field}` });
}

/** The run, for those who may say how it goes on. @throws Fault `forbidden` for who may not do all that the run may */
const deciding =
  ({ callerOf }: RunsDeps['rights']) =>
  async (by: RunDecider['by'], userId: number, run: FoundRun): Promise<FoundRun> => {
    const begun = await callerOf({ userId, keyId: run.keyId }).catch(orGone);
    if (begun && !covers(by, begun))
      throw new Fault('forbidden', 'This run was begun by a key that may do more: decide with that one, or with one without scopes.', { reason: 'scope' });
    return run;
  };

/** A run whose key is gone does nothing more, whoever lets it go on. */
function orGone(error: unknown): undefined {
  if (error instanceof Fault && error.code === 'unauthenticated') return undefined;
  throw error;
}

/** One that waits may be kept by a process, which ends it. */
const isOpen: ReadonlySet<string | undefined> = new Set(['running', 'waiting']);

const isId = (id: string) => /^\d{15}$/.test(id);

const waitsForOther = () => new Fault('conflict', 'The run does not wait for this.');

const rowOf = (id: string, { caller, kind: what, agentId, version, requestId, app, limits }: NewRun, asked: Buffer) => ({
  id,
  userId: caller.userId,
  keyId: caller.keyId,
  kind: what,
  agentId,
  version,
  requestId,
  app: app.slice(0, 100),
  limits,
  asked,
});

interface GoingOn {
  readonly from: 'waiting' | 'failed';
  readonly key?: string;
  readonly answer?: JsonObject;
}

/** Answers a run that a process keeps while it waits. @throws Fault `conflict` where it does not wait for that any more */
const answeringHere =
  (rows: RunRows) =>
  async (userId: number, held: Buffer, { id, key, answer }: { readonly id: string; readonly key: string; readonly answer: QuestionAnswer }): Promise<void> => {
    if (!(await rows.answerHere(id, held, { key, number: -1, state: 'done', sealed: rows.sealed(userId, { ...answer }) }))) throw waitsForOther();
  };

/** Lets a run go on, with the answer that it waited for, as a new job. @throws Fault `conflict` where it is in another state by now */
function goingOn({ store, rows, working }: { readonly store: Store; readonly rows: RunRows; readonly working: Jobs }) {
  return async (userId: number, { id }: Pick<FoundRun, 'id'>, { from, key, answer }: GoingOn): Promise<void> => {
    const step = key !== undefined && answer ? { step: { key, number: -1, state: 'done' as const, sealed: rows.sealed(userId, answer) } } : {};
    await store.transaction(async (inside) => {
      const job = await working.add(kind, { id }, { inside, owner: jobOwner(userId), tries: mostTries });
      if (!(await rows.goOn(id, { job, from, ...step }, inside))) throw waitsForOther();
    });
    await rows.changed(id);
  };
}

/** Deletes old runs from time to time. @returns what ends it */
const purging = (rows: RunRows, clock: Clock, log: RunsDeps['log']): (() => void) =>
  repeated({
    clock,
    milliseconds: purgeMilliseconds,
    async work(isEnded) {
      while (!isEnded() && (await rows.purge(keptDays)) > 0);
    },
    failed: (cause) => log('Old runs could not be deleted: it is tried again.', cause),
  });
