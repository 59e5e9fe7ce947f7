import type { Caller, Choices, Context } from '#core/context';
import type { Turn, WantedTool } from '#core/conversation';

/** What a deep run is to find out, and where it may look: what the request named, and nothing else. Stored with the run. */
export interface DeepQuestion {
  /** What was asked last. */
  readonly text: string;
  /** The conversation, with the question as its last turn. Text alone. */
  readonly turns: readonly Turn[];
  readonly model: string;
  /** Full names; `all`: each dataset that the user may read. */
  readonly datasets: 'all' | readonly string[];
  /** Most passages of one search; 0: nothing is looked up. */
  readonly limit: number;
  /** Whether the web is searched, where an engine is configured. */
  readonly web: boolean;
  readonly tools: readonly WantedTool[];
  /** Of the persona, or of the request. */
  readonly instructions: string;
  /** The sentence by which models know the date. */
  readonly today: string;
  readonly temperature?: number;
  readonly effort?: 'low' | 'medium' | 'high';
}

/** The deep runs of users, as questions begin them and go on from them. */
export interface DeepRuns {
  /** @returns the id of the run, which is worked on from now on. @throws Fault `rate-limited` where the user has as many as may be */
  begin(question: DeepQuestion, context: Pick<Context, 'caller' | 'requestId' | 'address' | keyof Choices>): Promise<number>;
  /** @returns undefined where there is no such run of this user */
  find(userId: number, id: number): Promise<EarlierRun | undefined>;
  /** Answers the question that a run waits for. @throws Fault `conflict` where it does not wait for it any more, `forbidden` for a key that may do less than the run's */
  answer(caller: Caller, id: number, question: string, text: string): Promise<void>;
}

/** A run as later questions see it. */
export interface EarlierRun {
  readonly isOver: boolean;
  /** Where it is complete. */
  readonly report: string | null;
  /** The id of the question that it waits for; null: for none. */
  readonly question: string | null;
}
