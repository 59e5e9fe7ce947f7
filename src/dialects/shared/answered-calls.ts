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

/** The turns that called with one id, and how many of them have their result. */
interface Waiting {
  readonly places: number[];
  answered: number;
}

/** The ids of the calls that nobody answered, by the index of their turn. */
function openCalls(turns: readonly Turn[]): ReadonlyMap<number, readonly string[]> {
  const waiting = new Map<string, Waiting>();
  for (const [at, { parts }] of turns.entries()) {
    for (const part of parts) {
      if (part.type !== 'tool-call' && part.type !== 'tool-result') continue;
      const calls = waiting.get(part.id);
      if (part.type === 'tool-result') {
        if (calls && calls.answered < calls.places.length) calls.answered++;
      } else if (calls) calls.places.push(at);
      else waiting.set(part.id, { places: [at], answered: 0 });
    }
  }
  const open = new Map<number, string[]>();
  for (const [id, { places, answered }] of waiting) {
    for (const at of places.slice(answered)) {
      const ids = open.get(at);
      if (ids) ids.push(id);
      else open.set(at, [id]);
    }
  }
  return open;
}
