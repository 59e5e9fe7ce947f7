import type { GenerateCall } from '#core/call';
import type { Caller, Context } from '#core/context';
import type { ConvertDocument } from '#core/document';
import type { Generate } from '#core/generate';
import type { KnownModels } from '#core/known-models';
import type { CountTokens } from '#core/measure';
import type { SearchPassages } from '#core/passages';
import type { Clock } from '#kit/async/clock';
import type { Plugins } from '../plugin-run.ts';
import type { DeepRuns } from '../deep-question.ts';
import type { GivenAnswer } from '../given-answer.ts';
import type { WaitingTools } from './mcp-tools.ts';
import type { Web } from './web.ts';

export interface QueryDeps {
  readonly generate: Generate;
  /** Checks that a call could be made and paid for now. @throws Fault as `generate` does before any provider is asked */
  readonly affords: (call: GenerateCall, context: Context) => Promise<void>;
  /** Takes the permit of a request, which its answer does not take again. @throws Fault as `affords` */
  readonly enters: (context: Context) => Promise<void>;
  readonly models: (caller: Caller) => KnownModels;
  /** Names of models: of a question that names none, of follow-up questions, and of what words questions anew (undefined: nothing does). */
  readonly defaults: () => { readonly chat: string; readonly followUp: string; readonly rewording: string | undefined };
  /** The system prompt of a persona. @throws Fault `not-found` for one that the caller may not use */
  readonly promptOf: (caller: Caller, persona: number) => Promise<string>;
  readonly search: SearchPassages;
  /** Absent: attached files are not read. */
  readonly convert: ConvertDocument | undefined;
  readonly plugins: Plugins;
  readonly countTokens: CountTokens;
  readonly web: Web;
  /** Calls of tools that wait for their user. */
  readonly waiting: WaitingTools;
  readonly deepRuns: DeepRuns;
  /** Keeps what was answered, for those who vote on it. */
  readonly keep: (answer: GivenAnswer) => Promise<void>;
  /** Whether an answer begins with two line breaks. */
  readonly leadingNewlines: () => boolean;
  readonly clock: Clock;
}
