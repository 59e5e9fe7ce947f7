import type { Part, ToolResultPart, Turn } from '#core/conversation';
import { DistinctIds } from '../shared/distinct-ids.ts';

/** The wire allows letters, digits, `_` and `-` in an id. */
export const idOf = (id: string): string => id.replaceAll(/[^\w-]/g, '_') || '_';

/**
 * The turns with an id of its own for each call: Claude says `tool_use ids must be unique`, and the models of others may count their calls anew in every turn.
 * https://github.com/anomalyco/opencode/issues/1279
 * @returns the same turns where all ids differ
 */
export function withUniqueIds(turns: readonly Turn[]): readonly Turn[] {
  const ids = turns.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'tool-call' ? [idOf(part.id)] : [])));
  if (new Set(ids).size === ids.length) return turns;
  const distinct = new DistinctIds(ids);
  const used = new Set<string>();
  const calls = new Map<string, Calls>(); // by the id that the client gave them
  const renamed = (part: Part, turn: number): Part => {
    if (part.type === 'tool-call') {
      const wireId = idOf(part.id);
      const id = used.has(wireId) ? distinct.next(wireId) : wireId;
      used.add(id);
      const its = calls.get(part.id);
      if (its?.turn === turn) its.ids.push(id);
      else calls.set(part.id, { turn, ids: [id], answered: 0 });
      return { ...part, id };
    }
    if (part.type !== 'tool-result') return part;
    const its = calls.get(part.id);
    return its ? { ...part, id: its.ids[Math.min(its.answered++, its.ids.length - 1)]! } : part;
  };
  return turns.map((turn, at) => ({ ...turn, parts: turn.parts.map((part) => renamed(part, at)) }));
}

/** The calls of the last turn that called with an id: the results behind it are theirs. */
interface Calls {
  readonly turn: number;
  /** Their new ids. */
  readonly ids: string[];
  answered: number;
}

/**
 * The turns with one result for each call, where the first one was: Claude says `each tool_use must have a single result`, and other wires accept several.
 * @param turns with an id of its own for each call
 * @returns the same turns where no call has several
 */
export function withSingleResults(turns: readonly Turn[]): readonly Turn[] {
  const results = Map.groupBy(
    turns.flatMap(({ parts }) => parts.filter((part) => part.type === 'tool-result')),
    ({ id }) => idOf(id),
  );
  if (results.values().every(({ length }) => length === 1)) return turns;
  const single = (part: Part): readonly Part[] => {
    if (part.type !== 'tool-result') return [part];
    const all = results.get(idOf(part.id))!;
    return all[0] === part ? [joined(all)] : [];
  };
  return turns.map((turn) => ({ ...turn, parts: turn.parts.flatMap(single) }));
}

/** The results as one, with the parts of all; it has failed if one of them has. */
const joined = (results: readonly ToolResultPart[]): ToolResultPart =>
  results.length === 1
    ? results[0]!
    : { ...results[0]!, parts: results.flatMap(({ parts }) => parts), ...(results.some(({ failed }) => failed) ? { failed: true } : {}) };
