import { isTranslated, type GenerateCall } from '#core/call';
import type { Fault } from '#core/fault';
import { effortsAmong, isAboutEffort } from '../accepted-effort.ts';
import { loneItemsIn, type LoneItems } from '../../shared/lone-items.ts';
import type { FileQuirks } from '../own-files.ts';
import type { BreakpointQuirks } from '../part-breakpoints.ts';
import { hasOtherTools, refusesToolType, type ToolQuirks } from '../tool-types.ts';
import { anyThinking, thinkingOf, type RefusedFields } from '../thinking.ts';
import { leastTokens, optionalFields, sentEffort, type ReasoningQuirks } from './model-fields.ts';
import { outputLimitLearned, type LearnedLimit } from '../../shared/output-limit.ts';
import { dialect } from './wire.ts';

/** How a provider's model differs from the public description. */
export interface Quirks extends BreakpointQuirks, FileQuirks, LearnedLimit, ReasoningQuirks, ToolQuirks {
  /** False: it has no encrypted thoughts and refuses requests for them. */
  readonly encrypted?: boolean;
  /** It lists the sources of its searches on request. */
  readonly sources?: true;
  /** It accepts no `max_output_tokens` below 16, even from clients of this wire. */
  readonly atLeast16?: true;
  /** It refuses cache breakpoints (`cache_control`). */
  readonly withoutBreakpoints?: true;
  /** Items beside messages, calls and results that it refuses. */
  readonly withoutItems?: LoneItems;
  /** Optional fields that it refuses, each with how it was asked to think then. */
  readonly refused?: RefusedFields;
}

/**
 * Learns from the refusal of a field or of a value. Every request asks for encrypted thoughts, so a refusal of `include` is taken to mean that the model has none.
 * What a client of this wire wrote itself is left as it is, except for what codex writes to every server: tools of types that it does not know, and reasoning for
 * models that have none.
 */
export function learn(fault: Fault, call: GenerateCall, known: Quirks = {}): Quirks | undefined {
  const { field = '' } = fault.details;
  const limited = outputLimitLearned(fault, call, known, dialect);
  if (limited) return limited;
  if (field === 'include') return known.encrypted === false ? undefined : { ...known, encrypted: false };
  if (field === 'max_output_tokens') return isBelowLeast(call) && !known.atLeast16 ? { ...known, atLeast16: true } : undefined;
  const items = itemsLearned(fault, call, known);
  if (items) return items;
  if (known.functionsOnly === undefined && hasOtherTools(call) && refusesToolType(fault.details)) return { ...known, functionsOnly: true };
  if (/(?:^|[.\]])cache_control$/.test(field) && fault.details.reason === 'field-unknown')
    return known.withoutBreakpoints ? undefined : { ...known, withoutBreakpoints: true };
  if (field === 'reasoning.summary' && (isTranslated(call, dialect) || fault.details.reason === 'field-unknown'))
    return known.withoutSummary ? undefined : { ...known, withoutSummary: true };
  if (!isTranslated(call, dialect)) return isReasoningUnknown(fault, call) && known.efforts?.length !== 0 ? { ...known, efforts: [] } : undefined;
  return /^reasoning(?:[._]effort)?$/.test(field) ? learnedEffort(fault, call, known) : learnedField(fault, call, known);
}

/** An item that the provider does not know by its type, or by the tools in it. A call of a tool of free text is an item, too, and says so. */
function itemsLearned({ details: { field = '', place = field, said = '' } }: Fault, call: GenerateCall, known: Quirks): Quirks | undefined {
  const found = loneItemsIn(call);
  if (found === undefined || known.withoutItems === 'all' || !itemPlace.test(place) || /custom_tool_call/.test(said)) return undefined;
  return { ...known, withoutItems: found === 'with-tools' && known.withoutItems === 'with-tools' ? 'all' : found };
}

/** An item of the input as a whole, its type, or its tools. */
const itemPlace = /^input(?:\[\d{1,9}\]|\.\d{1,9})(?:$|\.type$|\.tools\b)/;

const isReasoningUnknown = ({ details: { field, reason, said } }: Fault, { reasoning: { effort } = {} }: GenerateCall): boolean =>
  /^reasoning(?:[._]effort)?$/.test(field ?? '') && reason === 'field-unknown' && effort !== undefined && !isAboutEffort(said, effort);

const isBelowLeast = ({ sampling: { maxTokens = leastTokens } }: GenerateCall): boolean => maxTokens < leastTokens;

/** The values that the refusal lists, or else that this one is refused; none where the model does not know the field. */
function learnedEffort({ details }: Fault, call: GenerateCall, known: Quirks): Quirks | undefined {
  const effort = sentEffort(call, known);
  if (effort === undefined) return undefined;
  if (details.reason === 'field-unknown' && !isAboutEffort(details.said, effort)) return { ...known, efforts: [] };
  const efforts = effortsAmong(details.listed ?? []);
  if (efforts.length > 0) return efforts.includes(effort) ? undefined : { ...known, efforts };
  const { efforts: _wrong, refusedEfforts = [], ...others } = known;
  return { ...others, refusedEfforts: [...refusedEfforts, effort] };
}

/** Fields about how tokens are drawn, which models refuse while they think. */
const drawing: ReadonlySet<string> = new Set(['temperature', 'top_p', 'top_logprobs']);

function learnedField({ details: { field = '', reason, said = '' } }: Fault, call: GenerateCall, known: Quirks): Quirks | undefined {
  const isRefused = reason === 'field-unknown' || (drawing.has(field) && /^unsupported value/i.test(said));
  const thinking = thinkingOf(sentEffort(call, known));
  const { [field]: kinds = [], ...others } = known.refused ?? {};
  if (!isRefused || !Object.hasOwn(optionalFields, field) || kinds.includes(thinking)) return undefined;
  return { ...known, refused: { ...others, [field]: drawing.has(field) ? [...kinds, thinking] : anyThinking } };
}
