import type { GenerateCall } from '#core/call';
import type { ThoughtPart } from '#core/conversation';
import { isObject, own, type JsonObject } from '#core/json';
import { tokenOf } from '#core/thoughts';
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

/**
 * The thinking settings: the client's own where it spoke this wire, else derived from its effort.
 *
 * @param mostTokens output token limit, which a budget must be below
 */
export function encodeReasoning(call: GenerateCall, mostTokens: number | undefined, { adaptive }: Quirks, ignored: Set<string>): Encoded {
  const { '.thinking': thinking, '.effort': givenEffort } = own(call.extra, dialect);
  if (thinking !== undefined && isObject(thinking) && thinking['type'] === 'enabled' && lacksThought(call, ({ extra }) => tokenOf(extra) !== undefined)) {
    ignored.add(`thinking: ${thoughtsMissing}`);
    return { ...(givenEffort ? { effort: givenEffort as string } : {}), budget: 0 };
  }
  if (thinking !== undefined || givenEffort !== undefined)
    return { ...(thinking ? { thinking: thinking as JsonObject } : {}), ...(givenEffort ? { effort: givenEffort as string } : {}), budget: 0 };
  if (!call.reasoning) return { budget: 0 };
  const { effort = 'medium' } = call.reasoning; // the wire requires a budget
  if (effort === 'none') return { thinking: { type: 'disabled' }, budget: 0 };
  const obstacle = obstacleTo(call);
  if (obstacle) {
    ignored.add(`reasoning_effort: ${obstacle}`);
    return { budget: 0 };
  }
  if (adaptive) return { thinking: { type: 'adaptive' }, ...(call.reasoning.effort ? { effort: effortValue(effort) } : {}), budget: 0 };
  const budget = Math.min(budgetOf(effort), (mostTokens ?? Infinity) - 1);
  if (budget < leastBudget) {
    ignored.add(`reasoning_effort: the provider requires at least ${leastBudget} thinking tokens, and the limit for all tokens is lower.`);
    return { budget: 0 };
  }
  return { thinking: { type: 'enabled', budget_tokens: budget }, budget };
}

/** The wire refuses thinking where a tool is forced, or where the thoughts before the last tool calls are not sent back. */
function obstacleTo({ turns, toolChoice }: GenerateCall): string | undefined {
  if (toolChoice && ['required', 'tool'].includes(toolChoice.type)) return 'the provider does not think where a tool must be called.';
  if (toolChoice?.type === 'allowed' && toolChoice.mode === 'required') return 'the provider does not think where a tool must be called.';
  return lacksThought({ turns }) ? thoughtsMissing : undefined;
}

const thoughtsMissing = 'the thoughts before the last tool calls are not there.';

/**
 * Is the last tool call of the conversation without a thought that this wire has signed?
 *
 * @param only counts where one of its thoughts is such: those of another wire were shown to the client as thoughts of this one
 */
function lacksThought({ turns }: Pick<GenerateCall, 'turns'>, only?: (thought: ThoughtPart) => boolean): boolean {
  const last = turns.findLast((turn) => turn.role === 'model')?.parts ?? [];
  if (turns.at(-1)?.role === 'model' || !last.some((part) => part.type === 'tool-call') || last.some(isSignedThought)) return false;
  return !only || last.some((part) => part.type === 'thought' && only(part));
}
