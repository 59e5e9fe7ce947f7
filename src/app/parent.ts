import type { RegionState } from '#gateway/routing/regions';
import type { LeaseSource } from '#core/lease';

/** What a worker leaves to its parent: whatever is one for the machine. */
export interface Parent {
  readonly leases: LeaseSource;
  /** Where its journal is to lie. */
  readonly journal: { readonly holder: string; readonly writer: string };
  /** Good for commands on this machine. */
  readonly localToken: string;
  /** The figures of all processes, as Prometheus reads them. */
  metrics(): Promise<string>;
  /** How the regions stand, as all processes see them together. */
  regions(): Promise<readonly RegionState[]>;
  /** Has all processes forget what ails the regions. */
  resetRegions(): Promise<void>;
  /** What the machine lacks before it can take requests. */
  missing(): Promise<readonly string[]>;
}
