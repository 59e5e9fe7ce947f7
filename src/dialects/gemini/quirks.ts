/** How a provider, or one of its models, differs from the others of this wire. */
export interface Quirks {
  /** It does not know the ids of function calls. */
  readonly withoutIds?: boolean;
  /** It refuses to be told how to think. */
  readonly withoutThinking?: boolean;
  /** Efforts whose budget it refuses. */
  readonly refusedEfforts?: readonly string[];
  /** It takes function calls back only with a signature; for those that have none there is a word that stands for it. */
  readonly signed?: boolean;
}
