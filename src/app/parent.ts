import type { RegionState } from '#gateway/routing/regions';
import type { LeaseSource } from '#core/lease';

/** What a worker asks its parent for: everything that exists once per machine. */
export interface Parent {
  readonly leases: LeaseSource;
  /** The name of its journal. */
  readonly journal: { readonly holder: string; readonly writer: string };
  /** The token for commands on this machine. */
  readonly localToken: string;
  /** The metrics of all processes, in the Prometheus text format. */
  metrics(): Promise<string>;
  /** The state of the regions, as all processes see it together. */
  regions(): Promise<readonly RegionState[]>;
  /** Ends all cooldowns in all processes. */
  resetRegions(): Promise<void>;
  /** What the machine lacks to take requests: `database`, `writable database`, `stopping`. */
  missing(): Promise<readonly string[]>;
}
