import { createHash } from 'node:crypto';
import type { McpServer } from './store.ts';
import type { ServerTool } from './tools.ts';

/** Characters of a name that models see. */
const longestName = 64;
/** Of these the last ones, where the name is not enough. */
const digits = 8;

const written = (text: string): string => text.replaceAll(/[^A-Za-z0-9_-]/g, '_');

/** `<server>__<tool>`; where that is too long, or was written otherwise, it ends with digits of its own. */
export function nameOf(server: string, tool: string, id: number): string {
  const plain = `${server}__${tool}`;
  const name = written(plain);
  return name === plain && name.length <= longestName ? name : distinct(name, `${id}/${tool}`);
}

/** @param what tells the tool from every other one */
export const distinct = (name: string, what: string): string =>
  `${name.slice(0, longestName - digits - 1)}_${createHash('sha256').update(what).digest('hex').slice(0, digits)}`;

/** Whether a tool of the server can have this name. */
export function mayHaveNamed({ name: server }: Pick<McpServer, 'name'>, name: string): boolean {
  return name.startsWith(written(`${server}__`).slice(0, longestName - digits - 1));
}

/**
 * Tools by the names that models and clients see: two servers may have one name, and then all but the first have digits of their own.
 *
 * @param names those so far, which the tools are added to
 */
export function offeredNames(tools: readonly ServerTool[], names = new Map<string, ServerTool>()): Map<string, ServerTool> {
  for (const tool of tools) {
    const { server, definition } = tool;
    const name = nameOf(server.name, definition.name, server.id);
    const other = names.get(name);
    const isTaken = other && (other.server.id !== server.id || other.definition.name !== definition.name);
    names.set(isTaken ? distinct(name, `${server.id}/${definition.name}`) : name, tool);
  }
  return names;
}
