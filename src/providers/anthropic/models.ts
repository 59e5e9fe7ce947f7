import type { Quirks } from '#dialects/anthropic/quirks';
import type { Vendor } from '../vendors.ts';

/** What is publicly known of a vendor's models on this wire. @param vendor undefined: a server that nobody knows, whose refusals teach what it takes */
export function quirksAt(vendor: Vendor | undefined, model: string): Quirks | undefined {
  const known = vendor === 'anthropic' ? modelOf(model) : undefined;
  return known && { ...samplingOf(known), ...thinkingOf(known), ...conversationOf(known), ...schemasOf(known) };
}

interface Known {
  readonly family: string;
  /** Generation: 4.8, or 5 for `claude-opus-5`. */
  readonly version: number;
}

/** `claude-opus-4-8`, `claude-opus-4-1-20250805`, `claude-3-5-haiku-latest`; a model without a number, such as `claude-mythos-preview`, is of its first generation. */
function modelOf(name: string): Known | undefined {
  const words = name.toLowerCase().split(/[-@.]/).slice(0, 6);
  const family = words.find((word) => families.has(word));
  if (words[0] !== 'claude' || family === undefined) return undefined;
  const [major, minor = '0'] = words.filter((word) => /^\d{1,2}$/.test(word));
  return { family, version: major === undefined ? 5 : Number(`${major}.${minor}`) };
}

const families: ReadonlySet<string> = new Set(['opus', 'sonnet', 'haiku', 'fable', 'mythos']);

/** https://github.com/BerriAI/litellm/issues/15097, https://github.com/vercel/ai/pull/15674 */
function samplingOf({ family, version }: Known): Quirks {
  if (version >= 4.7) return { without: ['temperature', 'top_p', 'top_k'] };
  return version >= (family === 'opus' ? 4.1 : 4.5) ? { eitherSampling: true } : {};
}

/** https://platform.claude.com/docs/en/models/opus-5-5/migration-guide, https://platform.claude.com/docs/en/models/sonnet-5-5/whats-new-sonnet-5-5 */
function thinkingOf({ family, version }: Known): Quirks {
  const always = family === 'fable' || family === 'mythos' || (family === 'opus' && version >= 5.5);
  const off = always ? 'low-effort' : family === 'sonnet' && version >= 5.5 ? 'between_tools' : undefined;
  return { demandsThoughts: true, ...(version >= 4.7 ? { adaptive: true } : {}), ...(off ? { thinkingOff: off } : {}) };
}

/** Forced tools: the migration guide. System messages: https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages. Prefill: https://github.com/vercel/ai/issues/12296 */
function conversationOf({ family, version }: Known): Quirks {
  const unforced = family === 'mythos' || (family === 'fable' && version >= 5.1) || ((family === 'opus' || family === 'sonnet') && version >= 5.5);
  return {
    ...(unforced ? { withoutForcedTools: true } : {}),
    ...(version >= (family === 'opus' ? 4.8 : 5) ? { innerSystem: true } : {}),
    ...(version >= 4.6 ? { withoutPrefill: true } : {}),
  };
}

/** https://platform.claude.com/docs/en/build-with-claude/structured-outputs */
const schemasOf = ({ family, version }: Known): Quirks => (version >= (family === 'opus' ? 4.1 : 4.5) ? {} : { withoutFormat: true, withoutStrict: true });
