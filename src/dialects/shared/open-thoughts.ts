import type { Part, Turn } from '#core/conversation';

/**
 * The turns without the thoughts behind which an answer ended, such as one that was cut short. OpenAI says `Item 'rs_1' of type 'reasoning' was provided without
 * its required following item`, Claude `The final block in an assistant message cannot be "thinking"`. https://github.com/tailcallhq/forgecode/pull/3073
 * @param isThought is the part a thought that the provider would be sent?
 * @param next the role of the turn behind them
 * @returns the same turns where there are none
 */
export function withoutOpenThoughts(turns: readonly Turn[], isThought: (part: Part) => boolean, next?: Turn['role']): readonly Turn[] {
  const isOpen = ({ role, parts }: Turn, at: number) =>
    role === 'model' && (turns[at + 1]?.role ?? next) !== 'model' && parts.slice(endOf(parts, isThought)).some(isThought);
  if (!turns.some(isOpen)) return turns;
  return turns.flatMap((turn, at): readonly Turn[] => {
    if (!isOpen(turn, at)) return [turn];
    const end = endOf(turn.parts, isThought);
    const parts = turn.parts.filter((part, place) => place < end || !isThought(part));
    return parts.length > 0 ? [{ ...turn, parts }] : [];
  });
}

/** The index behind the last part that follows its thoughts: the gateway's own searches are not sent. */
const endOf = (parts: readonly Part[], isThought: (part: Part) => boolean): number =>
  parts.findLastIndex((part) => part.type !== 'search' && !isThought(part)) + 1;
