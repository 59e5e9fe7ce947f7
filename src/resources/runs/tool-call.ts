import type { Caller, Context } from '#core/context';
import { Fault, faultOf } from '#core/fault';
import type { Json } from '#core/json';
import type { UserQuestion } from '#core/questions';
import { RunWaits, type RunEvent, type RunToolCall, type ToolContext, type ToolOutcome } from '#core/run';
import type { Clock } from '#kit/async/clock';
import { orAborted } from '#kit/async/or-aborted';
import type { LiveQuestions } from './live-question.ts';
import type { StepRow } from './rows.ts';
import type { RunWriter } from './writer.ts';

/** What a call of a tool needs of its run. */
export interface Toolbox {
  readonly id: string;
  readonly signal: AbortSignal;
  readonly repeated: Map<string, number>;
  readonly shared: {
    readonly steps: ReadonlyMap<string, Pick<StepRow, 'number' | 'state'>>;
    readonly writer: RunWriter;
    readonly live: Pick<LiveQuestions, 'ask'>;
    readonly clock: Pick<Clock, 'sleep'>;
    /** What was approved with `always` since the run was taken up. */
    readonly approved: Set<string>;
  };
  caller(): Promise<Caller>;
  emit(event: RunEvent): void;
  keyOf(kind: string, key: string): string;
  doneOf(key: string): { readonly result: unknown } | undefined;
  /** The same in all parts of the run. */
  sharedKeyOf(kind: string, key: string): string;
  keep(step: Omit<StepRow, 'sealed'>, result?: Json): Promise<void>;
  numbered(what: 'steps' | 'calls' | 'again'): number;
  contextOf(number: number, caller: Caller): Context;
  count(context: Context): void;
  scratchKeyOf(name: string): string;
}

/** What the user said of a call. */
export interface Approval {
  readonly approved: boolean;
  /** Later calls of the tool need no approval. */
  readonly always: boolean;
}

/** The first call of a tool with these arguments that is not made, and the first that ends the run. */
const [refusedAt, endedAt] = [3, 6];
/** UTF-8 bytes of a result that the model is shown whole, and characters of what it is shown of a longer one. */
const [mostShown, shownOfLonger] = [32_768, 8000];
/** Characters of a result. */
const mostOfAll = 1_048_576;

const failed = (text: string): ToolOutcome => ({ text, isError: true });

/** Calls a tool of a run, once: see `Run.tool`. */
export async function callTool(run: Toolbox, call: RunToolCall, work: (asking: ToolContext) => Promise<ToolOutcome>): Promise<ToolOutcome> {
  const key = run.keyOf('tool', call.call);
  const times = repeated(run, call);
  const done = run.doneOf(key);
  if (done) return done.result as ToolOutcome;
  run.signal.throwIfAborted();
  const before = run.shared.steps.get(key);
  if (!before) {
    if (times >= endedAt) throw new Fault('unprocessable', `The run ended: the model goes on calling ${call.tool.slice(0, 100)} with the same arguments.`);
    const number = run.numbered('calls');
    const { call: id, tool, server, arguments: args } = call;
    run.emit({ event: 'tool.call', data: { call: id, tool, server, arguments: args } });
    if (times >= refusedAt)
      return finish(run, key, number, call, failed('This call was made with the same arguments before: use its result, or go on in another way.'));
    if (call.needsApproval && !isApprovedForAll(run, call)) return wait(run, { key, number, state: 'told' }, call);
    return make(run, { key, number }, call, work);
  }
  if (before.state === 'begun') {
    if (!call.isReadOnly) return wait(run, { key, number: before.number, state: 'interrupted' }, call);
    if (run.shared.steps.has(askedKey(run, call))) run.emit({ event: 'warning', data: { message: lost(call) } });
    return make(run, { key, number: run.numbered('again') }, call, work);
  }
  const answered = run.doneOf(approvalKey(run, call, before));
  const isCovered = before.state === 'told' && isApprovedForAll(run, call);
  if (!answered && !isCovered) throw waits(run, call, before);
  const said = answered ? (answered.result as Approval) : { approved: true, always: true };
  if (!said.approved) return finish(run, key, before.number, call, failed(refusals[before.state === 'interrupted' ? 'again' : 'first']));
  if (said.always) await approveForAll(run, call);
  // a call that was interrupted may have been booked in part
  const number = before.state === 'interrupted' ? run.numbered('again') : before.number;
  return make(run, { key, number }, call, work, said.always ? 'all' : 'once');
}

const refusals = {
  first: 'The user did not approve this call.',
  again: 'The call was interrupted, and it is not known whether it took effect. The user did not want it to be made again.',
};

function repeated({ repeated: counts }: Toolbox, { tool, server, arguments: args }: RunToolCall): number {
  const what = JSON.stringify([server, tool, args]);
  const times = (counts.get(what) ?? 0) + 1;
  counts.set(what, times);
  return times;
}

const approvalKey = (run: Toolbox, { call }: RunToolCall, { number, state }: Pick<StepRow, 'number' | 'state'>) =>
  run.keyOf('approval', JSON.stringify([call, number, state]));

const forAllKey = (run: Toolbox, name: string) => run.sharedKeyOf('approved', name);

/** Whether the user has approved all calls like this one, in whichever part of the run. */
const isApprovedForAll = (run: Toolbox, { approvedWith }: RunToolCall): boolean =>
  approvedWith !== undefined && (run.shared.approved.has(approvedWith) || run.doneOf(forAllKey(run, approvedWith)) !== undefined);

async function approveForAll(run: Toolbox, call: RunToolCall): Promise<void> {
  const { approvedWith } = call;
  if (approvedWith === undefined || isApprovedForAll(run, call)) return;
  run.shared.approved.add(approvedWith);
  await run.keep({ key: forAllKey(run, approvedWith), number: -1, state: 'done' }, null);
}

async function wait(run: Toolbox, step: Omit<StepRow, 'sealed'>, call: RunToolCall): Promise<never> {
  if (step.state === 'interrupted')
    run.emit({ event: 'warning', data: { message: `The call of ${call.tool} was interrupted, and it is not known whether it took effect.` } });
  const { call: id, tool, server, arguments: args } = call;
  run.emit({ event: 'approval.wanted', data: { call: id, tool, server, arguments: args } });
  await run.keep(step);
  throw waits(run, call, step);
}

const waits = (run: Toolbox, call: RunToolCall, step: Pick<StepRow, 'number' | 'state'>) =>
  new RunWaits({ type: 'approval', call: call.call, server: call.server, tool: call.tool, arguments: call.arguments }, approvalKey(run, call, step));

async function make(
  run: Toolbox,
  step: Pick<StepRow, 'key' | 'number'>,
  call: RunToolCall,
  work: (asking: ToolContext) => Promise<ToolOutcome>,
  approved?: ToolOutcome['approved'],
): Promise<ToolOutcome> {
  await run.keep({ ...step, state: 'begun' });
  const caller = await run.caller();
  const context = { ...run.contextOf(step.number, caller), targets: undefined }; // a tool asks models of its own
  let questions = 0;
  const asks = async (asked: UserQuestion, signal: AbortSignal) => {
    const question = `${call.call}.${step.number}.${++questions}`;
    if (!run.shared.steps.has(askedKey(run, call))) await run.keep({ key: askedKey(run, call), number: -1, state: 'told' });
    return run.shared.live.ask(run, run.keyOf('question', question), { question, ...asked }, AbortSignal.any([signal, run.signal]));
  };
  const ask = Object.assign(asks, { run: run.id });
  const outcome = await untilAborted(
    work({ caller, context, ask }).catch((error: unknown) => {
      run.signal.throwIfAborted();
      if (error instanceof RunWaits || !(error instanceof Fault) || ending.has(error.code)) throw error;
      return failed(`The tool could not be called: ${faultOf(error).message}`);
    }),
    run,
  ).finally(() => run.count(context));
  return finish(run, step.key, step.number, call, { ...outcome, ...(approved ? { approved } : {}) });
}

/** Of a call that has asked its user something. */
const askedKey = (run: Toolbox, { call }: RunToolCall) => run.keyOf('asked', call);

const lost = ({ tool }: RunToolCall) => `The connection of ${tool} was lost while it waited for you: it is called again, and may ask again.`;

/** Faults that another call of the run would meet again. */
const ending: ReadonlySet<string> = new Set(['quota-spent', 'unauthenticated']);

/** Milliseconds in which the work may end by itself when it is aborted: what it has spent is known then. */
const endingMilliseconds = 500;

/** The work, as long as the signal lets it: one that does not listen is left behind. */
async function untilAborted<Result>(work: Promise<Result>, { signal, shared: { clock } }: Pick<Toolbox, 'signal' | 'shared'>): Promise<Result> {
  try {
    return await orAborted(work, signal);
  } catch (error) {
    const ended = new AbortController();
    const end = () => ended.abort();
    work.then(end, end);
    if (signal.aborted) await clock.sleep(endingMilliseconds, ended.signal).catch(() => {});
    throw error;
  }
}

/** Reports and stores the result of a call. */
async function finish(run: Toolbox, key: string, number: number, { call }: RunToolCall, outcome: ToolOutcome): Promise<ToolOutcome> {
  const whole = Buffer.from(outcome.text.slice(0, mostOfAll)).toString();
  const isLong = Buffer.byteLength(whole) > mostShown;
  const scratch = isLong ? `result-${number}` : null;
  if (scratch !== null) run.shared.writer.add({ key: run.scratchKeyOf(scratch), number: -1, state: 'scratch' }, whole);
  const text =
    scratch === null
      ? whole
      : `${whole.slice(0, shownOfLonger).toWellFormed()}\n[The whole text has ${whole.length} characters. Read the rest with read_scratch, name "${scratch}".]`;
  const { isError } = outcome;
  const shown: ToolOutcome = { ...outcome, text };
  run.emit({ event: 'tool.result', data: { call, text, isError, scratch } });
  await run.keep({ key, number, state: 'done' }, shown as unknown as Json);
  return shown;
}
