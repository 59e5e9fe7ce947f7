import type { Context } from '#core/context';
import type { JsonObject } from '#core/json';
import { mayCall, type OfferedTool, type ToolAnswer, type ToolSource } from '#core/mcp-offers';
import { McpFailure } from '#kit/mcp/connection';
import { mayHaveNamed, nameOf } from './tool-names.ts';
import type { McpServer, McpServerStore } from './store.ts';
import { unreachableLast, type McpTools, type ServerTool } from './tools.ts';

export interface OfferedDeps {
  readonly servers: Pick<McpServerStore, 'usable'>;
  readonly tools: McpTools;
  /** Makes sure that the operator's servers have their rows. */
  readonly met: () => Promise<void>;
}

/** Servers that are asked for a part of the list. */
const atATime = 8;

/** The tools of the caller's MCP servers, as tools of our own: `<server>__<tool>`. Nobody is asked here: what is to be approved first is approved elsewhere. */
export function offeredServerTools({ servers, tools, met }: OfferedDeps): ToolSource {
  const usable = async (context: Context, wanted: (server: McpServer) => boolean) => {
    await met();
    return (await servers.usable(context.caller)).filter(wanted);
  };
  const toolsOf = async ({ caller, signal }: Context, some: readonly McpServer[]) =>
    some.length === 0 ? [] : tools.all(caller, { signal }, new Set(some.map(({ id }) => id)));
  return {
    scopes: ['mcp'],
    async *tools(context) {
      const { mcpTools } = context.caller;
      const asked = unreachableLast(await usable(context, (server) => mcpTools === undefined || mcpTools.some((name) => mayHaveNamed(server, name))));
      for (let at = 0; at < asked.length; at += atATime) {
        const some = new Set(asked.slice(at, at + atATime).map(({ id }) => id));
        const { tools: found } = await tools.inTime(context.caller, { signal: context.signal }, some);
        for (const tool of found) if (tool.approval !== 'always') yield offered(tool);
      }
    },
    async call(name, args, context) {
      const candidates = await usable(context, (server) => mayHaveNamed(server, name));
      const tool = (await toolsOf(context, candidates)).find(({ server, definition }) => nameOf(server, definition.name) === name);
      return tool && mayCall(context.caller, name) ? called(tool, args) : undefined;

      async function called({ server, definition, approval, needsApproval }: ServerTool, given: Readonly<Record<string, unknown>>): Promise<ToolAnswer> {
        if (approval === 'always') return { text: askedEachTime, isError: true };
        if (needsApproval) return { text: unapproved(server.id, definition.name), isError: true };
        try {
          return await tools.call(context.caller, { server: server.id, tool: definition.name, digest: definition.digest, args: given }, context.signal);
        } catch (error) {
          if (error instanceof McpFailure) return { text: `The tool could not be called: ${error.message}`, isError: true };
          throw error;
        }
      }
    },
  };
}

const askedEachTime =
  'Each call of this tool is to be approved by the user, who cannot be asked here: call it in a question (/server/query), or change its approval.';

const unapproved = (server: number, tool: string): string =>
  `The user has not approved this tool as it is now. Look at it with GET /server/mine/mcp-servers/${server}/tools, approve it with POST /server/mine/mcp-servers/${server}/tools/${encodeURIComponent(tool)}/approve, and call it again.`;

function offered({ server, definition: { name, description, inputSchema, isReadOnly } }: ServerTool): OfferedTool {
  return { name: nameOf(server, name), description: description || `A tool of ${server.name}.`, inputSchema: inputSchema as JsonObject, isReadOnly };
}
