import type { GenerateCall } from '#core/call';
import { isConversation, type RoutedCall } from '#core/routed-call';
import type { Task } from '#core/task';
import type { GenerateEvent, Events } from '#core/event';
import { Fault, faultOf } from '#core/fault';
import { where, type Generate } from '#core/generate';
import type { Caller, Context, Review } from '#core/context';
import { withoutPassthrough } from '#core/passthrough';
import { stepOf, steps } from '#core/steps';
import { withWholeAnswers } from '#core/whole-answers';
import { HeldAnswer, type Segment } from '../guards/answer.ts';
import { denied, applyChecks, type Check, type EvaluationContext, type Notes, type When } from '../guards/check.ts';
import { runsOf, textsOf, withTexts } from '../guards/texts.ts';
import { warned } from './warned.ts';

/** The checks that apply to a call. */
export interface Guards {
  /** Undefined if none applies. */
  of(call: RoutedCall, caller: Caller): Readonly<Record<When, readonly Check[]>> | undefined;
}

export interface GuardedDeps {
  readonly guards: () => Guards;
  /** Books a call that a check denied before it was made. @throws Fault `overloaded` while nothing can be booked */
  readonly recordRefusal: (call: RoutedCall, context: Context, refusal: Fault) => Promise<void>;
}

/**
 * Guardrails: checks a call before it is made, and its answer before the caller gets it. A call without applicable checks passes unchanged. Checks are outside
 * admission: a call that is denied before it is made reserves nothing, and an answer that is denied has been paid for.
 * @throws Fault `invalid` (content-policy); `upstream-failed` or `overloaded` if a check cannot be made
 */
export function guarded({ guards, recordRefusal }: GuardedDeps, inner: Generate<RoutedCall>): Generate<RoutedCall> {
  return where((call, { caller }) => guards().of(call, caller), checked, inner);

  async function* checked({ before, after }: Readonly<Record<When, readonly Check[]>>, call: RoutedCall, context: Context): AsyncGenerator<Events> {
    const { signal, progress } = context;
    const nextStep = stepsOf(context);
    const masked = new Set<string>();
    const notes: Notes = {
      flagged: (name) => void ((progress.flags ??= []).includes(name) || progress.flags.push(name)),
      masked: (name) => void masked.add(name),
    };
    let asked: RoutedCall;
    try {
      asked = await checkedCall(before, call, { when: 'before', call, context, runs: [], nextStep }, notes);
    } catch (error) {
      if (signal.aborted) throw error;
      const refusal = faultOf(error);
      await recordRefusal(call, context, refusal);
      throw refusal;
    }
    const warnings = [...masked].map((name) => `guard: the check "${name}" masked parts of the request`);
    const answer = (reviewed: Context) => (warnings.length === 0 ? inner(asked, reviewed) : warned(inner(asked, reviewed), { after: warnings }));
    if (after.length === 0 || !isConversation(asked)) {
      yield* answer(context);
      return;
    }
    const review: Review = { outer: context.review };
    const at = { when: 'after', call, context, runs: [], nextStep } as const;
    yield* checkedAnswer({ checks: after, call: asked, review, at, notes }, answer({ ...context, review }));
  }
}

/** Numbers the calls that the checks of a step make. */
function stepsOf({ step }: Context): () => number {
  const first = stepOf(0, 'checks', step);
  let taken = 0;
  return () => {
    if (taken === steps.check.most) throw new Fault('too-large', 'The answer needs more checks than are allowed for one answer.');
    return stepOf(first, 'check', taken++);
  };
}

/** The checked call, without passthrough, in which the answer could not be read. */
async function checkedCall(checks: readonly Check[], call: RoutedCall, at: EvaluationContext, notes: Notes): Promise<RoutedCall> {
  if (!isConversation(call)) return checkedTask(checks, call, at, notes);
  const unread = withoutPassthrough(call);
  if (checks.length === 0) return unread;
  const decoded = { ...unread, turns: withWholeAnswers(unread) }; // what a check looks for may be cut in two by the pieces
  const texts = textsOf(decoded);
  const left = await applyChecks(checks, texts, { ...at, runs: runsOf(decoded) }, notes);
  return left === texts ? decoded : { ...withTexts(decoded, left), route: call.route };
}

async function checkedTask(
  checks: readonly Check[],
  task: Task & Pick<RoutedCall, 'route'>,
  at: EvaluationContext,
  notes: Notes,
): Promise<Task & Pick<RoutedCall, 'route'>> {
  if (checks.length > 0 && task.unread !== undefined)
    throw new Fault('invalid', `${task.unread} must be text: a check applies to this request, and checks cannot read token IDs.`, { field: task.unread });
  let by = '';
  const noted: Notes = { ...notes, masked: (name) => notes.masked((by = name)) };
  const left = await applyChecks(checks, task.texts, at, noted);
  if (left === task.texts) return task;
  if (!task.withTexts) throw denied({ name: by }, at); // its bytes are forwarded unparsed, so they cannot be masked
  return { ...task.withTexts(left), route: task.route };
}

/** An answer that is checked before the caller gets it. */
interface Checking {
  readonly checks: readonly Check[];
  readonly call: GenerateCall;
  readonly review: Review;
  readonly at: EvaluationContext;
  readonly notes: Notes;
}

/** The checked answer: sentence by sentence, or whole if the settings say so or the answer is not streamed. */
async function* checkedAnswer({ checks, call, review, at, notes }: Checking, answer: AsyncIterable<Events>): AsyncGenerator<Events> {
  const bySentence = call.stream && checks.every(({ stream }) => stream === 'sentence');
  const held = new HeldAnswer(call, bySentence, at.context);
  let waiting: Segment[] = [];
  for await (const events of answer) {
    if (review.refusal) continue; // read on only for the usage
    try {
      for (const event of events) waiting.push(...held.take(event));
      if (!held.isComplete && (!bySentence || !waiting.some(({ texts }) => texts.length > 0))) continue;
      const passed = await applied(waiting);
      waiting = [];
      if (passed.length > 0) yield passed;
    } catch (error) {
      if (at.context.signal.aborted) throw error;
      review.refusal = faultOf(error);
      if (!held.isComplete) throw review.refusal;
    }
  }
  if (review.refusal) throw review.refusal;
  const last = await applied([...waiting, ...held.end()]);
  if (last.length > 0) yield last;

  async function applied(segments: readonly Segment[]): Promise<readonly GenerateEvent[]> {
    const texts = segments.flatMap((segment) => segment.texts);
    const left = await applyChecks(checks, texts, at, notes);
    let from = 0;
    return segments.flatMap((segment) => segment.with(left.slice(from, (from += segment.texts.length))));
  }
}
