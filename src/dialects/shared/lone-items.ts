import type { GenerateCall } from '#core/call';
import type { Part, Turn } from '#core/conversation';
import { isObject, textOf, type Extra, type Json } from '#core/json';
import type { Fitted } from './fitting.ts';

/** The note on a turn that is an item of its dialect beside the messages, such as one that declares tools: it says nothing. */
export const itemNote = '.item';

const isItem = ({ extra }: { readonly extra?: Extra }): boolean => Object.values(extra ?? {}).some((notes) => notes[itemNote] === true);

/**
 * Leaves out the items of another dialect that are no messages. Their tools are declared like all others. What else they hold is reported.
 *
 * @returns undefined where there are none
 */
export function withoutLoneItems(call: GenerateCall): Fitted | undefined {
  if (!call.turns.some(isItem)) return undefined;
  const ignored = new Set<string>();
  const turns = call.turns.filter((turn) => {
    if (isItem(turn)) for (const part of turn.parts) note(part, ignored);
    return !isItem(turn);
  });
  return { call: { ...call, turns: joined(turns) }, ...(ignored.size > 0 ? { ignored: [...ignored] } : {}) };
}

function note(part: Part, ignored: Set<string>): void {
  if (part.type === 'foreign' && toolsIn(part.value) === undefined)
    ignored.add(`${textOf(part.value['type']).slice(0, longestType)}: only ${part.dialect} supports it.`);
}

const longestType = 100;

/** The tools that an item declares. */
export const toolsIn = (item: unknown): readonly Json[] | undefined =>
  isObject(item) && Array.isArray(item['tools']) ? (item['tools'] as readonly Json[]) : undefined;

/** Turns of the model that only an item was between are one. */
function joined(turns: readonly Turn[]): readonly Turn[] {
  const all: Turn[] = [];
  for (const turn of turns) {
    const last = all.at(-1);
    if (last?.role === 'model' && turn.role === 'model' && !last.extra && !turn.extra) all[all.length - 1] = { ...last, parts: last.parts.concat(turn.parts) };
    else all.push(turn);
  }
  return all;
}
