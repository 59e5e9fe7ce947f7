import type { Rig } from './rig.ts';

/** One thing to find out. A file each; runnable alone: `npm run bench -- chat`. */
export interface Question {
  readonly name: string;
  ask(rig: Rig): Promise<Row[]>;
}

/** One line of the table. */
export interface Row {
  readonly what: string;
  readonly who: string;
  /** In the unit that `what` names. */
  readonly value: number;
  readonly timesFloor?: number | undefined;
  readonly timesNginx?: number | undefined;
  /** Microseconds of PostgreSQL's own CPU a request. */
  readonly database?: number | undefined;
  readonly note?: string;
  readonly bars?: readonly Bar[];
}

/** A figure that a row is held to. */
export interface Bar {
  readonly says: string;
  /** `undefined`: what it is compared with was not measured. */
  readonly held: boolean | undefined;
  readonly stretch?: true;
}

/** A bar that is held while the measured figure is at most so much. */
export function atMost(says: string, measured: number | undefined, limit: number): Bar {
  return { says, held: measured === undefined ? undefined : measured <= limit };
}

/** A bar that is held while the measured figure is at least so much. */
export function atLeast(says: string, measured: number | undefined, limit: number): Bar {
  return { says, held: measured === undefined ? undefined : measured >= limit };
}

/** A bar that nobody has to hold: as good as it could be. */
export function stretch(says: string, measured: number | undefined, limit: number): Bar {
  return { ...atMost(says, measured, limit), stretch: true };
}
