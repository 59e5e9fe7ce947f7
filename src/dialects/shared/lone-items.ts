import type { GenerateCall } from '#core/call';
import type { Part, Tool, Turn } from '#core/conversation';
import { isObject, textOf, type Extra, type Json } from '#core/json';
import type { Fitted } from './fitting.ts';

/** The note on a turn that is an item of its dialect beside the messages, such as one that declares tools: it says nothing. */
export const itemNote = '.item';

/** Whether a turn is such an item. */
export const isItem = ({ extra }: { readonly extra?: Extra }): boolean => Object.values(extra ?? {}).some((notes) => notes[itemNote] === true);

/** Which items a wire, or a model, does not have: those that declare tools, or all. */
export type LoneItems = 'with-tools' | 'all';

/**
 * Leaves out the items of another dialect that are no messages. Their tools are declared like all others. What else they hold is reported.
 * @returns undefined where there are none
 */
export function withoutLoneItems(call: GenerateCall, which: LoneItems = 'all'): Fitted | undefined {
  const isOut = (turn: Turn) => isItem(turn) && (which === 'all' || declaresTools(turn));
  if (!call.turns.some(isOut)) return undefined;
  const ignored = new Set<string>();
  const turns = call.turns.filter((turn) => {
    const out = isOut(turn);
    if (out) for (const part of turn.parts) note(part, ignored);
    return !out;
  });
  return { call: { ...call, turns: joined(turns), tools: call.tools.map(alone) }, ...(ignored.size > 0 ? { ignored: [...ignored] } : {}) };
}

export function loneItemsIn({ turns }: Pick<GenerateCall, 'turns'>): LoneItems | undefined {
  const items = turns.filter(isItem);
  if (items.length === 0) return undefined;
  return items.some(declaresTools) ? 'with-tools' : 'all';
}

const declaresTools = ({ parts }: Turn): boolean => parts.some((part) => part.type === 'foreign' && toolsIn(part.value) !== undefined);

/** The tool without the item that declared it. What of the item cannot be read has a field of its own, and stays where it is. */
function alone(tool: Tool): Tool {
  if (!tool.inItem || (tool.type === 'foreign' && tool.field !== undefined)) return tool;
  const { inItem: _, ...others } = tool;
  return others;
}

function note(part: Part, ignored: Set<string>): void {
  if (part.type === 'foreign' && toolsIn(part.value) === undefined)
    ignored.add(`${textOf(part.value['type']).slice(0, longestType)}: only ${part.dialect} supports it.`);
}

const longestType = 100;

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
