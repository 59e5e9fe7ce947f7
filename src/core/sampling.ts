/** Sampling parameters, and the maximum length of the answer. */
export interface Sampling {
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  /** Maximum output tokens per candidate, thoughts included. */
  readonly maxTokens?: number;
  readonly frequencyPenalty?: number;
  readonly presencePenalty?: number;
  /** The number of candidates; absent: 1. */
  readonly candidates?: number;
  readonly seed?: number;
  readonly stop?: readonly string[];
  /** Log probabilities are requested, with this number of alternatives per token (0–20). */
  readonly logprobs?: number;
  /** Token id → bias, −100 to 100. */
  readonly logitBias?: Readonly<Record<string, number>>;
}
