import { isTranslated, type GenerateCall } from '#core/call';
import type { Fault } from '#core/fault';
import { own } from '#core/json';
import { thinkingConfigOf, type ThinkingQuirks } from './thinking-config.ts';
import { allLevels } from './thinking.ts';
import { outputLimitLearned, type LearnedLimit } from '../shared/output-limit.ts';
import { dialect } from './wire.ts';

/** How a provider, or one of its models, differs from the others of this wire. */
export interface Quirks extends LearnedLimit, ThinkingQuirks {
  /** It does not know the ids of function calls. */
  readonly withoutIds?: boolean;
  /** It refuses thinking settings. */
  readonly withoutThinking?: boolean;
  /** It accepts earlier function calls only with a signature; unsigned ones are sent with Google's placeholder. */
  readonly signed?: boolean;
  readonly withoutPenalties?: boolean;
  /** It refuses a JSON response type beside tools: the model is told in words. */
  readonly jsonWithoutTools?: boolean;
  /** It refuses media inside function responses: they are sent beside them. */
  readonly mediaBesideResults?: boolean;
}

/** How a refusal names what it is about (`faults.ts`). */
export const refused = {
  signature: 'thoughtSignature',
  thinking: 'generationConfig.thinkingConfig',
  budget: 'generationConfig.thinkingConfig.thinkingBudget',
  level: 'generationConfig.thinkingConfig.thinkingLevel',
  penalties: 'generationConfig.frequencyPenalty',
  json: 'generationConfig.responseMimeType',
  media: 'contents.parts.functionResponse.parts',
} as const;

/** Learns from the refusal of a field or a value. What a client of this wire sent itself is never changed. */
export function learn(fault: Fault, call: GenerateCall, known: Quirks = {}): Quirks | undefined {
  const { reason, lacks, field = lacks } = fault.details;
  if (field === refused.signature) return known.signed || (lacks !== undefined && !call.turns.some(hasUnsigned)) ? undefined : { ...known, signed: true };
  if (field !== undefined && /(?:^|\.function(?:Call|Response)\.)id$/.test(field) && reason === 'field-unknown')
    return known.withoutIds ? undefined : { ...known, withoutIds: true };
  if (!isTranslated(call, dialect)) return undefined;
  const limited = outputLimitLearned(fault, call, known, dialect);
  if (limited) return limited;
  switch (field) {
    case refused.penalties:
      return known.withoutPenalties ? undefined : { ...known, withoutPenalties: true };
    case refused.json:
      return known.jsonWithoutTools || call.tools.length === 0 || call.output.type === 'text' ? undefined : { ...known, jsonWithoutTools: true };
    case refused.media:
      return known.mediaBesideResults ? undefined : { ...known, mediaBesideResults: true };
    case refused.thinking:
    case refused.budget:
    case refused.level:
      return learnThinking(fault, call, known);
    default:
      return undefined;
  }
}

const hasUnsigned = ({ parts }: GenerateCall['turns'][number]): boolean =>
  parts.some((part) => part.type === 'tool-call' && own(part.extra, dialect)['thoughtSignature'] === undefined);

function learnThinking({ details: { field, reason, range } }: Fault, { reasoning, extra, sampling }: GenerateCall, known: Quirks): Quirks | undefined {
  if (!reasoning || own(extra, dialect)['.thinkingConfig'] !== undefined || known.withoutThinking) return undefined;
  const { thinkingBudget: budget, thinkingLevel: level } = thinkingConfigOf(reasoning, known, sampling.maxTokens);
  if (reason === 'field-unknown') {
    const { levels: _, ...others } = known;
    if (field === refused.level && level !== undefined) return { ...others, levels: undefined };
    if (field === refused.budget && budget !== undefined && !('levels' in known)) return { ...known, levels: allLevels };
    return { ...known, withoutThinking: true };
  }
  if (typeof level === 'string') return { ...known, levels: known.levels?.filter((one) => one !== level) };
  return typeof budget === 'number' ? learnBudget(budget, range, known) : undefined;
}

/** The refusal of one budget says nothing of those that it does not rule out: 0 is no budget, but the wish not to think. */
function learnBudget(budget: number, range: { readonly least: number; readonly most: number } | undefined, known: Quirks): Quirks | undefined {
  if (budget === 0) return { ...known, alwaysThinks: true, ...(range ? { leastBudget: range.least } : {}) };
  if (range && budget < range.least) return { ...known, leastBudget: range.least };
  if (range && budget > range.most) return { ...known, mostBudget: range.most };
  return { ...known, refusedBudgets: [...(known.refusedBudgets ?? []), budget].slice(-mostBudgets) };
}

/** Budgets that are remembered as refused. */
const mostBudgets = 20;
