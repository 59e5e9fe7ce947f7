import type { Settings } from '#config/index';
import type { PromptLog } from '#core/prompt-log';
import type { Clock } from '#kit/async/clock';
import { openPromptStore, type PromptStore } from '#resources/prompt-log/store';
import { problemsTo, type Log } from '#telemetry/log';
import type { Database } from './database.ts';

/** UTF-16 units that are kept of a prompt, and of an answer. */
const mostText = 2000;

export interface PromptsDeps {
  readonly database: Database;
  readonly settings: () => Settings;
  readonly clock: Clock;
  readonly log: Log;
}

/** The log of prompts and answers: where it is written, and where it is read. */
export function openPrompts({ database: { store, seal }, settings, clock, log }: PromptsDeps): { readonly written: PromptLog; readonly kept: PromptStore } {
  const kept = openPromptStore({
    store,
    seal,
    clock,
    bodies: () => settings().bodies,
    days: () => settings().retention.bodiesDays,
    log: problemsTo(log),
  });
  const written: PromptLog = {
    get most() {
      return settings().bodies === 'none' ? 0 : mostText;
    },
    tell: (told) => kept.record(told),
  };
  return { written, kept };
}
