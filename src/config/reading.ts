import type { Settings } from './schema/index.ts';
import type { Sources } from './sources.ts';

/** Settings, and where they were found. */
export interface Reading {
  readonly settings: Settings;
  /** The absolute path of the file that was read, if there was one. */
  readonly file?: string;
  /** Where that file is, or would be. */
  readonly path: string;
  readonly sources: Sources;
  /** The settings in the file that are accepted and not yet in effect, by their names. */
  readonly notInEffect: readonly string[];
}
