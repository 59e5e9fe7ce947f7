import type { JsonObject } from './json.ts';

/** A question to a user, as a form or as an address. */
export interface UserQuestion {
  readonly message: string;
  /** JSON Schema of the answer. */
  readonly schema?: JsonObject;
  /** An address that the user is to visit in place of answering. */
  readonly url?: string;
}

export interface QuestionAnswer {
  readonly action: 'accept' | 'decline' | 'cancel';
  readonly content?: JsonObject;
}

/**
 * Asks the user of a run in the middle of a call, which waits. Where the process dies meanwhile, the call was interrupted.
 *
 * @param signal ends the wait
 * @returns `cancel` where the user does not answer within ten minutes, and at once where too many runs wait already or the run has waited in this way for half an hour
 */
export interface AskUser {
  (question: UserQuestion, signal: AbortSignal): Promise<QuestionAnswer>;
  readonly run: string;
}
