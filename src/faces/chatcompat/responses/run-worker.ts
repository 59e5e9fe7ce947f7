import { encodeFault } from '#dialects/openai/faults';
import { callOf } from '#dialects/openai/responses/decode-request';
import { Encoder } from '#dialects/openai/responses/encoder';
import { noFrame } from '#dialects/openai/responses/output-items';
import { inClientsWords, type GeneratingDeps } from '../../answer.ts';
import { Cancelled } from '#kit/async/client-left';
import type { OwnMemory } from '#kit/memory/byte-budget';
import { sizeOf } from '#kit/memory/size-of';
import type { GenerateCall } from '#core/call';
import { speaks } from '#core/event';
import { Fault, faultOf, reasonOf } from '#core/fault';
import { fold } from '#core/fold';
import type { Caller, Context } from '#core/context';
import { stepOf, steps } from '#core/steps';
import { entryOf, fieldWords, includedBy } from './entry.ts';
import { isRunning, runningStatuses, turnsOfChain, withoutBrokenEnds } from './continuation.ts';
import { gone } from './replay.ts';
import { RunBroadcast } from './run-broadcast.ts';
import type { Entry, KeepingDeps, Run } from './stored-body.ts';
import { Permits } from '#core/permits';
import { requireScope } from '#core/scopes';
import type { RunningResponse } from '#core/stored-responses';

export type RunWorkerDeps = GeneratingDeps & KeepingDeps;

/** A run that is worked on, with its response as far as it has been written. */
interface Working {
  readonly entry: Entry;
  readonly run: Run;
  readonly encoder: Encoder;
  readonly running: RunningResponse;
  readonly memory: OwnMemory;
  readonly live: RunBroadcast;
}

/** A run that was begun more often is taken for the reason why its processes end. */
const mostTries = 5;
/** Milliseconds between two looks for the memory that a run needs. It keeps its place meanwhile. */
const roomMilliseconds = 100;
/** Milliseconds between two tries to write while the database is away. */
const awayMilliseconds = 500;

/** Works on the queued background runs that this process takes up. */
export class RunWorker {
  readonly #deps: RunWorkerDeps;
  readonly #lives = new Map<string, RunBroadcast>();

  constructor(deps: RunWorkerDeps) {
    this.#deps = deps;
  }

  /** A run that is worked on here. */
  live(id: string): RunBroadcast | undefined {
    return this.#lives.get(id);
  }

  /** Takes a run up. One whose process was killed begins again, unless it has spoken. @returns the seconds that it must wait for a limit of its user's, where it could not begin */
  async work(running: RunningResponse): Promise<number | undefined> {
    const { userId, id, signal } = running;
    const memory = this.#deps.memoryOf(userId);
    try {
      const bytes = await this.#deps.responses.bytes(userId, id);
      while (!signal.aborted && !memory.take(bytes)) await this.#deps.clock.sleep(roomMilliseconds, signal).catch(() => {});
      if (signal.aborted && !isCancellation(signal)) throw signal.reason;
      return await this.#resume(running, memory);
    } finally {
      memory.letGo();
    }
  }

  /** Ends the queued runs of a user whose keys are no longer good, before their turn comes. */
  async dismiss(userId: number): Promise<void> {
    const { runs, rights, responses } = this.#deps;
    const waiting = Map.groupBy(await runs.waiting(userId), ({ keyId }) => keyId);
    for (const [keyId, some] of waiting) {
      const fault = await rights.callerOf({ userId, keyId }).then(() => undefined, unauthenticatedIn);
      if (!fault) continue;
      for (const { id, job } of some) {
        const entry = await responses.find(userId, id);
        const run = entry?.body.run;
        if (entry && run && isRunning(entry.status)) {
          const encoder = this.#encoderOf(entry, run);
          encoder.fail(encodeFault(fault).error);
          await this.#conclude(entry, run, encoder, new RunBroadcast());
        }
        await runs.cancel(job);
      }
    }
  }

  async #resume(running: RunningResponse, memory: OwnMemory): Promise<number | undefined> {
    const { userId, id, tries, taken, signal } = running;
    const here = this.#lives.get(id); // the job's lease was lost, and its response is not written yet
    while (here && !here.ended && !signal.aborted) await here.more(Infinity, signal);
    const entry = await this.#deps.responses.find(userId, id);
    const run = entry?.body.run;
    if (!entry || !run || !isRunning(entry.status)) return undefined;
    const encoder = this.#encoderOf(entry, run);
    const live = new RunBroadcast();
    if (run.cancelWanted || isCancellation(signal)) encoder.cancel();
    else if (run.spoke || tries > mostTries || taken > steps.take.most) encoder.fail(restarted);
    else return this.#broadcast({ entry, run, encoder, running, memory, live });
    await this.#conclude(entry, run, encoder, live, signal);
    return undefined;
  }

  async #broadcast(working: Working): Promise<number | undefined> {
    const { entry, run, encoder, live, running } = working;
    this.#lives.set(entry.id, live);
    try {
      const seconds = await this.#generate(working);
      if (seconds === undefined) await this.#conclude(entry, run, encoder, live, running.signal);
      return seconds;
    } finally {
      live.end();
      this.#lives.delete(entry.id);
    }
  }

  /**
   * Makes the call of a run and writes its response down, however the call ends.
   * @returns the seconds to wait where a limit did not let it begin
   * @throws what stops the process or keeps the caller from being looked up: the run is taken up again later
   */
  async #generate(working: Working): Promise<number | undefined> {
    const { entry, run, encoder, live, memory } = working;
    const { signal, taken } = working.running;
    const { clock, limits, rights } = this.#deps;
    const over = new AbortController();
    const cancelTimer = clock.after(limits().streamSeconds * 1000, () => over.abort(new Fault('timed-out', 'The answer took too long.')));
    let context: Context | undefined;
    let call: GenerateCall | undefined;
    const owner = { userId: entry.userId, keyId: run.keyId };
    const unwatch = rights.watch({ caller: owner, allows: mayRun, cut: (reason) => over.abort(reason) }); // first: else a change could come in between
    try {
      const caller = mayRun(await rights.callerOf(owner));
      context = { ...contextOf(run, caller, taken, AbortSignal.any([signal, over.signal])), memory };
      call = await this.#callOf(entry, run);
      await this.#write(working, call, context);
    } catch (error) {
      if (!call && faultOf(error).code === 'overloaded') throw error;
      const { retryAfter, unbegun } = faultOf(error).details;
      if (unbegun && live.events.length === 0 && !signal.aborted && !over.signal.aborted) return retryAfter ?? 1;
      if (signal.aborted && !isCancellation(signal) && !(await this.#isCancelled(entry))) throw error;
      if (context?.progress.booked) encoder.encode({ type: 'usage', usage: context.progress.booked });
      if (signal.aborted) encoder.cancel();
      else
        encoder.fail(
          encodeFault(
            faultOf(
              call ? inClientsWords(reasonOf(error, over.signal), fieldWords({ text: run.request.text }, entry.body), call) : reasonOf(error, over.signal),
            ),
          ).error,
        );
    } finally {
      cancelTimer();
      unwatch();
    }
    return undefined;
  }

  async #callOf({ userId, previousId, body }: Entry, { request, conversationId }: Run): Promise<GenerateCall> {
    const earlier = previousId === undefined ? [] : await this.#deps.responses.chain(userId, previousId, 'previous_response_id');
    const chain = turnsOfChain(earlier, conversationId === undefined ? undefined : 'conversation');
    return { ...callOf(request, [...withoutBrokenEnds(chain, earlier, body.said), ...body.said]), stream: true };
  }

  /** Encodes the answer as its events come. A run that speaks is stored as such first: it cannot begin again. */
  async #write({ entry, run, encoder, running, memory, live }: Working, call: GenerateCall, context: Context): Promise<void> {
    let spoke = false;
    for await (const events of this.#deps.generate(call, context)) {
      running.begun();
      for (const event of events) encoder.encode(event);
      if (!spoke && events.some(speaks)) {
        spoke = true;
        running.signal.throwIfAborted();
        const spoken: Entry = { ...entry, status: 'in_progress', body: { ...entry.body, response: encoder.response, run: { ...run, spoke } } };
        if (!(await this.#patiently(() => this.#deps.responses.renew(spoken, runningStatuses), context.signal))) throw gone();
      }
      for (const event of events) {
        memory.add(sizeOf(event));
        live.say(event);
      }
    }
    encoder.finish();
  }

  async #isCancelled({ userId, id }: Entry): Promise<boolean> {
    const entry = await this.#deps.responses.find(userId, id);
    return !entry || entry.body.run?.cancelWanted === true;
  }

  /**
   * Stores a response as it ended, in its conversation where it belongs to one. It cannot be had again: a database that is away is waited for until the signal
   * is aborted, while the response counts among the memory and the places of the runs. Another process that has the run meanwhile may end it first.
   * @param signal absent: it is tried once
   */
  async #conclude(entry: Entry, run: Run, { response }: Encoder, { events }: RunBroadcast, signal = AbortSignal.abort()): Promise<void> {
    const { userId, previousId, body } = entry;
    const continuation = { said: body.said, ...(previousId === undefined ? {} : { previousId }) };
    const ended = entryOf(userId, continuation, { response, answer: fold(events).candidates[0]?.parts ?? [] });
    const isComplete = run.request.stream === true && !run.spoke; // the events before a restart are lost
    const whole = { ...ended, body: { ...ended.body, run: { ...run, spoke: true as const, ...(isComplete ? { events } : {}) } } };
    const goesOn = response['status'] === 'completed' || response['status'] === 'incomplete';
    await this.#patiently(() => this.#keepEnded(whole, goesOn ? run.conversationId : undefined), signal);
  }

  async #keepEnded(whole: Entry, conversationId: string | undefined): Promise<void> {
    const { responses, conversations } = this.#deps;
    if (conversationId === undefined) return void (await responses.renew(whole, runningStatuses));
    try {
      await conversations.add(conversationId, whole, { statuses: runningStatuses });
    } catch (error) {
      if (!(error instanceof Fault) || (error.code !== 'conflict' && error.code !== 'not-found')) throw error;
      await responses.renew(whole, runningStatuses); // the conversation or its newest entry was deleted
    }
  }

  /** Asks again while the database is away. @throws what the last try threw */
  async #patiently<Result>(ask: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    for (;;)
      try {
        return await ask();
      } catch (error) {
        if (signal.aborted || faultOf(error).code !== 'overloaded') throw error;
        await this.#deps.clock.sleep(awayMilliseconds, signal).catch(() => {});
      }
  }

  #encoderOf({ body: { response } }: Entry, { request }: Run): Encoder {
    return new Encoder({ response, ...includedBy(request), now: () => Math.floor(this.#deps.clock.now() / 1000), frame: noFrame });
  }
}

const restarted = { type: 'server_error', code: 'server_error', param: null, message: 'The server was restarted in the middle of the answer: ask again.' };

/** Was the run cancelled? Its entry may not say so: the first output is written over it. */
const isCancellation = ({ reason }: AbortSignal): boolean => reason instanceof Cancelled;

/** Each time that a run is taken up is booked under steps of its own. */
function contextOf({ requestId, app, strict, targets, tags, headers, cacheSeconds }: Run, caller: Caller, taken: number, signal: AbortSignal): Context {
  const step = stepOf(0, 'take', taken - 1);
  return {
    requestId,
    step,
    caller,
    face: 'chatcompat',
    app,
    signal,
    strict,
    targets,
    tags,
    headers,
    cacheSeconds,
    permits: new Permits(),
    progress: { attempts: [] },
  };
}

/** The key may have been narrowed since. @throws Fault `forbidden` */
function mayRun(caller: Caller): Caller {
  requireScope(caller, 'passthrough');
  return caller;
}

/** Why a key is not good. @throws what kept that from being found out */
function unauthenticatedIn(error: unknown): Fault {
  if (error instanceof Fault && error.code === 'unauthenticated') return error;
  throw error;
}
