import type { Part, ToolResultPart, Turn } from '#core/conversation';
import { dialect } from './wire.ts';

/** A turn of the model and the results of its tool calls, or another turn. */
interface Group {
  readonly turn: Turn;
  /** Those of the turn, and of the neighbours that joined it. */
  readonly parts: Part[];
  readonly results: ToolResultPart[];
}

/**
 * A conversation as other wires accept it: neighbouring messages and calls of the model are one turn, and results follow the calls that they belong to directly,
 * whatever was said in between. Codex sends message, call, message, result. https://github.com/BerriAI/litellm/pull/32536
 * If results come last but the model would have the last word, their calls move down to them: the model is to answer the new results.
 */
export function orderTurns(turns: readonly Turn[]): readonly Turn[] {
  if (turns.length < 2) return turns;
  const groups: Group[] = [];
  const callers = new Map<string, Group>();
  for (const turn of turns) {
    const left = resultsOf(turn)?.filter((result) => !callers.get(result.id)?.results.push(result));
    if (left?.length === 0) continue;
    const group = addTurn(groups, left ? { ...turn, parts: left } : turn);
    for (const part of turn.parts) if (part.type === 'tool-call') callers.set(part.id, group);
  }
  const last = turns.at(-1);
  const answered = last && hasLastWord(groups.at(-1)) ? new Set(resultsOf(last)?.map(({ id }) => callers.get(id)!)) : new Set<Group>();
  return (answered.size === 0 ? groups : movedDown(groups, answered)).flatMap(({ turn, parts, results }): readonly Turn[] => {
    const whole = parts.length === turn.parts.length ? turn : { ...turn, parts };
    return results.length === 0 ? [whole] : [whole, { role: 'user', parts: results }];
  });
}

/** Adds a turn to the last group, which it continues, or as a new one. @returns its group */
function addTurn(groups: Group[], turn: Turn): Group {
  const last = groups.at(-1);
  if (turn.role === 'model' && last?.turn.role === 'model' && last.results.length === 0) {
    for (const part of ownMessage(last.parts.at(-1), turn.parts)) last.parts.push(part);
    return last;
  }
  const group = { turn, parts: [...turn.parts], results: [] };
  groups.push(group);
  return group;
}

const hasLastWord = (group: Group | undefined): boolean =>
  group?.turn.role === 'model' && group.results.length === 0 && !group.parts.some(({ type }) => type === 'tool-call');

/** The groups, with those at the end. */
function movedDown(groups: readonly Group[], those: ReadonlySet<Group>): readonly Group[] {
  const moved: Group[] = [];
  for (const one of [...groups.filter((group) => !those.has(group)), ...those]) addTurn(moved, { ...one.turn, parts: one.parts }).results.push(...one.results);
  return moved;
}

/** @returns undefined unless the turn consists of results */
function resultsOf({ role, parts, extra }: Turn): readonly ToolResultPart[] | undefined {
  const results = parts.filter((part) => part.type === 'tool-result');
  return role === 'user' && extra === undefined && results.length > 0 && results.length === parts.length ? results : undefined;
}

/** Texts of two messages stay two messages on this wire. */
function ownMessage(before: Part | undefined, parts: readonly Part[]): readonly Part[] {
  const [first, ...others] = parts;
  if (first?.type !== 'text' || (before?.type !== 'text' && before?.type !== 'refusal')) return parts;
  const note = { '.message': {}, ...first.extra?.[dialect] };
  return [{ ...first, extra: { ...first.extra, [dialect]: note } }, ...others];
}
