import type { ToolResultPart, Turn } from '#core/conversation';

/**
 * The turns with an empty result behind each tool call that has none: providers refuse a conversation with an open call. The same turns where all are answered.
 *
 * @param ignored takes a warning
 */
export function withAllResults(turns: readonly Turn[], ignored: Set<string>): readonly Turn[] {
  const open = openCalls(turns);
  if (open.size === 0) return turns;
  ignored.add('tool result: a tool call without a result is sent with an empty one.');
  return turns.flatMap((turn, at) => {
    const ids = open.get(at);
    return ids ? [turn, { role: 'user', parts: ids.map((id): ToolResultPart => ({ type: 'tool-result', id, parts: [] })) }] : [turn];
  });
}

/** The ids of the calls that nobody answered, by the index of their turn. */
function openCalls(turns: readonly Turn[]): ReadonlyMap<number, readonly string[]> {
  const waiting = new Map<string, number[]>(); // the turns that called, by the id of the call
  for (const [at, { parts }] of turns.entries()) {
    for (const part of parts) {
      if (part.type === 'tool-call') waiting.set(part.id, [...(waiting.get(part.id) ?? []), at]);
      else if (part.type === 'tool-result') waiting.get(part.id)?.shift();
    }
  }
  const open = new Map<number, string[]>();
  for (const [id, places] of waiting) for (const at of places) open.set(at, [...(open.get(at) ?? []), id]);
  return open;
}
