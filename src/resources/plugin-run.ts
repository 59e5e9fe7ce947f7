import type { Output } from '#core/call';
import type { Caller } from '#core/context';
import type { Generate } from '#core/generate';
import type { UploadedFile } from '#http/uploads';

/** What becomes of a plugin with its values: a question for a model, or an answer that it makes itself. */
export type PluginRun =
  | { readonly type: 'question'; readonly message: string; readonly output?: Output }
  | { readonly type: 'own'; readonly generate: Generate };

export interface AskedPlugin {
  readonly caller: Caller;
  readonly name: string;
  /** As the client sent them; undefined: they are in `text`. */
  readonly values: unknown;
  /** What stands behind the name of the plugin in a message: a line for each field, as `get-plugins` shows it, or the text alone. */
  readonly text?: string;
  readonly files: readonly UploadedFile[];
  readonly signal: AbortSignal;
}

export interface Plugins {
  /** Makes a plugin ready that the caller may use. @returns undefined where there is none of that name. @throws Fault `invalid` for values that it does not take */
  run(asked: AskedPlugin): Promise<PluginRun | undefined>;
  isThere(caller: Caller, name: string): Promise<boolean>;
}
