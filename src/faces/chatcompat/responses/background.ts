import { textOf, type JsonObject } from '#core/json';
import { Fault } from '#core/fault';
import type { Context } from '#core/context';
import type { GenerateCall } from '#core/call';
import type { ResponsesRequest } from '#dialects/openai/responses/wire';
import type { Exchange } from '#http/exchange';
import { isRunning, runningStatuses, type Continuation } from './continuation.ts';
import { gone, streamEntry } from './replay.ts';
import type { RunBroadcast } from './run-broadcast.ts';
import { RunWorker, type RunWorkerDeps } from './run-worker.ts';
import type { Entry, Run } from './stored-body.ts';

export interface Beginning {
  readonly exchange: Exchange;
  readonly request: ResponsesRequest;
  /** As it is while nothing is known. */
  readonly response: JsonObject;
  readonly continuation: Continuation;
  readonly call: GenerateCall;
  readonly context: Context;
}

/** Background responses: runs that no open connection waits for. */
export interface Background {
  /** Queues a run and answers with it, or with its stream. @throws Fault `not-found` for an unknown model, `quota-spent` or `rate-limited` for what cannot be paid or queued */
  begin(beginning: Beginning): Promise<void>;
  /** Ends a run. @returns the response as it ended */
  cancel(entry: Entry): Promise<JsonObject>;
  /** A run of this process. */
  live(id: string): RunBroadcast | undefined;
}

export interface BackgroundDeps extends RunWorkerDeps {
  /** Could this call be made and paid for now? @throws Fault */
  readonly affords: (call: GenerateCall, context: Context) => Promise<void>;
}

/** Milliseconds for which the end of a cancelled run is awaited, and how often it is looked for. */
const cancelMilliseconds = 2000;
const lookMilliseconds = 20;

/** Registers the worker of this process for queued runs. */
export function openBackground(deps: BackgroundDeps): Background {
  const { responses, runs, rights, clock, limits, affords } = deps;
  const worker = new RunWorker(deps);
  rights.hear((userId) => worker.dismiss(userId));
  runs.work((running) => worker.work(running));
  return { begin, cancel, live: (id) => worker.live(id) };

  async function begin({ exchange, request, response, continuation, call, context }: Beginning): Promise<void> {
    await affords({ ...call, stream: true }, context);
    const { previousId, said } = continuation;
    const { userId, keyId } = context.caller;
    const id = textOf(response['id']);
    await runs.begin(
      (job) => ({
        userId,
        id,
        ...(previousId === undefined ? {} : { previousId }),
        status: 'queued',
        items: said.length,
        body: { response, said, run: runOf(job, request, continuation, context) },
      }),
      keyId,
    );
    if (!request.stream) return exchange.sendJson(200, response);
    await streamEntry({ clock, limits, find: () => responses.find(userId, id), live: () => worker.live(id) }, exchange, -1);
  }

  async function cancel(entry: Entry): Promise<JsonObject> {
    const { userId, id, body } = entry;
    const { run } = body;
    if (!run) throw new Fault('invalid', 'Only a response that was made with background can be cancelled.', { field: 'response_id' });
    if (!isRunning(entry.status)) return body.response;
    if (!(await responses.renew({ ...entry, body: { ...body, run: { ...run, cancelWanted: true } } }, [entry.status]))) return asItIs(entry);
    await runs.cancel(run.job);
    for (let waited = 0; waited < cancelMilliseconds; waited += lookMilliseconds) {
      const current = await responses.find(userId, id);
      if (current && !isRunning(current.status)) return current.body.response;
      if (!worker.live(id) && entry.status === 'queued') break; // it never began
      await clock.sleep(lookMilliseconds);
    }
    const response = { ...body.response, status: 'cancelled' };
    return (await responses.renew({ ...entry, status: 'cancelled', body: { ...body, response } }, runningStatuses)) ? response : asItIs(entry);
  }

  /** A response that changed in the meantime. */
  async function asItIs({ userId, id }: Entry): Promise<JsonObject> {
    const entry = await responses.find(userId, id);
    if (!entry) throw gone();
    return isRunning(entry.status) ? cancel(entry) : entry.body.response;
  }
}

/** A run as it is stored: what its call needs that is not in the request. */
function runOf(job: string, request: ResponsesRequest, { conversationId }: Continuation, context: Context): Run {
  const { caller, app, strict, targets, tags, headers, cacheSeconds, requestId } = context;
  return {
    job,
    request,
    requestId,
    keyId: caller.keyId,
    app,
    strict,
    targets,
    tags,
    headers,
    cacheSeconds,
    ...(conversationId === undefined ? {} : { conversationId }),
  };
}
