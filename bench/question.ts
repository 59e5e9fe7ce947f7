import type { Rig } from './rig.ts';

/** One thing to measure: one file, which can be run alone (`npm run bench -- chat`). README.md explains each. */
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
  /** CPU time of PostgreSQL, in microseconds per request. */
  readonly database?: number | undefined;
  readonly note?: string;
  readonly bars?: readonly Bar[];
}

/** A limit that a row is held to. */
export interface Bar {
  readonly says: string;
  /** `undefined` if what it is compared with was not measured. */
  readonly held: boolean | undefined;
  readonly stretch?: true;
}

/** A bar that is held if the measured figure is at most `limit`. */
export function atMost(says: string, measured: number | undefined, limit: number): Bar {
  return { says, held: measured === undefined ? undefined : measured <= limit };
}

/** A bar that is held if the measured figure is at least `limit`. */
export function atLeast(says: string, measured: number | undefined, limit: number): Bar {
  return { says, held: measured === undefined ? undefined : measured >= limit };
}

/** A goal beyond the bars: missing it is not a failure. */
export function stretch(says: string, measured: number | undefined, limit: number): Bar {
  return { ...atMost(says, measured, limit), stretch: true };
}
