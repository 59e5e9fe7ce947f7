import { type GenerateCall } from '#core/call';
import { isConversation } from '#core/routed-call';
import type { Task } from '#core/task';
import type { GenerateEvent, Events } from '#core/event';
import { Fault, faultOf } from '#core/fault';
import type { Generate } from '#core/generate';
import type { Caller, Context } from '#core/context';
import { stepOf, steps } from '#core/steps';
import type { RoutedCall } from '#core/routed-call';
import { HeldAnswer, type Segment } from '../guards/answer.ts';
import { denied, applyChecks, type Check, type EvaluationContext, type Notes, type When } from '../guards/check.ts';
import { runsOf, textsOf, withTexts } from '../guards/texts.ts';
import { warned } from './warned.ts';

/** The checks that hold for a call. */
export interface Guards {
  /** Nothing where none does. */
  of(call: RoutedCall, caller: Caller): Readonly<Record<When, readonly Check[]>> | undefined;
}

export interface GuardedDeps {
  readonly guards: () => Guards;
  /** Books a call that never went through, and throws `progress.refused`. */
  readonly refused: Generate<RoutedCall>;
}

/**
 * Has what is asked looked at before the call, and what is answered before the caller gets it. A call that no check holds for goes on untouched. It stands outside of
 * admission: what is refused before it reserves nothing, and what is denied after it was heard and booked.
 *
 * @throws Fault `invalid` (content-policy); `upstream-failed` or `overloaded` where a check cannot be made
 */
export function guarded({ guards, refused }: GuardedDeps, inner: Generate<RoutedCall>): Generate<RoutedCall> {
  return (call, context) => {
    const checks = guards().of(call, context.caller);
    return checks ? watched(checks, call, context) : inner(call, context);
  };

  async function* watched({ before, after }: Readonly<Record<When, readonly Check[]>>, call: RoutedCall, context: Context): AsyncGenerator<Events> {
    const nextStep = stepsOf(context);
    const masked = new Set<string>();
    const notes: Notes = {
      flagged: (name) => void ((context.progress.flags ??= []).includes(name) || context.progress.flags.push(name)),
      masked: (name) => void masked.add(name),
    };
    let asked: RoutedCall;
    try {
      asked = await checkedCall(before, call, { when: 'before', call, context, runs: [], nextStep }, notes);
    } catch (error) {
      if (context.signal.aborted) throw error;
      context.progress.refused = faultOf(error);
      yield* refused(call, context);
      return;
    }
    const warnings = [...masked].map((name) => `guard: the check "${name}" masked parts of the request`);
    const answer = warnings.length === 0 ? inner(asked, context) : warned(inner(asked, context), { after: warnings });
    if (after.length === 0 || !isConversation(asked)) yield* answer;
    else yield* heard(after, asked, answer, { when: 'after', call, context, runs: [], nextStep }, notes);
  }
}

/** The numbers of the calls that the checks of a step make, one after the other. */
function stepsOf({ step }: Context): () => number {
  const first = stepOf(0, 'checks', step);
  let taken = 0;
  return () => {
    if (taken === steps.check.most) throw new Fault('too-large', 'There is more to look at than checks can be made of one answer.');
    return stepOf(first, 'check', taken++);
  };
}

/** The call as it may go on. What was looked at is not passed through: nobody would listen to the answer. */
async function checkedCall(checks: readonly Check[], call: RoutedCall, looking: EvaluationContext, notes: Notes): Promise<RoutedCall> {
  if (!isConversation(call)) return checkedErrand(checks, call, looking, notes);
  const { passthrough: _, ...unread } = call;
  if (checks.length === 0) return unread;
  const texts = textsOf(unread);
  const left = await applyChecks(checks, texts, { ...looking, runs: runsOf(unread) }, notes);
  return left === texts ? unread : { ...withTexts(unread, left), route: call.route };
}

async function checkedErrand(
  checks: readonly Check[],
  task: Task & Pick<RoutedCall, 'route'>,
  looking: EvaluationContext,
  notes: Notes,
): Promise<Task & Pick<RoutedCall, 'route'>> {
  if (checks.length > 0 && task.unread !== undefined)
    throw new Fault('invalid', `${task.unread} must be text: a check holds for this request, and no check can read token ids.`, { field: task.unread });
  let by = '';
  const told: Notes = { ...notes, masked: (name) => notes.masked((by = name)) };
  const left = await applyChecks(checks, task.texts, looking, told);
  if (left === task.texts) return task;
  if (!task.withTexts) throw denied({ name: by }, looking); // its bytes go as they came: they cannot be masked
  return { ...task.withTexts(left), route: task.route };
}

/** The answer as it may be read: sentence by sentence, or whole where the settings say so or nobody reads before the end anyway. */
async function* heard(
  checks: readonly Check[],
  call: GenerateCall,
  answer: AsyncIterable<Events>,
  looking: EvaluationContext,
  notes: Notes,
): AsyncGenerator<Events> {
  const bySentence = call.stream && checks.every(({ stream }) => stream === 'sentence');
  const held = new HeldAnswer(call, bySentence, looking.context);
  let waiting: Segment[] = [];
  let refused: Fault | undefined;
  for await (const said of answer) {
    if (refused) continue; // only for what it cost
    try {
      for (const event of said) waiting.push(...held.take(event));
      if (!held.isComplete && (!bySentence || !waiting.some(({ texts }) => texts.length > 0))) continue;
      const events = await looked(waiting);
      waiting = [];
      if (events.length > 0) yield events;
    } catch (error) {
      if (looking.context.signal.aborted) throw error;
      refused = looking.context.progress.refused = faultOf(error);
      if (!held.isComplete) throw refused;
    }
  }
  if (refused) throw refused;
  const events = await looked([...waiting, ...held.end()]);
  if (events.length > 0) yield events;

  async function looked(segments: readonly Segment[]): Promise<readonly GenerateEvent[]> {
    const texts = segments.flatMap((segment) => segment.texts);
    const left = await applyChecks(checks, texts, looking, notes);
    let at = 0;
    return segments.flatMap((segment) => segment.with(left.slice(at, (at += segment.texts.length))));
  }
}
