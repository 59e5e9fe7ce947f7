import { createHash } from 'node:crypto';
import type { GenerateCall } from '#core/call';
import type { Caller, Context } from '#core/context';
import { wordsIn } from '#core/conversation';
import { Fault } from '#core/fault';
import { fold } from '#core/fold';
import type { Generate } from '#core/generate';
import type { Json } from '#core/json';
import { promptSize } from '#core/measure';
import type { Permits } from '#core/permits';
import {
  RunWaits,
  type AnswerOptions,
  type ModelAnswer,
  type QuestionAnswer,
  type QuestionAsked,
  type Run,
  type RunAsked,
  type RunEvent,
  type RunLimits,
  type RunToolCall,
  type RunUsage,
  type TextFilter,
  type ToolContext,
  type ToolOutcome,
} from '#core/run';
import { stepOf, steps as stepRanges } from '#core/steps';
import { inUnits } from '#kit/text/in-units';
import type { Clock } from '#kit/async/clock';
import { fewAtOnce } from '#kit/async/few-at-once';
import type { LiveQuestions } from './live-question.ts';
import { patient } from '#store/patience';
import type { RunRows, StepRow, TakenRun } from './rows.ts';
import { callTool, type Toolbox } from './tool-call.ts';
import type { TokenShares } from './token-shares.ts';
import type { RunWriter } from './writer.ts';

export interface WorkingDeps {
  readonly generate: Generate;
  readonly rows: Pick<RunRows, 'opened' | 'scratch' | 'lost'>;
  /** Who runs it, as of now. @throws Fault */
  readonly callerOf: () => Promise<Caller>;
  readonly memory: Context['memory'];
  readonly clock: Clock;
  readonly writer: RunWriter;
  readonly signal: AbortSignal;
}

/** What all parts of a run share. */
export interface Shared extends WorkingDeps {
  readonly taken: TakenRun;
  /** What was spent on answers that died with a process which had the run before. */
  lost: RunUsage;
  readonly asked: RunAsked;
  readonly steps: Map<string, Pick<StepRow, 'number' | 'state' | 'sealed'>>;
  readonly permits: Permits;
  readonly live: LiveQuestions;
  readonly shares: TokenShares;
  /** What was approved with `always` since the run was taken up. */
  readonly approved: Set<string>;
}

/** Events that may wait to be written before a model that talks faster waits too. */
const mostUnwritten = 500;
/** Things of one part that are done at once. */
const usualAtOnce = 8;
/** Tokens that an answer has at most, as far as is known: where fewer are left it is told how long it may be. */
const usualAnswer = 16_384;
/** Of a prompt, as it is estimated. */
const bytesPerToken = 3;

/** A run that this process works on, or a part of it. */
export class WorkingRun implements Run, Toolbox {
  readonly place: string;
  readonly shared: Shared;
  /** How often each tool was called with the same arguments. */
  readonly repeated = new Map<string, number>();

  constructor(shared: Shared, place: string) {
    this.shared = shared;
    this.place = place;
  }

  get id(): string {
    return this.shared.taken.id;
  }

  get requestId(): string {
    return this.shared.taken.requestId;
  }

  get asked(): RunAsked {
    return this.shared.asked;
  }

  get limits(): RunLimits {
    return this.shared.taken.limits;
  }

  used(): RunLimits {
    const { steps, calls, workedMs } = this.shared.writer.counted;
    return { steps, calls, seconds: workedMs / 1000, tokens: this.limits.tokens - this.#tokensLeft() };
  }

  get signal(): AbortSignal {
    return this.shared.signal;
  }

  caller(): Promise<Caller> {
    return this.shared.callerOf();
  }

  emit(event: RunEvent): void {
    this.shared.writer.tell(this.place, event);
  }

  async step<Result extends Json | void>(key: string, work: () => Promise<Result>): Promise<Result> {
    const own = this.keyOf('step', key);
    const done = this.doneOf(own);
    if (done) return done.result as Result;
    this.signal.throwIfAborted();
    const result = await patient(work, this.shared);
    await this.keep({ key: own, number: -1, state: 'done' }, result ?? null);
    return result;
  }

  async answer(key: string, call: Omit<GenerateCall, 'stream'>, { name = 'answer', isQuiet = false, shown }: AnswerOptions = {}): Promise<ModelAnswer> {
    const own = this.keyOf('answer', key);
    const done = this.doneOf(own);
    if (done) return done.result as ModelAnswer;
    const { writer, shares } = this.shared;
    const asked = { ...call, stream: true };
    const { fixed, bytes } = promptSize(asked);
    const prompt = fixed + Math.ceil(bytes / bytesPerToken);
    await this.#lookForLost();
    const most = Math.min(usualAnswer, call.sampling.maxTokens ?? Infinity);
    const share = await shares.take({ left: () => this.#tokensLeft(), tokens: prompt + most, signal: this.signal });
    try {
      if (share <= prompt) throw ended(`its limit of ${this.limits.tokens} tokens, of which too few are left for another answer`);
      const number = this.numbered('steps');
      this.emit({ event: 'step.started', data: { step: writer.counted.steps, name } });
      await this.keep({ key: own, number, state: 'begun' });
      const isShort = share < prompt + most;
      const shorter = isShort ? { sampling: { ...call.sampling, maxTokens: share - prompt } } : {};
      const result = await this.#begun({ ...asked, ...shorter }, number, isQuiet ? quiet : (shown ?? plain));
      if (isShort && result.reason === 'length')
        this.emit({ event: 'warning', data: { message: `An answer was cut off: few of the ${this.limits.tokens} tokens of the run were left.` } });
      await this.#tellUsage();
      await this.keep({ key: own, number, state: 'done' }, result as unknown as Json);
      return result;
    } finally {
      shares.give(share);
    }
  }

  tool(call: RunToolCall, work: (asking: ToolContext) => Promise<ToolOutcome>): Promise<ToolOutcome> {
    return callTool(this, call, work);
  }

  async ask(question: Omit<QuestionAsked, 'type'>): Promise<QuestionAnswer> {
    const key = this.keyOf('question', question.question);
    const done = this.doneOf(key);
    if (done) return done.result as QuestionAnswer;
    if (!this.shared.steps.has(key)) {
      this.emit({ event: 'question.asked', data: question });
      await this.keep({ key, number: -1, state: 'told' });
    }
    throw new RunWaits({ type: 'question', ...question }, key);
  }

  async part(name: string, task: string, work: (run: Run) => Promise<string>): Promise<string> {
    const key = this.keyOf('part', name);
    const done = this.doneOf(key);
    if (done) return done.result as string;
    if (!this.shared.steps.has(key)) {
      this.emit({ event: 'agent.started', data: { name, task } });
      await this.keep({ key, number: -1, state: 'told' });
    }
    const text = await work(new WorkingRun(this.shared, `${this.place}/${name}`));
    this.emit({ event: 'agent.finished', data: { name, text } });
    await this.keep({ key, number: -1, state: 'done' }, text);
    return text;
  }

  async all<Item, Result>(items: readonly Item[], work: (item: Item, at: number) => Promise<Result>, most = usualAtOnce): Promise<readonly Result[]> {
    const settled = await fewAtOnce(
      items.map((item, at) => ({ item, at })),
      most,
      async ({ item, at }) => {
        try {
          return { result: await work(item, at) };
        } catch (error) {
          return { error };
        }
      },
    );
    this.signal.throwIfAborted();
    const failures = settled.flatMap((one) => ('error' in one ? [one.error] : []));
    if (failures.length > 0) throw failures.find((error) => !(error instanceof RunWaits)) ?? failures[0];
    return settled.flatMap((one) => ('result' in one ? [one.result] : []));
  }

  async scratch(name: string, from: number, length: number): Promise<{ readonly text: string; readonly length: number } | undefined> {
    const { rows, taken } = this.shared;
    await this.shared.writer.flush();
    const sealed = await patient(() => rows.scratch(taken.id, this.scratchKeyOf(name)), this.shared);
    if (!sealed) return undefined;
    const text = rows.opened(taken.userId, sealed) as string;
    return { text: text.slice(Math.max(0, from), Math.max(0, from) + length).toWellFormed(), length: text.length };
  }

  scratchKeyOf(name: string): string {
    return digest('scratch', name);
  }

  keyOf(kind: string, key: string): string {
    return digest(this.place, kind, key);
  }

  sharedKeyOf(kind: string, key: string): string {
    return digest('', kind, key);
  }

  /** The result of a step that is done. */
  doneOf(key: string): { readonly result: unknown } | undefined {
    const step = this.shared.steps.get(key);
    return step?.state === 'done' && step.sealed ? { result: this.shared.rows.opened(this.shared.taken.userId, step.sealed) } : undefined;
  }

  /** Writes a step, and knows it from now on. */
  async keep(step: Omit<StepRow, 'sealed'>, result?: Json): Promise<void> {
    if (result === undefined) this.shared.steps.set(step.key, { ...step, sealed: null });
    await this.shared.writer.save(step, result);
  }

  /** The number of the next booked step; `again`: one that has been counted. @throws Fault `unprocessable` where a limit of the run is reached */
  numbered(what: 'steps' | 'calls' | 'again'): number {
    const { writer, taken } = this.shared;
    const { counted } = writer;
    const { limits } = taken;
    if (what !== 'again' && counted[what] >= limits[what])
      throw ended(`its limit of ${what === 'steps' ? inUnits(limits.steps, 'steps') : `${inUnits(limits.calls, 'calls')} of tools`}`);
    if (this.#tokensLeft() <= 0) throw ended(`its limit of ${limits.tokens} tokens`);
    if (counted.numbered >= stepRanges.run.most) throw ended(`${stepRanges.run.most} steps and calls, which is the most that a run has`);
    if (what !== 'again') counted[what]++;
    return counted.numbered++;
  }

  contextOf(number: number, caller: Caller): Context {
    const { taken, asked, signal, permits, memory } = this.shared;
    return {
      requestId: taken.requestId,
      step: stepOf(0, 'run', number),
      caller,
      face: 'native',
      address: asked.address,
      app: taken.app,
      tags: asked.tags,
      targets: asked.targets,
      signal,
      strict: asked.strict ?? false,
      cacheSeconds: asked.cacheSeconds,
      headers: {},
      permits,
      progress: { attempts: [] },
      memory,
    };
  }

  /** Adds what was booked with a context. */
  count({ progress: { booked, planTokens = 0, costUsd } }: Context): void {
    const { counted } = this.shared.writer;
    counted.inputTokens += booked?.input ?? 0;
    counted.outputTokens += booked?.output ?? 0;
    counted.planTokens += planTokens;
    if (costUsd !== undefined) counted.costUsd = (counted.costUsd ?? 0) + costUsd;
  }

  async #tellUsage(): Promise<void> {
    await this.#lookForLost();
    const { writer, lost } = this.shared;
    const { inputTokens, outputTokens, planTokens, costUsd } = writer.counted;
    const data = {
      inputTokens: inputTokens + lost.inputTokens,
      outputTokens: outputTokens + lost.outputTokens,
      planTokens: planTokens + lost.planTokens,
      costUsd: costUsd === null && lost.costUsd === null ? null : (costUsd ?? 0) + (lost.costUsd ?? 0),
    };
    this.emit({ event: 'usage', data });
  }

  /** What died with another process may be booked only now. */
  async #lookForLost(): Promise<void> {
    const { taken, rows } = this.shared;
    if (taken.numbered > 0) this.shared.lost = await patient(() => rows.lost(taken.id), this.shared);
  }

  #tokensLeft(): number {
    const { lost, writer } = this.shared;
    return this.limits.tokens - lost.inputTokens - lost.outputTokens - writer.counted.inputTokens - writer.counted.outputTokens;
  }

  #tellText(delta: string): void {
    if (delta !== '') this.emit({ event: 'message.delta', data: { delta } });
  }

  /** The answer, when it can begin: it waits for a full minute of its user, and for quotas and the journal where they are away. */
  async #begun(call: GenerateCall, number: number, shown: TextFilter | typeof quiet): Promise<ModelAnswer> {
    const { clock } = this.shared;
    const until = clock.monotonic() + mostWaitMilliseconds;
    for (;;) {
      const context = this.contextOf(number, await this.caller());
      try {
        return await this.#said(call, context, shown).finally(() => this.count(context));
      } catch (error) {
        const seconds = context.progress.attempts.length > 0 ? undefined : secondsToWait(error);
        if (seconds === undefined || this.signal.aborted || clock.monotonic() + seconds * 1000 > until) throw error;
        await clock.sleep(seconds * 1000, this.signal);
      }
    }
  }

  async #said(call: GenerateCall, context: Context, shown: TextFilter | typeof quiet): Promise<ModelAnswer> {
    const { generate, writer } = this.shared;
    const all = [];
    for await (const events of generate(call, context)) {
      this.signal.throwIfAborted();
      for (const event of events) {
        all.push(event);
        if (shown === quiet || !('candidate' in event) || event.candidate !== 0) continue;
        if (event.type === 'text' || event.type === 'refusal') this.#tellText(shown.take(event.text));
        else if (event.type === 'thought' && event.text !== '') this.emit({ event: 'reasoning.delta', data: { delta: event.text } });
      }
      if (writer.unwritten > mostUnwritten) await writer.flush();
    }
    if (shown !== quiet) this.#tellText(shown.end());
    const [first] = fold(all).candidates;
    const parts = first?.parts ?? [];
    return {
      parts,
      text: wordsIn(parts),
      calls: parts.filter((part) => part.type === 'tool-call'),
      reason: first?.reason ?? 'stop',
    };
  }
}

/** How long an answer waits until it begins. */
const mostWaitMilliseconds = 300_000;

/** Until an answer that could not begin may; undefined: waiting does not help. */
function secondsToWait(error: unknown): number | undefined {
  if (!(error instanceof Fault) || error.details.unbegun !== true) return undefined;
  return Math.max(1, error.details.retryAfter ?? 1);
}

const quiet = 'quiet';
const plain: TextFilter = { take: (piece) => piece, end: () => '' };

const ended = (limit: string) => new Fault('unprocessable', `The run ended: it has reached ${limit}.`);

const digest = (...words: readonly string[]): string => createHash('sha256').update(JSON.stringify(words)).digest('base64url');
