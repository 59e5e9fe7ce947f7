import { isTranslated, type GenerateCall } from '#core/call';
import { own } from '#core/json';
import { acceptedEffort, type KnownEfforts } from '../accepted-effort.ts';
import { dialect } from './wire.ts';

/** What a model accepts as `reasoning_effort`. */
export interface EffortQuirks extends KnownEfforts {
  /** False: it refuses `reasoning_effort`, whatever its value. */
  readonly effort?: boolean;
}

/** The effort that a call is sent with, and a warning where that is not the one it has. */
export interface SentEffort {
  readonly effort?: string;
  readonly warning?: string;
}

/** The effort of a client of this wire is sent unchanged. That of another becomes the nearest that the model accepts. */
export function sentEffort(call: Pick<GenerateCall, 'dialect' | 'reasoning' | 'extra'>, quirks: EffortQuirks): SentEffort {
  const asked = call.reasoning?.effort;
  if (!isTranslated(call, dialect)) {
    const { '.reasoning_effort': written = asked ?? null } = own(call.extra, dialect);
    return typeof written === 'string' ? { effort: written } : {};
  }
  if (asked === undefined) return {};
  if (quirks.effort === false) return { warning: 'reasoning_effort: this model does not take it.' };
  const effort = acceptedEffort(asked, quirks);
  if (effort === asked) return { effort };
  const warning = `reasoning_effort: this model does not accept ${asked}`;
  return effort === undefined ? { warning: `${warning}.` } : { effort, warning: `${warning}; ${effort} is sent instead.` };
}
