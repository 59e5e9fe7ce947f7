import type { Passage } from '#core/passages';

/** An answer that was given to a question, kept for those who vote on it. */
export interface GivenAnswer {
  readonly uuid: string;
  readonly userId: number;
  readonly requestId: string;
  readonly model: string;
  /** What was asked last. */
  readonly message: string;
  readonly answer: string;
  readonly passages: readonly Pick<Passage, 'id' | 'dataset' | 'filename' | 'page' | 'text'>[];
}
