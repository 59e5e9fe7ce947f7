import type { Output } from '#core/call';
import type { Caller } from '#core/context';
import type { Generate } from '#core/generate';
import type { JsonObject } from '#core/json';
import type { UploadedFile } from '#http/uploads';

/** What becomes of a plugin with its values: a question for a model, or an answer that it makes itself. */
export type PluginRun =
  | {
      readonly type: 'question';
      readonly message: string;
      /** The message with what has to be read for it, in its place: called when it is known that the answer can be paid for. @throws Fault `invalid` */
      readonly whole?: () => Promise<string>;
      readonly output?: Output;
    }
  | { readonly type: 'own'; readonly generate: Generate };

export interface AskedPlugin {
  readonly caller: Caller;
  readonly name: string;
  /** In place of the name, which it then says in refusals. */
  readonly id?: number;
  /** Of the plugin that is meant: one that has changed since is not run. */
  readonly digest?: string;
  /** As the client sent them; undefined: they are in `text`. */
  readonly values: unknown;
  /** What stands behind the name of the plugin in a message: a line for each field, as `get-plugins` shows it, or the text alone. */
  readonly text?: string;
  readonly files: readonly UploadedFile[];
  readonly signal: AbortSignal;
}

export interface RunnablePlugin {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** JSON Schema of its values; absent: any object. */
  readonly fields?: JsonObject;
}

/** A plugin as a model may call it. */
export interface CallablePlugin {
  readonly id: number;
  readonly name: string;
  readonly description: string;
  /** JSON Schema of its values. */
  readonly fields: JsonObject;
  /** Nothing changes by it. */
  readonly isReadOnly: boolean;
  /** It asks others than a model, such as a page of the web, who learn what it is given. */
  readonly tells: boolean;
  /** Tells what it does and takes. */
  readonly digest: string;
}

export interface Plugins {
  /** Those that the caller may run: the built-in ones, their own, and those shared with them. Of several of one name `run` takes the first. */
  list(caller: Caller): Promise<readonly RunnablePlugin[]>;
  /** A plugin that a model calls with values. @throws Fault `not-found` for one that the caller may not use, `unprocessable` for one that needs a file */
  callable(caller: Caller, id: number): Promise<CallablePlugin>;
  /** Makes a plugin ready that the caller may use. @returns undefined where there is none of that name. @throws Fault `invalid` for values that it does not take, `conflict` where it has changed */
  run(asked: AskedPlugin): Promise<PluginRun | undefined>;
  isThere(caller: Caller, name: string): Promise<boolean>;
}
