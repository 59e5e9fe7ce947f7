import type { CustomTool, FunctionTool, Namespace } from '#core/conversation';

/** Most characters of a namespace's description that each of its tools has: there may be many tools. */
const mostTold = 1024;
/** Fewer characters say nothing. */
const fewestTold = 20;

interface Described<Any> {
  readonly tool: Any;
  /** Not all of the description is in it. */
  readonly isCut: boolean;
}

/**
 * A tool of a namespace with the namespace's description before its own, for a wire on which nothing else would tell the model of it.
 *
 * @param longest characters that the wire accepts in a description; one that is longer already is the client's own affair
 */
export function described<Any extends FunctionTool | CustomTool>(tool: Any, { description: whole = '' }: Namespace, longest = Infinity): Described<Any> {
  if (whole === '') return { tool, isCut: false };
  const { description: own = '' } = tool;
  const between = own === '' ? '' : '\n\n';
  const room = own.length > longest ? mostTold : Math.min(mostTold, longest - own.length - between.length);
  const told = whole.length <= room ? whole : room < fewestTold ? '' : `${whole.slice(0, room - 1).toWellFormed()}…`;
  return { tool: told === '' ? tool : { ...tool, description: told + between + own }, isCut: told !== whole };
}
