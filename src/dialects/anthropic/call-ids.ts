import type { Part, Turn } from '#core/conversation';

/** The wire allows letters, digits, `_` and `-` in an id. */
export const idOf = (id: string): string => id.replaceAll(/[^\w-]/g, '_') || '_';

/**
 * The turns with an id of its own for each call: Claude says `tool_use ids must be unique`, and the models of others may count their calls anew in every turn.
 * https://github.com/anomalyco/opencode/issues/1279
 *
 * @returns the same turns where all ids differ
 */
export function withUniqueIds(turns: readonly Turn[]): readonly Turn[] {
  const ids = turns.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'tool-call' ? [idOf(part.id)] : [])));
  const taken = new Set(ids);
  if (taken.size === ids.length) return turns;
  const used = new Set<string>();
  const counts = new Map<string, number>();
  const newId = (id: string): string => {
    if (!used.has(id)) return id;
    let count = counts.get(id) ?? 1;
    do count++;
    while (taken.has(`${id}_${count}`));
    counts.set(id, count);
    return `${id}_${count}`;
  };
  const calls = new Map<string, Calls>(); // by the id that the client gave them
  const renamed = (part: Part): Part => {
    if (part.type === 'tool-call') {
      const id = newId(idOf(part.id));
      used.add(id);
      taken.add(id);
      const its = calls.get(part.id);
      if (its) its.open.push(id);
      else calls.set(part.id, { open: [id], answered: id });
      return { ...part, id };
    }
    if (part.type !== 'tool-result') return part;
    const its = calls.get(part.id);
    if (!its) return part;
    its.answered = its.open.shift() ?? its.answered;
    return { ...part, id: its.answered };
  };
  return turns.map((turn) => ({ ...turn, parts: turn.parts.map(renamed) }));
}

/** The calls that came with one id. */
interface Calls {
  /** The new ids of those that have no result yet. */
  readonly open: string[];
  /** The new id of the call that had the last result. */
  answered: string;
}
