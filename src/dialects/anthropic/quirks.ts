import { isTranslated, type GenerateCall } from '#core/call';
import type { Fault, FaultDetails } from '#core/fault';
import { own } from '#core/json';
import { isForced } from '../shared/tool-choice.ts';
import { outputLimitLearned, type LearnedLimit } from '../shared/output-limit.ts';
import { moreBetas, refusedBetasIn } from './betas.ts';
import { newerMemberIn, type NewerMember } from './newer-members.ts';
import { dialect } from './wire.ts';

const samplingFields = ['temperature', 'top_p', 'top_k'] as const;

/** How a provider's model differs from the others of this wire. */
export interface Quirks extends LearnedLimit {
  /** It accepts an effort for thinking and refuses budgets. */
  readonly adaptive?: boolean;
  /** It accepts neither. */
  readonly withoutThinking?: boolean;
  /** Where a client asks it to think, it refuses the results of tools that were called without a thought. */
  readonly demandsThoughts?: boolean;
  /** How thinking is turned off, where `disabled` is refused. */
  readonly thinkingOff?: 'low-effort' | 'between_tools';
  /** It refuses to be told whether thoughts are shown. */
  readonly withoutDisplay?: boolean;
  /** The efforts that it accepts, where it said so; none: it has no such field. */
  readonly efforts?: readonly string[];
  /** Sampling fields that it refuses. */
  readonly without?: readonly (typeof samplingFields)[number][];
  /** It accepts a temperature or a top_p, not both. */
  readonly eitherSampling?: boolean;
  /** It cannot be forced to call a tool. */
  readonly withoutForcedTools?: boolean;
  /** It accepts system messages among the others. False: it refused one that a client of this wire sent. */
  readonly innerSystem?: boolean;
  /** The last message must not be the assistant's. */
  readonly withoutPrefill?: boolean;
  /** It has no JSON by a schema. */
  readonly withoutFormat?: boolean;
  /** It has no strict tools. */
  readonly withoutStrict?: boolean;
  /** It refuses `cache_control` for the request as a whole. */
  readonly withoutCaching?: boolean;
  /** It does not accept the name of the client's own user. */
  readonly withoutUser?: boolean;
  /** Beta features that it does not know. */
  readonly withoutBetas?: readonly string[];
  /** Members of beta features that it does not know. */
  readonly withoutMembers?: readonly NewerMember[];
  /** Also what it refused of this call's schemas: other calls have other schemas. */
  readonly thisCall?: NonNullable<LearnedLimit['thisCall']> & { readonly format?: 'refused'; readonly strict?: 'refused' };
}

/** A fault as lessons read it: `said` is the first sentence of the provider's message. */
interface Refusal {
  readonly field: string;
  readonly isUnknown: boolean;
  readonly said: string;
}

type Lesson = (refusal: Refusal, call: GenerateCall, known: Quirks) => Quirks | undefined;

/**
 * Learns from a refusal how the model differs. What a client of this wire sent itself is between it and the provider, except sampling fields, system messages
 * and beta features that the model does not know.
 */
export function learn(fault: Fault, call: GenerateCall, known: Quirks = {}): Quirks | undefined {
  const { details } = fault;
  const limited = outputLimitLearned(fault, call, known, dialect);
  if (limited) return limited;
  const refusal = refusalOf(details);
  const lessons = isTranslated(call, dialect) ? [...lessonsForAll, ...lessonsOfTranslated] : lessonsForAll;
  for (const lesson of lessons) {
    const learned = lesson(refusal, call, known);
    if (learned) return { ...known, ...learned };
  }
  return undefined;
}

const refusalOf = ({ field = '', reason, said = '' }: FaultDetails): Refusal => ({ field, isUnknown: reason === 'field-unknown', said });

/** `top_p is deprecated for this model.`, `temperature, top_p and top_k are not supported` */
const sampling: Lesson = ({ field, isUnknown, said }, _, { without = [] }) => {
  if (!isUnknown || eitherPattern.test(said)) return undefined;
  const refused = samplingFields.filter((name) => name === field || (isSampling(field) && said.match(/\w+/g)?.includes(name) === true));
  const more = refused.filter((name) => !without.includes(name));
  return more.length > 0 ? { without: [...without, ...more] } : undefined;
};

const isSampling = (field: string): boolean => samplingFields.some((name) => name === field);

/** `messages.2: Unexpected role "system"`, `role 'system' is not supported on this model`, `messages[7].role: unknown variant system` */
const innerSystem: Lesson = ({ said }, { turns }, known) =>
  /\brole\b.{0,40}\bsystem\b/i.test(said) && known.innerSystem !== false && turns.some(({ role }) => role === 'system') ? { innerSystem: false } : undefined;

const betas: Lesson = ({ said }, _, known) => {
  const withoutBetas = moreBetas(known.withoutBetas, refusedBetasIn(said));
  return withoutBetas && { withoutBetas };
};

const newerMembers: Lesson = ({ said }, call, { withoutMembers = [] }) => {
  const member = newerMemberIn(said);
  if (member === undefined || withoutMembers.includes(member)) return undefined;
  if (member === 'output_config.effort' && isTranslated(call, dialect)) return undefined; // what the gateway sent is another lesson
  return { withoutMembers: [...withoutMembers, member] };
};

const eitherPattern = /\btemperature\b.{1,10}\btop_p\b.{0,60}\b(?:both|together|only one)\b/i;

const eitherSampling: Lesson = ({ said }, { sampling: { temperature, topP } }, known) =>
  eitherPattern.test(said) && temperature !== undefined && topP !== undefined && !known.eitherSampling ? { eitherSampling: true } : undefined;

/** `tool_choice: type "tool" and "any" are not supported for this model.`, `tool_choice.type: Input should be 'auto' or 'none'` */
const forcedTools: Lesson = ({ field, isUnknown, said }, { toolChoice }, known) => {
  const isRefused = field === 'tool_choice' && (isUnknown || (/\binput should be\b/i.test(said) && !/['"](?:any|tool)['"]/.test(said)));
  return isRefused && isForced(toolChoice) && !known.withoutForcedTools ? { withoutForcedTools: true } : undefined;
};

const display: Lesson = ({ field, said }, _, known) =>
  field === 'thinking' && /^thinking[\w.]{0,40}\.display\b/.test(said) && !known.withoutDisplay ? { withoutDisplay: true } : undefined;

const thinkingOff: Lesson = ({ field, isUnknown, said }, { reasoning }, known) => {
  if (reasoning?.effort !== 'none' || !(field === 'thinking' && isUnknown) || known.thinkingOff === 'low-effort') return undefined;
  return { thinkingOff: known.thinkingOff === undefined && said.includes('between_tools') ? 'between_tools' : 'low-effort' };
};

const thinking: Lesson = ({ field, isUnknown, said }, { reasoning }, known) => {
  if (!reasoning || reasoning.effort === 'none' || known.withoutThinking) return undefined;
  if (/^"[^"]{1,200}" does not support thinking\b/.test(said)) return { withoutThinking: true }; // Ollama
  const isAdaptive = /^"?(?:thinking\.type\.)?adaptive\b.{0,60}not supported/i.test(said);
  if (isAdaptive) return known.adaptive ? { adaptive: false, withoutThinking: true } : undefined;
  return field === 'thinking' && isUnknown && !known.adaptive ? { adaptive: true } : undefined;
};

const effortValues = ['low', 'medium', 'high', 'xhigh', 'max'] as const;

/** `output_config.effort: Input should be 'low', 'medium' or 'high'`, `This model does not support the effort parameter.` */
const efforts: Lesson = ({ field, said }, { reasoning }, known) => {
  if (!reasoning || known.efforts?.length === 0) return undefined;
  if (/the effort parameter|^output_config(?:\.effort)?: extra inputs/i.test(said)) return { efforts: [] };
  if (field !== 'output_config' || !/\beffort\b/.test(said) || known.efforts) return undefined;
  const accepted = effortValues.filter((one) => said.includes(`'${one}'`) || said.includes(`"${one}"`));
  return accepted.length > 0 ? { efforts: accepted } : undefined;
};

const prefill: Lesson = ({ said }, { turns }, known) =>
  /assistant message prefill|must end with a user message/i.test(said) && turns.at(-1)?.role === 'model' && !known.withoutPrefill
    ? { withoutPrefill: true }
    : undefined;

const caching: Lesson = ({ field, isUnknown }, { extra }, known) =>
  field === 'cache_control' && isUnknown && own(extra, dialect)['cache_control'] === undefined && !known.withoutCaching ? { withoutCaching: true } : undefined;

const endUser: Lesson = ({ field, isUnknown }, call, known) =>
  field === 'metadata' && isUnknown && call.endUser !== undefined && !known.withoutUser ? { withoutUser: true } : undefined;

/** A model without the field refuses it for every call, a schema only for this one. */
const format: Lesson = ({ field, said }, { output }, known) => {
  if (output.type !== 'schema' || known.withoutFormat || known.thisCall?.format) return undefined;
  if (/^output_(?:config(?:\.format)?|format): extra inputs|output format|structured output/i.test(said)) return { withoutFormat: true };
  const isOurs = (field === 'output_config' && !/\beffort\b/.test(said)) || aboutSchemas.test(said);
  return isOurs ? { thisCall: { ...known.thisCall, format: 'refused' } } : undefined;
};

const strict: Lesson = ({ field, said }, { tools }, known) => {
  if (known.withoutStrict || known.thisCall?.strict || !tools.some((tool) => tool.type === 'function' && tool.strict)) return undefined;
  if (/\bstrict: extra inputs/i.test(said)) return { withoutStrict: true };
  const isOurs = (field === 'tools' && /schema|strict|additionalProperties|not supported/i.test(said)) || aboutSchemas.test(said);
  return isOurs ? { thisCall: { ...known.thisCall, strict: 'refused' } } : undefined;
};

const aboutSchemas = /\b(?:schemas?|grammar)\b.{0,60}\btoo (?:complex|large|many)\b|\btoo many (?:strict tools|optional parameters)/i;

const lessonsForAll: readonly Lesson[] = [sampling, innerSystem, betas, newerMembers];
const lessonsOfTranslated: readonly Lesson[] = [
  eitherSampling,
  forcedTools,
  display,
  thinkingOff,
  thinking,
  efforts,
  prefill,
  caching,
  endUser,
  format,
  strict,
];
