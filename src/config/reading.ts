import type { Settings } from './schema/index.ts';
import type { Sources } from './sources.ts';
import type { UnreadVariable } from './unread.ts';

/** Settings and their sources. */
export interface Reading {
  readonly settings: Settings;
  /** What each source gives, before defaults are filled in. */
  readonly given: readonly Readonly<Record<string, unknown>>[];
  /** The absolute path of the file that was read, if there was one. */
  readonly file?: string;
  /** The path of the settings file, whether or not it exists. */
  readonly path: string;
  readonly sources: Sources;
  /** The settings of the file that are accepted but not yet in effect, by dotted path. */
  readonly notInEffect: readonly string[];
  /** The variables of vendors' SDKs that are set and do nothing here. */
  readonly unread: readonly UnreadVariable[];
  /** Sentences about keys that are the name of a variable in place of its value. */
  readonly unfilled: readonly string[];
  /** Sentences about lines of the `.env` file that set nothing. */
  readonly unreadLines: readonly string[];
  /** Sentences about files and programs that the settings name and that are not there. */
  readonly missing: readonly string[];
  /** Sentences about providers that no model uses. */
  readonly unused: readonly string[];
}
