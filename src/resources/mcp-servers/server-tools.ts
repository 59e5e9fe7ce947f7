import { createHash } from 'node:crypto';
import { Fault } from '#core/fault';
import { isObject, type JsonObject } from '#core/json';
import type { ServerTool as ShownTool, ServerTools } from '#core/server-tools';
import { McpFailure } from '#kit/mcp/connection';
import type { McpTools, ServerTool } from './tools.ts';

/** Characters of a name that models see. */
const longestName = 64;

/** The tools of MCP servers, as the gateway calls them for models. */
export function serverTools(tools: McpTools): ServerTools {
  return {
    async offered(caller, wanted, signal) {
      const found = await tools.all(caller, { signal }, new Set(wanted.map(({ server }) => server)));
      const names = new Map<string, ShownTool>();
      const unknown: string[] = [];
      for (const { server, tool, asks } of wanted) {
        const one = found.find((other) => other.server.id === server && other.definition.name === tool);
        if (one) add(names, shown(one, asks));
        else unknown.push(`${server}_${tool}`.slice(0, 100));
      }
      return { tools: [...names.values()], unknown };
    },
    async call(caller, { server, tool, digest, json }, signal) {
      const args = objectIn(json);
      if (!args) return { text: 'The arguments are no JSON object.', isError: true };
      try {
        return await tools.call(caller, { server, tool, digest, args }, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof McpFailure || error instanceof Fault) return { text: `The tool could not be called: ${error.message}`, isError: true };
        throw error;
      }
    },
  };
}

/** What is named by its client is approved by being named, unless every call is to be. */
function shown({ server, definition, approval }: ServerTool, asks: boolean): ShownTool {
  const { name, description, inputSchema, digest } = definition;
  const declared = {
    type: 'function',
    name: nameOf(server.name, name, server.id),
    ...(description === '' ? {} : { description }),
    parameters: inputSchema as JsonObject,
  } as const;
  return { declared, server: server.id, name, digest, needsApproval: asks || approval === 'always' };
}

/** `<server>__<tool>`; where that is too long, or was written otherwise, it ends with digits of its own. */
function nameOf(server: string, tool: string, id: number): string {
  const plain = `${server}__${tool}`;
  const name = plain.replace(/[^A-Za-z0-9_-]/g, '_');
  return name === plain && name.length <= longestName ? name : distinct(name, `${id}/${tool}`);
}

const distinct = (name: string, what: string) => `${name.slice(0, longestName - 9)}_${createHash('sha256').update(what).digest('hex').slice(0, 8)}`;

/** Two servers may have one name. */
function add(names: Map<string, ShownTool>, tool: ShownTool): void {
  const { name } = tool.declared;
  const other = names.get(name);
  if (!other || (other.server === tool.server && other.name === tool.name)) names.set(name, tool);
  else {
    const declared = { ...tool.declared, name: distinct(name, `${tool.server}/${tool.name}`) };
    names.set(declared.name, { ...tool, declared });
  }
}

function objectIn(json: string): Readonly<Record<string, unknown>> | undefined {
  if (json.trim() === '') return {};
  try {
    const value: unknown = JSON.parse(json);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
