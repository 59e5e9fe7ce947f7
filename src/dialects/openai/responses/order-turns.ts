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
 */
export function orderTurns(turns: readonly Turn[]): readonly Turn[] {
  const groups: Group[] = [];
  const callers = new Map<string, Group>();
  for (const turn of turns) {
    const results = resultsOf(turn);
    const caller = results && callers.get(results[0]!.id);
    if (caller) {
      caller.results.push(...results);
      continue;
    }
    let group = groups.at(-1);
    if (turn.role === 'model' && group?.turn.role === 'model' && group.results.length === 0) {
      for (const part of ownMessage(group.parts.at(-1), turn.parts)) group.parts.push(part);
    } else groups.push((group = { turn, parts: [...turn.parts], results: [] }));
    for (const part of turn.parts) if (part.type === 'tool-call') callers.set(part.id, group);
  }
  return groups.flatMap(({ turn, parts, results }): readonly Turn[] => {
    const whole = parts.length === turn.parts.length ? turn : { ...turn, parts };
    return results.length === 0 ? [whole] : [whole, { role: 'user', parts: results }];
  });
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
