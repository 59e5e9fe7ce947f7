import { createHash, type Hash } from 'node:crypto';
import type { ToolCallPart, Turn } from '#core/conversation';

/** Names of tool calls, under which their thoughts are stored for a user. */

/** Is an id long and random, as most providers make them? Some count (`functions.look:0`): such a call is identified by its position, too. */
const isOwnId = (id: string): boolean => id.length <= 500 && /[0-9A-Za-z]{16}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/.test(id) && /\d/.test(id);

/** @param position `positionOf` the call, computed only where the id is not unique */
export const nameOfCall = (id: string, position: () => string): string => (isOwnId(id) ? `id ${id}` : `at ${position()} ${id.slice(0, 500)}`);

/** Did the client return the call without an id? */
export const isUnnamed = ({ extra }: ToolCallPart): boolean => Object.values(extra ?? {}).some((carried) => carried['.unnamed'] === true);

/** Parts of a turn, and of a result, that count. */
const mostParts = 16;
/** Characters of each end of a text. */
const end = 1000;

/**
 * A digest of the position of a call in its conversation: of the user's first turn and of the turns between the model's turn and the one before.
 * @param at index of the model's turn
 * @param ordinal index of the call among those of the turn
 */
export function positionOf(turns: readonly Turn[], at: number, ordinal: number): string {
  const hash = createHash('sha256');
  const first = turns.findIndex(({ role }) => role === 'user');
  if (first >= 0) take(hash, turns[first]!);
  let from = at;
  while (from > 0 && turns[from - 1]!.role !== 'user') from--;
  const said: Turn[] = [];
  for (; from > 0 && turns[from - 1]!.role !== 'model'; from--) said.unshift(turns[from - 1]!);
  for (const turn of said) if (turn.role === 'user') take(hash, turn);
  return `${hash.digest('base64url')} ${ordinal}`;
}

function take(hash: Hash, { parts }: Turn): void {
  for (const part of parts.slice(0, mostParts)) {
    const texts = part.type === 'tool-result' ? part.parts.slice(0, mostParts) : [part];
    for (const one of texts) if (one.type === 'text') hash.update(`${one.text.length} ${one.text.slice(0, end)} ${one.text.slice(-end)}\n`);
  }
}
