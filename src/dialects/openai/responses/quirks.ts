import type { GenerateCall } from '#core/call';
import type { Fault } from '#core/fault';

/** How a provider's model differs from the public description. */
export interface Quirks {
  /** False: it has no encrypted thoughts and refuses requests for them. */
  readonly encrypted?: boolean;
  /** It accepts no tools of free text and no namespaces of tools. */
  readonly functionsOnly?: true;
}

/**
 * Learns what a refusal tells of a model. Every request asks for encrypted thoughts, so a refusal of `include` is taken to mean that it has none.
 */
export function learn(fault: Fault, call: GenerateCall, known: Quirks = {}): Quirks | undefined {
  const { field } = fault.details;
  if (field === 'include') return known.encrypted === false ? undefined : { ...known, encrypted: false };
  if (!known.functionsOnly && hasOtherTools(call) && refusesTools(fault)) return { ...known, functionsOnly: true };
  return undefined;
}

const hasOtherTools = ({ tools, turns }: GenerateCall): boolean =>
  tools.some((tool) => tool.type === 'custom' || (tool.type === 'foreign' && tool.namespace)) ||
  turns.some(({ parts }) => parts.some((part) => part.type === 'tool-call' && part.custom));

/** vllm-project/vllm#46737, BerriAI/litellm#32536 */
const refusesTools = ({ code, details: { field = '', said = '' } }: Fault): boolean =>
  (code === 'invalid' || code === 'unprocessable') && (/^(?:tools|input)\b.{0,40}\btype$/.test(field) || /\b(?:custom|namespace)/.test(said));
