import type { GenerateCall } from '#core/call';
import type { FaultDetails } from '#core/fault';

/** Which types of tools a model accepts on OpenAI's wires. */
export interface ToolQuirks {
  /** True: it accepts functions, and no tools of free text nor namespaces of tools. False: it is known to accept these, too. Absent: it has not refused them. */
  readonly functionsOnly?: boolean;
}

/** Does a call have tools that are no functions, or calls of such? */
export const hasOtherTools = ({ tools, turns }: Pick<GenerateCall, 'tools' | 'turns'>): boolean =>
  tools.some((tool) => tool.type === 'custom' || (tool.type === 'foreign' && tool.namespace)) ||
  turns.some(({ parts }) => parts.some((part) => part.type === 'tool-call' && part.custom));

/**
 * Is the type of a tool or of its call refused, or a member that only other types than functions have? What a message says besides may be the client's own words.
 * Ollama reads the call of a tool of free text as one without arguments. https://github.com/vllm-project/vllm/issues/46737, BerriAI/litellm#32536
 */
export function refusesToolType({ field = '', place = field, reason, said = '' }: FaultDetails): boolean {
  if (/^invalid tool call arguments\b/.test(said)) return true; // https://github.com/ollama/ollama/blob/main/openai/openai.go
  if (!/^(?:tools|input|messages)\b/.test(place) || /[.\]]content\b/.test(place)) return false; // the parts of a message have types, too
  return place.endsWith('.type') || reason === 'field-unknown';
}
