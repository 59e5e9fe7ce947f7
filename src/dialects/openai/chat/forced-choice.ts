import { isTranslated, type GenerateCall } from '#core/call';
import type { FaultDetails } from '#core/fault';
import type { Tool, ToolChoice } from '#core/conversation';
import { allowedAlone, isForced } from '../../shared/tool-choice.ts';
import { thinkingOf, type Thinking } from '../thinking.ts';
import { sentEffort, type EffortQuirks } from './efforts.ts';
import { dialect } from './wire.ts';

/** How a model can be made to call a tool, where it refuses some of the ways. */
export interface ForcedQuirks {
  /** `named`: only a tool that is named, as on older versions of vLLM (vllm-project/vllm#12834). `none`: it cannot be forced. Absent: in all ways of the wire. */
  readonly forcedTools?: 'named' | 'none';
  /** How it was asked to think where it could not be forced, if it says that this is why: DeepSeek and Qwen (BerriAI/litellm#31466). */
  readonly unforcedThinking?: readonly Thinking[];
}

interface Chosen {
  readonly choice: ToolChoice | undefined;
  readonly tools: readonly Tool[];
}

/** The choice of a translated call as the model accepts it, and the tools that are declared with it. */
export function acceptedChoice(chosen: Chosen, call: ForcingCall, quirks: ForcedQuirks & EffortQuirks, ignored: Set<string>): Chosen {
  const { choice, tools } = chosen;
  const forcedTools = quirks.unforcedThinking?.includes(thinkingIn(call, quirks)) ? 'none' : quirks.forcedTools;
  if (forcedTools === undefined || !choice || !isForced(choice) || !isTranslated(call, dialect)) return chosen;
  if (forcedTools === 'named' && choice.type === 'tool') return chosen;
  const [tool] = tools;
  if (forcedTools === 'named' && tools.length === 1 && tool?.type === 'function') return { choice: { type: 'tool', name: tool.name }, tools };
  ignored.add('tool_choice: this model cannot be forced to call a tool.');
  if (choice.type === 'tool') return allowedAlone({ type: 'allowed', names: [choice.name], mode: 'auto' }, tools);
  return { choice: choice.type === 'allowed' ? { ...choice, mode: 'auto' } : { type: 'auto' }, tools };
}

/** `tool_choice must either be a named tool, "auto", or "none".`, `deepseek-reasoner does not support this tool_choice`, `Thinking mode does not support this tool_choice` */
export function forcingLearned<Quirks extends ForcedQuirks & EffortQuirks>(
  { reason, said = '' }: FaultDetails,
  call: GenerateCall,
  known: Quirks,
): Quirks | undefined {
  if (!isTranslated(call, dialect) || !isForced(call.toolChoice) || known.forcedTools === 'none') return undefined;
  if (reason !== 'field-unknown' && !/\bsupport|\bmust (?:either )?be\b/i.test(said)) return undefined;
  if (/\bthinking\b/i.test(said)) {
    const { unforcedThinking = [] } = known;
    const thinking = thinkingIn(call, known);
    return unforcedThinking.includes(thinking) ? undefined : { ...known, unforcedThinking: [...unforcedThinking, thinking] };
  }
  return { ...known, forcedTools: known.forcedTools === undefined && call.toolChoice?.type !== 'tool' ? 'named' : 'none' };
}

type ForcingCall = Parameters<typeof sentEffort>[0];

const thinkingIn = (call: ForcingCall, known: EffortQuirks): Thinking => thinkingOf(sentEffort(call, known).effort);
