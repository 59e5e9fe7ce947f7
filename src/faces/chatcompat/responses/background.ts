import { encodeFault } from '#dialects/openai/faults';
import { callOf } from '#dialects/openai/responses/decode-request';
import { Encoder, noFrame } from '#dialects/openai/responses/encoder';
import type { ResponsesRequest } from '#dialects/openai/responses/wire';
import type { Exchange } from '#http/exchange';
import { inClientsWords, type GeneratingDeps } from '../../answer.ts';
import { Cancelled } from '#kit/async/client-left';
import type { OwnMemory } from '#kit/memory/byte-budget';
import { sizeOf } from '#kit/memory/size-of';
import type { GenerateCall } from '#core/call';
import { speaks } from '#core/event';
import { Fault, faultOf, reasonOf } from '#core/fault';
import { fold } from '#core/fold';
import type { Caller, Context } from '#core/context';
import { textOf, type JsonObject } from '#core/json';
import { steps } from '#core/steps';
import { entryOf, fieldOf, givesEncrypted } from './entry.ts';
import { isRunning, runningStatuses, turnsIn, type Continuation } from './continuation.ts';
import type { Entry, KeepingDeps, Run, Running } from './stored-body.ts';
import { RunBroadcast } from './run-broadcast.ts';
import { gone, streamEntry } from './replay.ts';

export interface Beginning {
  readonly exchange: Exchange;
  readonly request: ResponsesRequest;
  /** As it is while nothing is known. */
  readonly response: JsonObject;
  readonly ground: Continuation;
  readonly call: GenerateCall;
  readonly context: Context;
}

/** Responses that nobody waits for on an open connection. */
export interface Background {
  /** Queues a run and answers with it, or with its stream. @throws Fault `not-found` for an unknown model, `quota-spent` or `rate-limited` for what cannot be paid or queued */
  begin(beginning: Beginning): Promise<void>;
  /** Ends a run. @returns the response as it ended */
  cancel(entry: Entry): Promise<JsonObject>;
  /** A run of this process. */
  live(id: string): RunBroadcast | undefined;
}

export interface BackgroundDeps extends GeneratingDeps, KeepingDeps {
  /** Could this call be made and paid for now? @throws Fault */
  readonly affords: (call: GenerateCall, context: Context) => Promise<void>;
}

const cancelMilliseconds = 2000;
/** Of a run: then it is what ends the processes that work on it. */
const mostTries = 5;
const lookMilliseconds = 20;
/** A run waits for the memory that it needs, and has its place meanwhile. */
const roomMilliseconds = 100;

export function openBackground(parts: BackgroundDeps): Background {
  const { responses, conversations, runs, rights, clock, generate, limits } = parts;
  const lives = new Map<string, RunBroadcast>();

  async function begin({ exchange, request, response, ground, call, context }: Beginning): Promise<void> {
    await parts.affords({ ...call, stream: true }, context);
    const { previousId, conversationId, said } = ground;
    const { caller, app, strict, targets, tags, headers, cacheSeconds, requestId } = context;
    const { userId, keyId } = caller;
    const id = textOf(response['id']);
    await runs.begin((job) => {
      const run: Run = {
        job,
        request,
        requestId,
        keyId,
        app,
        strict,
        targets,
        tags,
        headers,
        cacheSeconds,
        ...(conversationId === undefined ? {} : { conversationId }),
      };
      return {
        userId,
        id,
        ...(previousId === undefined ? {} : { previousId }),
        status: 'queued',
        items: said.length,
        body: { response, said, run },
      };
    }, keyId);
    if (!request.stream) return exchange.sendJson(200, response);
    await streamEntry({ clock, limits, find: () => responses.find(userId, id), live: () => lives.get(id) }, exchange, -1);
  }

  /** Where a run was killed: it begins again, unless something was said. @returns the seconds that it must wait for a limit of its user's, where it could not begin */
  async function work(running: Running): Promise<number | undefined> {
    const { userId, id, signal } = running;
    const memory = parts.memoryOf(userId);
    try {
      const bytes = await responses.bytes(userId, id);
      while (!signal.aborted && !memory.take(bytes)) await clock.sleep(roomMilliseconds, signal).catch(() => {});
      if (signal.aborted && !isCancellation(signal)) throw signal.reason;
      return await resume(running, memory);
    } finally {
      memory.letGo();
    }
  }

  async function resume({ userId, id, tries, taken, signal, begun }: Running, memory: OwnMemory): Promise<number | undefined> {
    const entry = await responses.find(userId, id);
    const run = entry?.body.run;
    if (!entry || !run || !isRunning(entry.status)) return undefined;
    const encoder = encoderOf(entry, run);
    if (run.cancelWanted || isCancellation(signal)) encoder.cancel();
    else if (run.spoke || tries > mostTries || taken > steps.mostTakes) encoder.fail(restarted);
    else return speak({ entry, run, encoder, taken, signal, begun, memory });
    await conclude(entry, run, encoder, new RunBroadcast());
    return undefined;
  }

  const encoderOf = ({ body: { response } }: Entry, { request }: Run) =>
    new Encoder({ response, encrypted: givesEncrypted(request), now: () => Math.floor(clock.now() / 1000), frame: noFrame });

  /** A run whose key is no longer good does not wait for its turn to be told so. */
  async function dismiss(userId: number): Promise<void> {
    const waiting = Map.groupBy(await runs.waiting(userId), ({ keyId }) => keyId);
    for (const [keyId, some] of waiting) {
      const fault = await rights.callerOf({ userId, keyId }).then(() => undefined, refusalIn);
      if (!fault) continue;
      for (const { id, job } of some) {
        const entry = await responses.find(userId, id);
        const run = entry?.body.run;
        if (entry && run && isRunning(entry.status)) {
          const encoder = encoderOf(entry, run);
          encoder.fail(encodeFault(fault).error);
          await conclude(entry, run, encoder, new RunBroadcast());
        }
        await runs.cancel(job);
      }
    }
  }

  interface Speaking {
    readonly entry: Entry;
    readonly run: Run;
    readonly encoder: Encoder;
    readonly taken: number;
    readonly signal: AbortSignal;
    readonly begun: () => void;
    readonly memory: OwnMemory;
  }

  async function speak(speaking: Speaking): Promise<number | undefined> {
    const { entry, run, encoder } = speaking;
    const live = new RunBroadcast();
    lives.set(entry.id, live);
    try {
      const seconds = await listen(speaking, live);
      if (seconds === undefined) await conclude(entry, run, encoder, live);
      return seconds;
    } finally {
      live.end();
      lives.delete(entry.id);
    }
  }

  /** Takes down what is said, until it has ended one way or another. @returns the seconds to wait where a limit did not let it begin. @throws what stops the process, or keeps the caller from being looked up: it goes on later then */
  async function listen({ entry, run, encoder, taken, signal, begun, memory }: Speaking, live: RunBroadcast): Promise<number | undefined> {
    const over = new AbortController();
    const cancelTimer = clock.after(limits().streamSeconds * 1000, () => over.abort(new Fault('timed-out', 'The answer took too long.')));
    let caller: Caller | undefined;
    const progress: Context['progress'] = { attempts: [] };
    const who = { userId: entry.userId, keyId: run.keyId };
    const unwatch = rights.watch({ caller: who, cut: (reason) => over.abort(reason) }); // first: else a change could come in between
    try {
      caller = mayRun(await rights.callerOf(who));
      const context = { ...contextOf(run, caller, taken, AbortSignal.any([signal, over.signal])), progress, memory };
      const earlier = entry.previousId === undefined ? [] : await responses.chain(entry.userId, entry.previousId, 'previous_response_id');
      const call = { ...callOf(run.request, [...earlier.flatMap(turnsIn), ...entry.body.said]), stream: true };
      let spoke = false;
      for await (const events of generate(call, context)) {
        begun();
        for (const event of events) encoder.encode(event);
        if (!spoke && events.some(speaks)) {
          spoke = true;
          signal.throwIfAborted();
          const spoken: Entry = { ...entry, status: 'in_progress', body: { ...entry.body, response: encoder.response, run: { ...run, spoke } } };
          if (!(await responses.renew(spoken, runningStatuses))) throw gone();
        }
        for (const event of events) {
          memory.add(sizeOf(event));
          live.say(event);
        }
      }
      encoder.finish();
    } catch (error) {
      if (!caller && faultOf(error).code === 'overloaded') throw error;
      if (!signal.aborted && !over.signal.aborted && live.events.length === 0 && progress.attempts.length === 0) {
        const { code, details } = faultOf(error);
        if (code === 'rate-limited') return details.retryAfter ?? 1;
      }
      if (signal.aborted && !isCancellation(signal) && !(await isCancelled(entry))) throw error;
      if (progress.booked) encoder.encode({ type: 'usage', usage: progress.booked });
      if (signal.aborted) encoder.cancel();
      else encoder.fail(encodeFault(faultOf(inClientsWords(reasonOf(error, over.signal), { fieldOf }))).error);
    } finally {
      cancelTimer();
      unwatch();
    }
    return undefined;
  }

  async function isCancelled({ userId, id }: Entry): Promise<boolean> {
    const entry = await responses.find(userId, id);
    return !entry || entry.body.run?.cancelWanted === true;
  }

  async function conclude(entry: Entry, run: Run, { response }: Encoder, { events }: RunBroadcast): Promise<void> {
    const { userId, previousId, body } = entry;
    const ground = { said: body.said, ...(previousId === undefined ? {} : { previousId }) };
    const ended = entryOf(userId, ground, response, fold(events).candidates[0]?.parts ?? []);
    const whole = { ...ended, body: { ...ended.body, run: { ...run, spoke: true as const, ...(run.request.stream ? { events } : {}) } } };
    const goesOn = run.conversationId !== undefined && (response['status'] === 'completed' || response['status'] === 'incomplete');
    if (!goesOn) return void (await responses.renew(whole, runningStatuses));
    try {
      await conversations.add(run.conversationId, whole, runningStatuses);
    } catch (error) {
      if (!(error instanceof Fault) || (error.code !== 'conflict' && error.code !== 'not-found')) throw error;
      await responses.renew(whole, runningStatuses); // the conversation went on without it, or was deleted
    }
  }

  async function cancel(entry: Entry): Promise<JsonObject> {
    const { userId, id, body } = entry;
    const { run } = body;
    if (!run) throw new Fault('invalid', 'Only a response that was made with background can be cancelled.', { field: 'response_id' });
    if (!isRunning(entry.status)) return body.response;
    if (!(await responses.renew({ ...entry, body: { ...body, run: { ...run, cancelWanted: true } } }, [entry.status]))) return asItIs(entry);
    await runs.cancel(run.job);
    for (let waited = 0; waited < cancelMilliseconds; waited += lookMilliseconds) {
      const now = await responses.find(userId, id);
      if (now && !isRunning(now.status)) return now.body.response;
      if (!lives.has(id) && entry.status === 'queued') break; // it never began
      await clock.sleep(lookMilliseconds);
    }
    const response = { ...body.response, status: 'cancelled' };
    return (await responses.renew({ ...entry, status: 'cancelled', body: { ...body, response } }, runningStatuses)) ? response : asItIs(entry);
  }

  /** A response that went on meanwhile. */
  async function asItIs({ userId, id }: Entry): Promise<JsonObject> {
    const entry = await responses.find(userId, id);
    if (!entry) throw gone();
    return isRunning(entry.status) ? cancel(entry) : entry.body.response;
  }

  rights.hear(dismiss);
  runs.work(work);
  return { begin, cancel, live: (id) => lives.get(id) };
}

const restarted = { type: 'server_error', code: 'gateway_restarted', param: null, message: 'The server was restarted in the middle of the answer: ask again.' };

/** Was the run cancelled? Its entry may not say so: what was said first is written over it. */
const isCancellation = ({ reason }: AbortSignal): boolean => reason instanceof Cancelled;

/** Inner steps of a request count on, so that each time a run is taken up is booked by itself. */
function contextOf({ requestId, app, strict, targets, tags, headers, cacheSeconds }: Run, caller: Caller, taken: number, signal: AbortSignal): Context {
  const step = (taken - 1) * steps.take;
  return { requestId, step, caller, face: 'chatcompat', app, signal, strict, targets, tags, headers, cacheSeconds, progress: { attempts: [] } };
}

/** The key may have been narrowed since. @throws Fault `forbidden` */
function mayRun(caller: Caller): Caller {
  if (caller.scopes && !caller.scopes.includes('passthrough')) throw new Fault('forbidden', 'This key lacks the scope passthrough.', { reason: 'scope' });
  return caller;
}

/** Why a key is not good. @throws what kept that from being found out */
function refusalIn(error: unknown): Fault {
  if (error instanceof Fault && error.code === 'unauthenticated') return error;
  throw error;
}
