import type { ToolResultPart, Turn } from '#core/conversation';
import { withOwnIds } from './own-ids.ts';

/**
 * The turns with an empty result behind each tool call that has none, and an id of its own for each: providers refuse a conversation with an open call. The
 * same turns where all are answered.
 * @param ignored takes a warning
 */
export function withAllResults(given: readonly Turn[], ignored: Set<string>): readonly Turn[] {
  const turns = withOwnIds(given);
  const open = openCalls(turns);
  if (open.size === 0) return turns;
  ignored.add('tool result: a tool call without a result is sent with an empty one.');
  return turns.flatMap((turn, at) => {
    const ids = open.get(at);
    return ids ? [turn, { role: 'user', parts: ids.map((id): ToolResultPart => ({ type: 'tool-result', id, parts: [] })) }] : [turn];
  });
}

/** The calls of one turn with one id, and how many of them have their result. */
interface Waiting {
  readonly turn: number;
  calls: number;
  answered: number;
}

/** The ids of the calls that nobody answered, by the index of their turn. Where a later turn calls with an id anew, the results behind it are those of its calls. */
function openCalls(turns: readonly Turn[]): ReadonlyMap<number, readonly string[]> {
  const open = new Map<number, string[]>();
  const leave = (id: string, { turn, calls, answered }: Waiting) => {
    const ids = open.get(turn) ?? [];
    for (let left = calls - answered; left > 0; left--) ids.push(id);
    if (ids.length > 0) open.set(turn, ids);
  };
  const waiting = new Map<string, Waiting>();
  for (const [turn, { parts }] of turns.entries()) {
    for (const part of parts) {
      if (part.type !== 'tool-call' && part.type !== 'tool-result') continue;
      const known = waiting.get(part.id);
      if (part.type === 'tool-result') {
        if (known && known.answered < known.calls) known.answered++;
      } else if (known?.turn === turn) known.calls++;
      else {
        if (known) leave(part.id, known);
        waiting.set(part.id, { turn, calls: 1, answered: 0 });
      }
    }
  }
  for (const [id, left] of waiting) leave(id, left);
  return open;
}
