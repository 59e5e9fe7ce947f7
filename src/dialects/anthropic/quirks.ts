/** How a provider's model differs from the others of this wire. */
export interface Quirks {
  /** It thinks by effort alone and refuses budgets. */
  readonly adaptive?: boolean;
  /** Sampling fields that it refuses. */
  readonly without?: readonly ('temperature' | 'top_p' | 'top_k')[];
}
