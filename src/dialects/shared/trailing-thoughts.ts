import type { Part, Turn } from '#core/conversation';

/**
 * The turns without trailing thoughts, which an answer has that was cut short. OpenAI says `Item 'rs_1' of type 'reasoning' was provided without
 * its required following item`, Claude `The final block in an assistant message cannot be "thinking"`. https://github.com/tailcallhq/forgecode/pull/3073
 * @param isThought is the part a thought that the provider would be sent?
 * @param next the role of the turn behind them
 * @returns the same turns where there are none
 */
export function withoutTrailingThoughts(turns: readonly Turn[], isThought: (part: Part) => boolean, next?: Turn['role']): readonly Turn[] {
  const left: Turn[] = [];
  let isChanged = false;
  for (const turn of turns.toReversed()) {
    const { role, parts } = turn;
    const isLast = role === 'model' && (left.at(-1)?.role ?? next) !== 'model';
    const end = isLast ? endOf(parts, isThought) : parts.length;
    const kept = parts.slice(end).some(isThought) ? parts.filter((part, at) => at < end || !isThought(part)) : parts;
    if (kept !== parts) isChanged = true;
    if (kept === parts) left.push(turn);
    else if (kept.length > 0) left.push({ ...turn, parts: kept });
  }
  return isChanged ? left.toReversed() : turns;
}

/** The index after the last part that is neither a thought nor one of the gateway's own searches, which are not sent. */
const endOf = (parts: readonly Part[], isThought: (part: Part) => boolean): number =>
  parts.findLastIndex((part) => part.type !== 'search' && !isThought(part)) + 1;
