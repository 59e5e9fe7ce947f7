import type { GenerateCall } from './call.ts';
import type { Caller, Choices, Context } from './context.ts';
import type { Part, ToolCallPart } from './conversation.ts';
import type { FinishReason } from './event.ts';
import type { FaultCode } from './fault.ts';
import type { Json, JsonObject } from './json.ts';
import type { AskUser, QuestionAnswer, UserQuestion } from './questions.ts';

export type { QuestionAnswer } from './questions.ts';

/*
 * A run: work of an agent that outlives the request that began it. It is a function, the loop, whose steps are stored: after the process has died the loop is
 * called again from its start, and each step that was completed gives what it gave before. So a loop decides by the results of its steps alone, and everything
 * that it does, says or asks is in a step.
 */

export type RunKind = 'agent' | 'deep_agent';

export type RunState = 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled';

/** What a run waits for its user to decide. */
export type WaitsFor = ApprovalWanted | QuestionAsked;

export interface ApprovalWanted extends Pick<RunToolCall, 'call' | 'server' | 'tool' | 'arguments'> {
  readonly type: 'approval';
}

export interface QuestionAsked extends UserQuestion {
  readonly type: 'question';
  readonly question: string;
}

export interface PlanItem {
  readonly id: string;
  readonly text: string;
  readonly state: 'waiting' | 'running' | 'done' | 'dropped';
}

/** What a run tells those who follow it. */
export type RunEvent =
  | RunEventOf<'run.started', { readonly kind: RunKind; readonly agentId: number | null; readonly version: number | null; readonly message: string }>
  | RunEventOf<'plan.created' | 'plan.updated', { readonly items: readonly PlanItem[] }>
  | RunEventOf<'step.started', { readonly step: number; readonly name: string }>
  | RunEventOf<'reasoning.delta' | 'message.delta', { readonly delta: string }>
  | RunEventOf<'tool.call' | 'approval.wanted', Omit<ApprovalWanted, 'type'>>
  | RunEventOf<'tool.result', { readonly call: string; readonly text: string; readonly isError: boolean; readonly scratch: string | null }>
  | RunEventOf<'question.asked', Omit<QuestionAsked, 'type'>>
  | RunEventOf<'agent.started', { readonly name: string; readonly task: string }>
  | RunEventOf<'agent.finished', { readonly name: string; readonly text: string }>
  | RunEventOf<'citation', JsonObject>
  | RunEventOf<'usage', RunUsage>
  | RunEventOf<'warning', { readonly message: string }>
  | RunEventOf<'run.completed' | 'run.cancelled', RunEnding>
  | RunEventOf<'run.failed', RunFailure>;

interface RunEnding {
  readonly message: string;
  readonly citations: readonly JsonObject[];
}

interface RunFailure extends RunEnding {
  /** Code of the fault; absent in runs of earlier releases. */
  readonly code?: FaultCode;
}

interface RunEventOf<Event extends string, Data> {
  readonly event: Event;
  readonly data: Data;
}

/** An event as it is kept and sent. */
export type ToldEvent = RunEvent & {
  /** ISO 8601. */
  readonly timestamp: string;
  readonly run: number;
  /** From 1, without gaps. */
  readonly seq: number;
  /** `main`, or `main/<name>` of a part of the run. */
  readonly place: string;
};

export interface RunUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly planTokens: number;
  /** Null where no price is known. */
  readonly costUsd: number | null;
}

/** What a run may use, all of its parts together. */
export interface RunLimits {
  /** Answers of models. */
  readonly steps: number;
  /** Calls of tools. */
  readonly calls: number;
  /** Time at work: a run that waits for its user takes none. */
  readonly seconds: number;
  /** Input and output tokens. */
  readonly tokens: number;
}

/** What passes a text on as it comes, in another form. */
export interface TextFilter {
  /** @returns what may be passed on */
  take(piece: string): string;
  /** The rest, when the text is complete. */
  end(): string;
}

export interface ModelAnswer {
  readonly parts: readonly Part[];
  readonly text: string;
  readonly calls: readonly ToolCallPart[];
  readonly reason: FinishReason;
}

/** A call of a tool as it is authorised, told and counted. */
export interface RunToolCall {
  /** Unique in its part of the run. */
  readonly call: string;
  readonly tool: string;
  /** The name of the MCP server; null for other tools. */
  readonly server: string | null;
  readonly arguments: JsonObject;
  /** Nothing changes by it: it may be made again where it is not known whether it was made. */
  readonly isReadOnly: boolean;
  /** The user is asked first. */
  readonly needsApproval: boolean;
  /** What else an approval with `always` is of, in the whole run: calls with the same name here. Absent: each call is asked for. */
  readonly approvedWith?: string;
}

export interface ToolOutcome {
  readonly text: string;
  readonly isError: boolean;
  /** Passages that the text is of, as items of `citation` events without their numbers. */
  readonly citations?: readonly JsonObject[];
  /** The user was asked and approved it: this call, or all later ones of the tool too. Set by the run. */
  readonly approved?: 'once' | 'all';
}

/** What the work of a tool is given. */
export interface ToolContext {
  /** Who runs it, as of now. */
  readonly caller: Caller;
  /** For booked calls: within the steps of this call of the tool. */
  readonly context: Context;
  readonly ask: AskUser;
}

export interface AnswerOptions {
  readonly name?: string;
  readonly isQuiet?: boolean;
  readonly shown?: TextFilter;
}

/** A run as its loop sees it. */
export interface Run {
  readonly id: string;
  readonly requestId: string;
  readonly place: string;
  /** What it was begun with. */
  readonly asked: RunAsked;
  readonly limits: RunLimits;
  /** What it has taken of its limits so far, all of its parts together: to be asked in the work of a step, as it is another each time. */
  used(): RunLimits;
  /** Aborted when the run is cancelled, its time is over, its user's rights end, or the process stops. */
  readonly signal: AbortSignal;
  /** Who runs it, as of now. @throws Fault `unauthenticated` */
  caller(): Promise<Caller>;
  /** Tells an event: to be called in the work of a step. It reaches clients when it is stored, within 100 ms. */
  emit(event: RunEvent): void;
  /**
   * Does the work, once: its result is stored with all that was told before it is given back. Work that was interrupted is done again.
   * @param key unique in this part of the run, and the same each time that the loop is called
   */
  step<Result extends Json | void>(key: string, work: () => Promise<Result>): Promise<Result>;
  /**
   * An answer of a model: booked, counted as a step, its text told as it comes.
   * @param options `name`: of the step, for clients; `isQuiet`: the text is not told, as it is not for the user; `shown`: what the text goes through before it
   * is told
   * @throws Fault of the pipeline, and `unprocessable` where a limit of the run is reached
   */
  answer(key: string, call: Omit<GenerateCall, 'stream'>, options?: AnswerOptions): Promise<ModelAnswer>;
  /**
   * Calls a tool once, after its approval where one is needed. A refusal, a call that was interrupted and must not be made again, a failure (a Fault) and the
   * third call with the same arguments are outcomes for the model. A text over 32 KB is moved to the scratch, and cut.
   * @throws RunWaits; Fault `unprocessable` where a limit of the run is reached
   */
  tool(call: RunToolCall, work: (asking: ToolContext) => Promise<ToolOutcome>): Promise<ToolOutcome>;
  /** Asks the user. @param question unique in this part of the run @throws RunWaits until it is answered */
  ask(question: Omit<QuestionAsked, 'type'>): Promise<QuestionAnswer>;
  /** A part of the run with a place of its own, and the same limits, such as a sub-agent: `agent.started`, `agent.finished` around it. @returns what it gave */
  part(name: string, task: string, work: (run: Run) => Promise<string>): Promise<string>;
  /** Does several things at once. One that waits for the user or fails stops none of the others; then the run waits or fails. */
  all<Item, Result>(items: readonly Item[], work: (item: Item, at: number) => Promise<Result>, most?: number): Promise<readonly Result[]>;
  /** A piece of a text that was moved to the scratch; undefined: there is none of this name. */
  scratch(name: string, from: number, length: number): Promise<{ readonly text: string; readonly length: number } | undefined>;
}

/** What a run is begun with; sealed at rest. */
export interface RunAsked extends Omit<Choices, 'app'> {
  readonly message: string;
  /** Of the client. */
  readonly address?: string | undefined;
  /** What its loop needs besides, such as the definition of the agent. */
  readonly more: JsonObject;
}

export interface RunEnd {
  readonly message: string;
  /** Items as of `citation` events. */
  readonly citations?: readonly JsonObject[];
}

/** @throws RunWaits, and Fault: the run then fails with its message */
export type RunLoop = (run: Run) => Promise<RunEnd>;

/** Thrown through a loop when its run waits for its user: nothing is to catch it. */
export class RunWaits extends Error {
  readonly waitsFor: WaitsFor;
  /** Of the step that the answer completes. */
  readonly key: string;

  constructor(waitsFor: WaitsFor, key: string) {
    super('The run waits for its user.');
    this.name = 'RunWaits';
    this.waitsFor = waitsFor;
    this.key = key;
  }
}

export interface NewRun {
  readonly kind: RunKind;
  readonly agentId: number | null;
  readonly version: number | null;
  readonly asked: RunAsked;
  readonly limits: RunLimits;
  /** Of the request that begins it: the calls of the run are booked as steps of it. */
  readonly requestId: string;
  readonly caller: Caller;
  readonly app: string;
}

/** A run as its user sees it. */
export interface ShownRun extends Pick<NewRun, 'kind' | 'agentId' | 'version' | 'requestId'> {
  readonly id: string;
  readonly state: RunState;
  readonly waitsFor: WaitsFor | null;
  /** The answer, when it is completed. */
  readonly message: string | null;
  /** Why it failed. */
  readonly error: string | null;
  readonly steps: number;
  readonly calls: number;
  readonly planTokens: number;
  readonly costUsd: number | null;
  readonly startedAt: Date;
  readonly endedAt: Date | null;
}

/** The runs of users. Another's is not there. */
export interface Runs {
  /** Stores a run, which one of the processes takes up at once. @throws Fault `rate-limited` where the user has as many as may be */
  begin(run: NewRun): Promise<string>;
  /** @throws Fault `not-found` */
  one(userId: number, id: string): Promise<ShownRun>;
  /** Its events behind `after`, then those that come, to the last one or until the run waits where `untilWaits` says so. Undefined: 15 s went by without one. */
  follow(userId: number, id: string, options: FollowOptions): AsyncGenerator<ToldEvent | undefined>;
  /** Ends it, wherever it is worked on. @throws Fault `not-found`, `conflict` where it is over */
  cancel(userId: number, id: string): Promise<ShownRun>;
  /** Answers a question that a run waits for. @throws Fault `not-found`; `conflict` where it does not wait for that; `forbidden` as `RunDecider` says */
  answer(who: RunDecider, id: string, question: string, answer: QuestionAnswer): Promise<ShownRun>;
}

/** Who decides for a user how a run goes on, which it does with the rights that it was begun with: they must have all of these. */
export interface RunDecider {
  readonly userId: number;
  readonly by: Pick<Caller, 'scopes' | 'models' | 'mcpTools'>;
}

export interface FollowOptions {
  /** The number of the last event that the client has. */
  readonly after: number;
  readonly signal: AbortSignal;
  readonly untilWaits?: boolean;
}
