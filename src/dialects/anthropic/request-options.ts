import type { OutputLimit } from '../shared/output-limit.ts';

export interface RequestOptions extends OutputLimit {
  /** Whether prompts are cached without a cache breakpoint of the client. */
  readonly caching?: 'auto' | undefined;
}
