import type { GenerateCall } from '#core/call';
import type { Fault } from '#core/fault';
import { own } from '#core/json';
import { dialect } from './wire.ts';

/** How a provider's model differs from the public description. */
export interface Quirks {
  /** The only name of the token limit that it accepts. Absent: the one that the client used, or `max_completion_tokens`. */
  readonly maxTokensField?: 'max_tokens' | 'max_completion_tokens';
  /** False: it refuses `stream_options`. Absent: streams always request usage. */
  readonly usage?: boolean;
  /** False: it refuses `reasoning_effort`. */
  readonly effort?: boolean;
  /** Values of `reasoning_effort` that it refuses. */
  readonly refusedEfforts?: readonly string[];
  /**
   * `demanded`: each assistant message with tool calls needs its thoughts, in `reasoning_content`. `refused`: no message may have any. Absent: those that came
   * from the provider go back to it.
   */
  readonly thoughts?: 'demanded' | 'refused';
}

/**
 * Learns from the refusal of a field that the model does not accept, or accepts under another name: the two names of the token limit replace each other.
 * Where the model refused a value, only that value is left out: it may accept others. Stream options and an effort are left out only where the gateway added or
 * translated them; those that a client sent itself are never changed.
 */
export function learn(fault: Fault, call: GenerateCall, known: Quirks = {}): Quirks | undefined {
  const { field, reason } = fault.details;
  const isUnknown = reason === 'field-unknown';
  const notes = own(call.extra, dialect);
  switch (field) {
    case 'stream_options':
      return call.stream && known.usage !== false && !notes['.stream_options'] ? { ...known, usage: false } : undefined;
    case 'max_tokens':
    case 'max_completion_tokens': {
      const other = field === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
      return isUnknown && call.sampling.maxTokens !== undefined && !known.maxTokensField ? { ...known, maxTokensField: other } : undefined;
    }
    case 'reasoning_effort': {
      const translated = Object.keys(call.extra).some((name) => name !== dialect);
      if (!translated || known.effort === false) return undefined;
      if (isUnknown) return { ...known, effort: false };
      const { refusedEfforts = [] } = known;
      const effort = call.reasoning?.effort;
      return effort === undefined || refusedEfforts.includes(effort) ? undefined : { ...known, refusedEfforts: [...refusedEfforts, effort] };
    }
    default:
      return thoughtField.test(field ?? '') ? learnAboutThoughts(fault, call, known) : undefined;
  }
}

/** `reasoning_content`, also with its place in the messages; the other name is a field of requests, too. */
const thoughtField = /^reasoning_content$|^messages\b.{0,80}[.\]]reasoning(?:_content)?$/;

/** A provider demands the thoughts of its own answers back, or takes none at all. */
function learnAboutThoughts({ details: { reason } }: Fault, { turns }: GenerateCall, known: Quirks): Quirks | undefined {
  if (reason === 'missing') return known.thoughts === undefined ? { ...known, thoughts: 'demanded' } : undefined;
  const has = turns.some(({ parts }) => parts.some(({ type }) => type === 'thought'));
  return has && known.thoughts !== 'refused' ? { ...known, thoughts: 'refused' } : undefined;
}
