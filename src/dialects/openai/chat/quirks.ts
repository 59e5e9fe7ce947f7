/** Where a provider differs from the public description. */
export interface Quirks {
  /** The only name of the token limit it takes. Otherwise the one the client used, or `max_completion_tokens`. */
  readonly maxTokensField?: 'max_tokens' | 'max_completion_tokens';
  /** False: it refuses `stream_options`. Otherwise streams always ask for usage. */
  readonly usage?: boolean;
  /** False: it refuses `reasoning_effort`. */
  readonly effort?: boolean;
  /** Values of `reasoning_effort` that it refuses. */
  readonly refusedEfforts?: readonly string[];
}
