import type { Quirks } from '#dialects/openai/chat/quirks';
import type { GenerateCall } from '#core/call';
import type { Fault } from '#core/fault';
import { own } from '#core/json';

/**
 * What a refusal may teach: a field that the provider does not take, or takes by its other name: the older and the newer word for the token
 * limit are tried for each other. Where it refused a value, only that value is left out: other callers have better ones. Stream options and an effort are left out only where they are ours: what a client wrote is between it and the provider.
 *
 * @returns undefined where there is nothing new to try
 */
export function quirkOf(fault: Fault, call: GenerateCall, known: Quirks = {}): Quirks | undefined {
  const { field, reason } = fault.details;
  const isUnknown = reason === 'field-unknown';
  const notes = own(call.extra, 'openai-chat');
  switch (field) {
    case 'stream_options':
      return call.stream && known.usage !== false && !notes['.stream_options'] ? { ...known, usage: false } : undefined;
    case 'max_tokens':
    case 'max_completion_tokens': {
      const other = field === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
      return isUnknown && call.sampling.maxTokens !== undefined && !known.maxTokensField ? { ...known, maxTokensField: other } : undefined;
    }
    case 'reasoning_effort': {
      const translated = Object.keys(call.extra).some((dialect) => dialect !== 'openai-chat');
      if (!translated || known.effort === false) return undefined;
      if (isUnknown) return { ...known, effort: false };
      const { refusedEfforts = [] } = known;
      const effort = call.reasoning?.effort;
      return effort === undefined || refusedEfforts.includes(effort) ? undefined : { ...known, refusedEfforts: [...refusedEfforts, effort] };
    }
    default:
      return undefined;
  }
}
