import type { ReturnedThoughts } from '#dialects/dialect';
import type { ThoughtMemory } from '#core/thoughts';

/** The stored thoughts, as an endpoint uses them. */
export interface EndpointThoughts {
  readonly memory: ThoughtMemory;
  /** The provider, whatever its name in the settings: its vendor or its host. */
  readonly origin: string;
  /** False: it returns no thoughts that it would accept. */
  readonly returns?: boolean;
  /** Does it refuse requests of its own API's clients that lack thoughts? Those are then looked up in the database, too. */
  demands?(): boolean;
}

export interface ThoughtContext extends EndpointThoughts {
  readonly dialect: string;
  readonly returned: ReturnedThoughts;
  /** The client speaks another dialect. */
  readonly translated: boolean;
  readonly userId: number;
}
