import type { GenerateCall } from '#core/call';
import type { Part, Turn } from '#core/conversation';
import { droppedExtra } from '#core/dropped-extra';

/** The cache breakpoint of a part of the content, which OpenAI's wires have under one name. https://platform.openai.com/docs/guides/prompt-caching */
const name = 'prompt_cache_breakpoint';

const sisters = { 'openai-chat': 'openai-responses', 'openai-responses': 'openai-chat' } as const;

/** What a provider knows of breakpoints. */
export interface BreakpointQuirks {
  /** It knows `prompt_cache_breakpoint`. Absent: only clients of its own wire have it sent, for strict servers refuse members that they do not know. */
  readonly partBreakpoints?: true;
}

/**
 * The call with the breakpoints of a client of the sister wire as those of this one; the same call where there are none.
 * @returns `dropped`: the names of what this wire loses of the call
 */
export function withSisterBreakpoints(
  call: GenerateCall,
  wire: keyof typeof sisters,
  { partBreakpoints }: BreakpointQuirks,
): { readonly call: GenerateCall; readonly dropped: readonly string[] } {
  const dropped = droppedExtra(call, wire);
  const sister = sisters[wire];
  if (!partBreakpoints || call.dialect !== sister || !dropped.includes(name)) return { call, dropped };
  const moved = <Any extends Part>(part: Any): Any => {
    if (part.type !== 'text' && (part.type !== 'media' || part.kind === 'audio')) return part;
    const breakpoint = part.extra?.[sister]?.[name];
    return breakpoint === undefined ? part : { ...part, extra: { ...part.extra, [wire]: { [name]: breakpoint } } };
  };
  const partOf = (part: Part): Part => (part.type === 'tool-result' ? { ...part, parts: part.parts.map(moved) } : moved(part));
  const isAble = ({ role }: Turn) => role !== 'model' || wire === 'openai-chat'; // texts of answers have none on the wire of responses
  const own = { ...call, turns: call.turns.map((turn) => (isAble(turn) ? { ...turn, parts: turn.parts.map(partOf) } : turn)) };
  return { call: own, dropped: droppedExtra(own, wire) };
}
