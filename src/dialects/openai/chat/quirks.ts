import { isTranslated, type GenerateCall } from '#core/call';
import type { Fault, FaultDetails } from '#core/fault';
import { own } from '#core/json';
import type { TurnQuirks } from './adapt-turns.ts';
import { effortsAmong, isAboutEffort } from '../accepted-effort.ts';
import type { FileQuirks } from '../own-files.ts';
import type { BreakpointQuirks } from '../part-breakpoints.ts';
import { sentEffort, type EffortQuirks } from './efforts.ts';
import { outputLearned, type OutputQuirks } from './encode-output.ts';
import { forcingLearned, type ForcedQuirks } from './forced-choice.ts';
import { isDeveloper, shapeLearned } from './message-shape.ts';
import { hasResultMedia } from './order-messages.ts';
import { hasLongId, hasUnboundedId } from './short-ids.ts';
import type { RefusedFields } from '../thinking.ts';
import { isRefusable, withRefused } from './optional-fields.ts';
import { hasOtherTools, refusesToolType, type ToolQuirks } from '../tool-types.ts';
import { outputLimitLearned, type LearnedLimit } from '../../shared/output-limit.ts';
import { dialect } from './wire.ts';

/** How a provider's model differs from the public description. */
export interface Quirks extends BreakpointQuirks, EffortQuirks, FileQuirks, ForcedQuirks, LearnedLimit, OutputQuirks, TurnQuirks, ToolQuirks {
  /** The token limit's name where the client used neither. Absent: `max_tokens`, which every server knows. */
  readonly maxTokensDefault?: 'max_tokens' | 'max_completion_tokens';
  /** The only name of the token limit that it accepts. Absent: the one that the client used. */
  readonly maxTokensField?: 'max_tokens' | 'max_completion_tokens';
  /** Its name of the seed. Absent: `seed`. */
  readonly seedField?: 'random_seed';
  /** False: it refuses `stream_options`, so those of clients are left out, too. Absent: streams always request usage. */
  readonly usage?: boolean;
  /**
   * `demanded`: each assistant message with tool calls needs its thoughts, in `reasoning_content`. `refused`: no message may have any. Absent: those that came
   * from the provider go back to it.
   */
  readonly thoughts?: 'demanded' | 'refused';
  /** An answer that was begun has to be marked with `prefix`. https://docs.mistral.ai/capabilities/completion/prefix */
  readonly prefix?: true;
  /** Stop sequences that it accepts; absent: four. */
  readonly mostStops?: number;
  /** Optional fields that it refuses. */
  readonly refused?: RefusedFields;
  /** Does it accept the tool choice `allowed_tools`? Absent: clients of this wire have it sent until it is refused. */
  readonly allowedTools?: boolean;
  /** It knows `functions`. Absent: it is sent tools in their place, since most servers pass over `functions` without a word. */
  readonly olderFunctions?: true;
  /** True: it accepts `top_k`, which the public description does not have. */
  readonly topK?: boolean;
}

/** The name of the token limit of a call: servers that do not know the newer one ignore it without a word (https://github.com/ollama/ollama/issues/7125). */
export function maxTokensName({ extra }: Pick<GenerateCall, 'extra'>, { maxTokensField: only, maxTokensDefault = 'max_tokens' }: Quirks = {}): string {
  const { '.max_tokens': older, '.max_completion_tokens': newer } = own(extra, dialect);
  return only ?? (older ? 'max_tokens' : newer ? 'max_completion_tokens' : maxTokensDefault);
}

/**
 * Learns from the refusal of a field that the model does not accept, or accepts under another name or with other values. A refused value does not cost the field.
 * Fields that a client of this wire sent are not changed, except where another spelling means the same.
 */
export function learn(fault: Fault, call: GenerateCall, known: Quirks = {}): Quirks | undefined {
  const { details } = fault;
  if (details.reason === 'role-unknown') return known.developer !== false && call.turns.some(isDeveloper) ? { ...known, developer: false } : undefined;
  if (details.reason === 'role-order')
    return known.userAfterTool !== false && (isTranslated(call, dialect) || hasResultMedia(call)) ? { ...known, userAfterTool: false } : undefined;
  if (details.reason === 'text-only') return isTranslated(call, dialect) && !known.textOnly ? { ...known, textOnly: true } : undefined;
  if (/\bprefix true\b/i.test(details.said ?? '') && isBegun(call) && !known.prefix) return { ...known, prefix: true };
  if (known.functionsOnly === undefined && hasCustomTools(call) && refusesToolType(details)) return { ...known, functionsOnly: true };
  const shape = shapeLearned(details, call, known);
  if (shape) return shape;
  const limited = outputLimitLearned(fault, call, known, dialect);
  if (limited) return limited;
  const { field = '' } = details;
  if (idPlace.test(field) && hasUnboundedId(call.turns) && !known.boundedIds) return { ...known, boundedIds: true };
  switch (field.replace(/[.[].{0,99}$/, '')) {
    case 'stream_options':
      return call.stream && known.usage !== false && !own(call.extra, dialect)['.stream_options'] ? { ...known, usage: false } : undefined;
    case 'max_tokens':
    case 'max_completion_tokens': {
      const other = field === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
      const wasSent = call.sampling.maxTokens !== undefined && maxTokensName(call, known) === field;
      return details.reason === 'field-unknown' && wasSent && !known.maxTokensField ? { ...known, maxTokensField: other } : undefined;
    }
    case 'reasoning_effort':
      return isTranslated(call, dialect) ? effortLearned(details, call, known) : undefined;
    case 'tool_call_id':
      return !known.shortIds && hasLongId(call.turns) ? { ...known, shortIds: true } : undefined;
    case 'tool_choice':
      return known.allowedTools === undefined && call.toolChoice?.type === 'allowed' && !isTranslated(call, dialect)
        ? { ...known, allowedTools: false }
        : forcingLearned(details, call, known);
    case 'response_format':
      return outputLearned(details, call, known);
    default:
      return thoughtField.test(field ?? '') ? thoughtsLearned(details, call, known) : optionalLearned(details, call, known);
  }
}

/** https://github.com/anomalyco/opencode/issues/12653 */
const idPlace = /^messages\b.{1,40}(?:tool_calls\b.{1,12}\.id|tool_call_id)$/;

/** Those of clients of other wires are functions anyway. */
const hasCustomTools = (call: GenerateCall): boolean => !isTranslated(call, dialect) && hasOtherTools(call);
/** Does the call of another dialect end with an answer that is to be continued? */
const isBegun = (call: GenerateCall): boolean => isTranslated(call, dialect) && call.turns.at(-1)?.role === 'model';

/** `reasoning_content`, also with its place in the messages; the other name is a field of requests, too. */
const thoughtField = /^reasoning_content$|^messages\b.{0,80}[.\]]reasoning(?:_content)?$/;

/** A provider demands the thoughts of its own answers back, or takes none at all. */
function thoughtsLearned({ reason }: FaultDetails, { turns }: GenerateCall, known: Quirks): Quirks | undefined {
  if (reason === 'missing') return known.thoughts === undefined ? { ...known, thoughts: 'demanded' } : undefined;
  const has = turns.some(({ parts }) => parts.some(({ type }) => type === 'thought'));
  return has && known.thoughts !== 'refused' ? { ...known, thoughts: 'refused' } : undefined;
}

function effortLearned({ reason, listed, said }: FaultDetails, call: GenerateCall, known: Quirks): Quirks | undefined {
  const { effort } = sentEffort(call, known);
  if (effort === undefined) return undefined;
  if (reason === 'field-unknown' && !isAboutEffort(said, effort)) return { ...known, effort: false };
  const efforts = effortsAmong(listed ?? []);
  if (efforts.length > 0) return efforts.includes(effort) ? undefined : { ...known, efforts };
  const { efforts: _, ...others } = known;
  return { ...others, refusedEfforts: [...(known.refusedEfforts ?? []), effort] };
}

function optionalLearned({ field = '', reason }: FaultDetails, call: GenerateCall, known: Quirks): Quirks | undefined {
  const effort = sentEffort(call, known);
  const isTeaching = reason === 'field-unknown' && isTranslated(call, dialect) && isRefusable(call, field, known.refused, effort);
  return isTeaching ? { ...known, refused: withRefused(known.refused, field, effort) } : undefined;
}
