import { isTranslated, type GenerateCall, type Reasoning } from '#core/call';
import type { Part } from '#core/conversation';
import { isObject, own, type JsonObject } from '#core/json';
import { tokenOf } from '#core/thoughts';
import { isForced } from '../shared/tool-choice.ts';
import { isSignedThought } from './encode-messages.ts';
import type { Quirks } from './quirks.ts';
import { budgetOf, effortValue, leastBudget } from './thinking.ts';
import { dialect } from './wire.ts';

interface Encoded {
  readonly thinking?: JsonObject;
  readonly effort?: string;
  /** Thinking tokens; 0 where none are set. */
  readonly budget: number;
}

const nothing: Encoded = { budget: 0 };

/**
 * The thinking settings: the client's own where it spoke this wire, else derived from its effort or budget.
 * @param maxOutputTokens output token limit, of which a budget leaves a quarter to the answer
 */
export function encodeReasoning(call: GenerateCall, maxOutputTokens: number | undefined, quirks: Quirks, ignored: Set<string>): Encoded {
  const { '.thinking': thinking, '.effort': givenEffort } = own(call.extra, dialect);
  if (thinking !== undefined && isObject(thinking) && thinking['type'] === 'enabled' && isLoopWithoutThought(call, quirks)) {
    ignored.add(`thinking: ${thoughtsMissing}`);
    return { ...(givenEffort ? { effort: givenEffort as string } : {}), budget: 0 };
  }
  if (thinking !== undefined || givenEffort !== undefined)
    return { ...(thinking ? { thinking: thinking as JsonObject } : {}), ...(givenEffort ? { effort: givenEffort as string } : {}), budget: 0 };
  const { reasoning } = call;
  if (!reasoning) return nothing;
  if (reasoning.effort === 'none') return withoutThinking(quirks, ignored);
  const obstacle = obstacleTo(call, quirks);
  if (obstacle) {
    ignored.add(`reasoning_effort: ${obstacle}`);
    return nothing;
  }
  if (quirks.adaptive) return adaptive(reasoning, quirks, ignored);
  const { effort = 'medium', budget: given = budgetOf(effort) } = reasoning; // the wire requires a budget
  const budget = Math.min(Math.max(given, leastBudget), Math.floor((maxOutputTokens ?? Infinity) * 0.75));
  if (budget < leastBudget) {
    ignored.add(
      `reasoning_effort: the provider requires at least ${leastBudget} thinking tokens, and a quarter of the limit for all tokens is left to the answer.`,
    );
    return nothing;
  }
  return { thinking: { type: 'enabled', budget_tokens: budget }, budget };
}

/** The least that a model thinks: some cannot be told not to. https://platform.claude.com/docs/en/models/opus-5-5/migration-guide */
function withoutThinking({ thinkingOff, efforts }: Quirks, ignored: Set<string>): Encoded {
  switch (thinkingOff) {
    case undefined:
      return { thinking: { type: 'disabled' }, budget: 0 };
    case 'between_tools':
      return { thinking: { type: thinkingOff }, budget: 0 };
    case 'low-effort':
      ignored.add('reasoning_effort: this model always thinks, so it is asked for its lowest effort.');
      return efforts?.length === 0 ? nothing : { effort: efforts?.[0] ?? 'low', budget: 0 };
    default:
      return thinkingOff satisfies never;
  }
}

/** Adaptive thinking shows no thoughts unless it is asked to. */
function adaptive({ effort, hidden }: Reasoning, { withoutDisplay, efforts }: Quirks, ignored: Set<string>): Encoded {
  const thinking = { type: 'adaptive', ...(hidden || withoutDisplay ? {} : { display: 'summarized' }) };
  if (effort === undefined) return { thinking, budget: 0 };
  if (efforts?.length === 0) {
    ignored.add('reasoning_effort: this model does not accept an effort.');
    return { thinking, budget: 0 };
  }
  return { thinking, effort: nearestOf(effortValue(effort), efforts), budget: 0 };
}

/** The effort itself, or the nearest one that the model accepts: a lower one before a higher one. @param efforts accepted ones, in order; undefined: all */
function nearestOf(effort: string, efforts: readonly string[] | undefined): string {
  if (!efforts || efforts.includes(effort)) return effort;
  const order = ['low', 'medium', 'high', 'xhigh', 'max'];
  return efforts.findLast((one) => order.indexOf(one) < order.indexOf(effort)) ?? efforts[0]!;
}

/** The wire refuses thinking where a tool is forced, and budgets where the last message of the assistant has to begin with thoughts that are not sent back. */
function obstacleTo(call: GenerateCall, { adaptive: isAdaptive, withoutThinking: never, withoutForcedTools, withoutPrefill }: Quirks): string | undefined {
  if (never) return 'this model does not think.';
  if (isForced(call.toolChoice) && !(withoutForcedTools && isTranslated(call, dialect))) return 'the provider does not think where a tool must be called.';
  if (isAdaptive) return undefined;
  if (lacksThought(call)) return thoughtsMissing;
  return !withoutPrefill && isBegunWithoutThought(call) ? 'the provider cannot think while it continues an answer that began without thoughts.' : undefined;
}

const thoughtsMissing = 'the thoughts before the last tool calls are not there.';

/** Is the last tool call of the conversation without a thought that this wire has signed? */
function lacksThought({ turns }: Pick<GenerateCall, 'turns'>): boolean {
  const last = turns.findLast((turn) => turn.role === 'model')?.parts ?? [];
  return turns.at(-1)?.role !== 'model' && last.some(isCall) && !last.some(isSignedThought);
}

/**
 * Is there no thought that the provider takes in the turns since the user's last message, which end with the result of a tool? Another target of the gateway began
 * to answer then, or the client asked without thinking. Claude may think once, and then call tools in several turns; other models need not think at all, and do
 * not sign what they think. https://platform.claude.com/docs/en/build-with-claude/extended-thinking#toggling-thinking-modes-in-conversations
 */
function isLoopWithoutThought({ turns }: Pick<GenerateCall, 'turns'>, { demandsThoughts }: Quirks): boolean {
  const asked = turns.findLastIndex(({ role, parts }) => role === 'user' && !parts.some(({ type }) => type === 'tool-result'));
  const loop = turns.slice(asked + 1);
  const last = loop.findLast(({ role }) => role === 'model');
  if (loop.at(-1)?.role === 'model' || !last?.parts.some(isCall)) return false;
  if (demandsThoughts) return !loop.some(({ parts }) => parts.some(isSignedThought));
  return !last.parts.some(isSignedThought) && last.parts.some((part) => part.type === 'thought' && tokenOf(part.extra) !== undefined);
}

const isCall = ({ type }: Part): boolean => type === 'tool-call';

/** Does the conversation end with an answer that was begun, and without a thought that this wire has signed? */
function isBegunWithoutThought({ turns }: Pick<GenerateCall, 'turns'>): boolean {
  const begun = turns.slice(turns.findLastIndex(({ role }) => role !== 'model') + 1).flatMap(({ parts }) => parts);
  return begun.some((part) => part.type === 'tool-call' || (part.type === 'text' && /\S/.test(part.text))) && !begun.some(isSignedThought);
}
