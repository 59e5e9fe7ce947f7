import type { Caller } from '#core/context';
import { Fault, faultOf, type FaultCode } from '#core/fault';
import type { Generate } from '#core/generate';
import type { Json } from '#core/json';
import { Permits } from '#core/permits';
import { RunWaits, type RunAsked, type RunEnd, type RunKind, type RunLoop } from '#core/run';
import { requireScope } from '#core/scopes';
import { Cancelled } from '#kit/async/client-left';
import type { Clock } from '#kit/async/clock';
import type { OwnMemory } from '#kit/memory/byte-budget';
import { randomText } from '#kit/crypto/ids';
import { patient } from '#store/patience';
import { nothingLost, type RunRows, type TakenRun } from './rows.ts';
import { limitedTime } from './limited-time.ts';
import { LiveQuestions, type LiveWaits } from './live-question.ts';
import { TokenShares } from './token-shares.ts';
import { WorkingRun } from './working-run.ts';
import { RunLost, RunWriter, type KeptEvent } from './writer.ts';

export interface RunWorkerDeps {
  readonly rows: RunRows;
  readonly loops: Readonly<Record<RunKind, RunLoop>>;
  readonly generate: Generate;
  readonly rights: {
    callerOf(who: Pick<Caller, 'userId' | 'keyId'>): Promise<Caller>;
    watch(ongoing: { readonly caller: Pick<Caller, 'userId' | 'keyId'>; allows(caller: Caller): void; cut(reason: Fault): void }): () => void;
  };
  /** Calls back when something of a run was changed. @returns what ends that */
  readonly onChange: (id: string, heard: () => void) => () => void;
  readonly waits: LiveWaits;
  readonly memoryOf: (userId: number) => OwnMemory;
  readonly clock: Clock;
  readonly log: (problem: string, cause: unknown) => void;
}

/** Milliseconds between two looks for the memory that a run needs. It keeps its place meanwhile. */
const roomMilliseconds = 100;
/** Of the step that keeps how long the run has waited while a process kept it. */
const waitedKey = 'waited';

/** Works on a run that this process has taken up, until it ends, waits, or is interrupted. @throws RunLost, and the signal's reason where the process stops: it is taken up again */
export async function workOn({ id, job }: { readonly id: string; readonly job: string }, signal: AbortSignal, deps: RunWorkerDeps): Promise<void> {
  const { rows } = deps;
  const holder = randomText(16);
  const taken = await rows.take(id, job, holder);
  if (!taken) return;
  if (taken.cancelWanted || isCancelled(signal)) return void (await rows.end(id, endingOf(rows, taken, deps.clock, { state: 'cancelled' }), holder));
  const over = new AbortController();
  const patience = { clock: deps.clock, signal };
  const { userId, keyId, limits } = taken;
  const owner = { userId, keyId };
  const memory = deps.memoryOf(userId);
  const writer = new RunWriter(taken, { rows, holder, ...patience, kept: (bytes) => memory.add(bytes), broke: (error) => over.abort(error) });
  const permits = new Permits();
  const time = limitedTime(deps.clock, limits.seconds * 1000 - taken.workedMs, () => over.abort(tookTooLong(limits.seconds)));
  const rest = () => {
    const [goOn, write] = [time.rest(), writer.rest()];
    return () => {
      goOn();
      write();
    };
  };
  const onChange = (heard: () => void) => deps.onChange(id, heard);
  const note = (waited: number) => writer.add({ key: waitedKey, number: -1, state: 'done' }, waited);
  const asking = { rows, runId: id, userId, holder, ...patience, waits: deps.waits, permits, onChange, rest, note };
  const unwatch = deps.rights.watch({ caller: owner, allows: mayRun, cut: (reason) => over.abort(reason) });
  permits.hold();
  try {
    const either = AbortSignal.any([signal, over.signal]);
    while (!either.aborted && !memory.take(taken.bytes)) await deps.clock.sleep(roomMilliseconds, either).catch(() => {});
    either.throwIfAborted();
    const asked = rows.opened(userId, taken.asked) as unknown as RunAsked;
    const callerOf = async () => mayRun(await patient(() => deps.rights.callerOf(owner), patience).catch(lost));
    const first = await callerOf().catch(orFault);
    const steps = new Map((await patient(() => rows.steps(id), patience).catch(lost)).map(({ key, ...step }) => [key, step]));
    const waited = steps.get(waitedKey)?.sealed;
    const live = new LiveQuestions({ ...asking, lost: (error) => over.abort(error) }, waited ? Number(rows.opened(userId, waited)) : 0);
    const shared = {
      ...deps,
      live,
      callerOf,
      memory,
      permits,
      writer,
      signal: either,
      taken,
      lost: taken.numbered > 0 ? await patient(() => rows.lost(id), patience).catch(lost) : nothingLost,
      asked,
      steps,
      approved: new Set<string>(),
      shares: new TokenShares(),
    };
    const run = new WorkingRun(shared, 'main');
    if (taken.seq === 0) run.emit({ event: 'run.started', data: { kind: taken.kind, agentId: taken.agentId, version: taken.version, message: asked.message } });
    if (first instanceof Fault) throw first;
    const end = await deps.loops[taken.kind](run);
    await writer.flush();
    await patient(() => rows.end(id, endingOf(rows, taken, deps.clock, { state: 'completed', ...end }), holder), patience).catch(lost);
  } catch (error) {
    await concluded(error, { taken, holder, writer, signal, over: over.signal }, deps);
  } finally {
    time.end();
    unwatch();
    permits.release();
    memory.letGo();
  }
}

interface Interrupted {
  readonly taken: TakenRun;
  readonly holder: string;
  readonly writer: RunWriter;
  /** Of the job. */
  readonly signal: AbortSignal;
  readonly over: AbortSignal;
}

/** Lets a run wait, ends it, or leaves it to be taken up again. @throws in the last case */
async function concluded(cause: unknown, { taken, holder, writer, signal, over }: Interrupted, { rows, clock, log }: RunWorkerDeps): Promise<void> {
  const { id, userId } = taken;
  const end = (ending: Ending & { readonly state: 'failed' | 'cancelled' }) =>
    patient(() => rows.end(id, endingOf(rows, taken, clock, ending), holder), { clock, signal });
  if (isCancelled(signal)) {
    await writer.flush().catch(() => {});
    return void (await end({ state: 'cancelled' }));
  }
  const isLost = cause instanceof RunLost || over.reason instanceof RunLost;
  if (signal.aborted && !isLost) await writer.flush().catch(() => {}); // what was spent on work that is done again
  if (signal.aborted || isLost) throw new RunLost(cause);
  const unwritten = await writer.flush().then(
    () => undefined,
    (problem: unknown) => problem,
  );
  if (unwritten instanceof RunLost) throw unwritten;
  if (cause instanceof RunWaits && unwritten === undefined) {
    const waiting = rows.sealed(userId, { waitsFor: cause.waitsFor, key: cause.key } as unknown as Json);
    const isWaiting = await patient(() => rows.wait(id, holder, waiting), { clock, signal });
    if (!isWaiting) await end({ state: 'cancelled' });
    return;
  }
  const fault = faultOf(over.aborted ? over.reason : (unwritten ?? cause));
  if (fault.code === 'internal') log('A run failed.', cause);
  await end({ state: 'failed', message: fault.message, code: fault.code });
}

/** A database that stays away says nothing of the run. @throws RunLost in its place */
function lost(error: unknown): never {
  throw error instanceof Fault && error.code !== 'overloaded' ? error : new RunLost(error);
}

function orFault(error: unknown): Fault {
  if (error instanceof Fault) return error;
  throw error;
}

interface Ending extends Partial<RunEnd> {
  readonly state: 'completed' | 'failed' | 'cancelled';
  readonly code?: FaultCode;
}

/** The last event of a run, and what is kept of how it ended. */
export function endingOf(rows: RunRows, { userId }: Pick<TakenRun, 'userId'>, clock: Clock, { state, message = '', citations = [], code }: Ending) {
  const data = { message: message.toWellFormed(), citations, ...(code ? { code } : {}) };
  const event: KeptEvent = { event: `run.${state}`, data, timestamp: new Date(clock.now()).toISOString(), place: 'main' };
  return { state, ending: rows.sealed(userId, data), event: rows.sealed(userId, [event] as unknown as Json) };
}

const isCancelled = ({ reason }: AbortSignal): boolean => reason instanceof Cancelled;

const tookTooLong = (seconds: number) => new Fault('timed-out', `The run ended: it has reached its limit of ${seconds} seconds at work.`);

/** The key may have been narrowed since. @throws Fault `forbidden` */
function mayRun(caller: Caller): Caller {
  requireScope(caller, 'agent_builder');
  return caller;
}
