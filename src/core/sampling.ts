/** How an answer is drawn, and how long it may be. */
export interface Sampling {
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  /** Upper bound of the answer's tokens, thoughts included, for each candidate. */
  readonly maxTokens?: number;
  readonly frequencyPenalty?: number;
  readonly presencePenalty?: number;
  /** How many answers to make; 1 when absent. */
  readonly candidates?: number;
  readonly seed?: number;
  readonly stop?: readonly string[];
  /** Log probabilities are wanted, with so many alternatives a token (0–20). */
  readonly logprobs?: number;
  /** Token id → bias, −100 to 100. */
  readonly logitBias?: Readonly<Record<string, number>>;
}
