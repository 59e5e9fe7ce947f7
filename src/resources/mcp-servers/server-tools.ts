import { Fault, invalid } from '#core/fault';
import { objectIn } from '#kit/json/foreign';
import type { JsonObject } from '#core/json';
import { mayCall } from '#core/mcp-offers';
import type { AskUser, UserQuestion } from '#core/questions';
import type { AgentServerTools, ServerTool as ShownTool, ServerToolCaller, ServerTools } from '#core/server-tools';
import { McpFailure } from '#kit/mcp/connection';
import type { Elicit, Elicitation } from '#kit/mcp/elicitation';
import type { WantedServer, ToolsMeant } from '#core/conversation';
import type { ApprovedCalls } from './approved-calls.ts';
import { entryOf, notListed, permittedUrl, type McpPolicy } from './policy.ts';
import { stateOf } from './shapes.ts';
import type { McpServer, McpServerStore } from './store.ts';
import { nameOf } from './tool-names.ts';
import type { McpTools, ServerTool } from './tools.ts';

export interface ServerToolsDeps {
  readonly tools: McpTools;
  readonly servers: Pick<McpServerStore, 'usable' | 'listed'>;
  readonly policy: () => McpPolicy;
  readonly approved: Pick<ApprovedCalls, 'once'>;
  /** Makes sure that the operator's servers have their rows. */
  readonly met: () => Promise<void>;
}

/** Far more than a model has use for. */
const mostOthers = 100;

/** The tools of MCP servers, as the gateway calls them for models. */
export function serverTools({ tools, servers, policy, approved, met }: ServerToolsDeps): ServerTools {
  const permits: ServerTools['permits'] = (caller, others) => {
    for (const [at, { url, field }] of others.entries()) {
      if (at === mostOthers) throw invalid(field, `is beyond the ${mostOthers} MCP servers that a request may name`);
      requireScope(caller, field);
      if (caller.mcpTools)
        throw new Fault('forbidden', `${field}: the key may call only some tools, and a provider would call any of the server.`, { field, reason: 'scope' });
      if (url !== undefined) permittedUrl(url, policy(), field);
      else if (policy().mode === 'whitelist') throw notListed(field);
    }
  };
  return {
    permits,
    async ofServer(caller, wanted, signal) {
      const { field, credential } = wanted;
      const entry = wanted.url === undefined ? undefined : entryOf(wanted.url, policy());
      if (wanted.isProviders || (wanted.url !== undefined && !entry)) {
        if (wanted.url !== undefined) permits(caller, [{ url: wanted.url, field: `${field}.server_url` }]);
        if (wanted.isProviders) permits(caller, [{ field }]);
        return undefined;
      }
      requireScope(caller, field);
      if (credential !== undefined) throw invalid(`${field}.${credential}`, 'is not taken: add the server to your MCP servers, with its headers');
      await met();
      const server = await oneOf(await servers.usable(caller), wanted, entry, servers);
      if (!server) throw new Fault('not-found', `${field}.server_label is the name or id of no MCP server of yours.`, { field: `${field}.server_label` });
      try {
        const found = await tools.of(caller, server.id, { signal });
        return { tools: found.filter((tool) => tool.isAllowed && isMeant(tool, wanted.allowed, true)).flatMap((tool) => namedTool(tool, wanted, caller)) };
      } catch (error) {
        if (error instanceof McpFailure) return { tools: [], error: error.message };
        throw error;
      }
    },
    async offered(caller, wanted, signal) {
      const found = await tools.all(caller, { signal }, new Set(wanted.map(({ server }) => server)));
      const names = new Map<string, ShownTool>();
      const unknown: string[] = [];
      for (const { server, tool, asks } of wanted) {
        const one = found.find((other) => other.server.id === server && other.definition.name === tool);
        if (one && mayCall(caller, nameOf(one.server, tool))) names.set(nameOf(one.server, tool), shown(one, asks));
        else unknown.push(`${server}_${tool}`.slice(0, 100));
      }
      return { tools: [...names.values()], unknown };
    },
    async call(caller, { server, tool, digest, json, approval }, signal, ask) {
      const args = objectIn(json) as JsonObject | undefined;
      if (!args) return { text: 'The arguments are no JSON object.', isError: true };
      const called = async () => {
        try {
          return await tools.call(caller, { server, tool, digest, args }, signal, ask && elicitWith(ask));
        } catch (error) {
          signal.throwIfAborted();
          if (error instanceof McpFailure || error instanceof Fault) return { text: `The tool could not be called: ${error.message}`, isError: true };
          throw error;
        }
      };
      return approval === undefined ? called() : approved.once(caller.userId, [approval, server, tool, digest, json], signal, called);
    },
  };
}

/** @throws Fault `forbidden` */
function requireScope({ scopes }: ServerToolCaller, field: string): void {
  if (scopes?.includes('mcp') === false) throw new Fault('forbidden', 'The tools of MCP servers need a key with the scope mcp.', { field, reason: 'scope' });
}

const elicitWith = (ask: AskUser): Elicit =>
  Object.assign((asked: Elicitation, over: AbortSignal) => ask(asked as unknown as UserQuestion, over), { group: ask.run });

/** The same, for agents: the user is asked as the rules of the server say, for no client has named the tools. */
export function agentServerTools(deps: ServerToolsDeps, one: McpServerStore['one']): AgentServerTools {
  const { tools } = deps;
  return {
    call: serverTools(deps).call,
    async one(caller, id) {
      const server = await one(caller, id);
      const state = stateOf(server);
      return { name: server.name, wantsSignIn: state === 'sign-in', problem: state === 'ok' ? null : server.lastError };
    },
    async of(caller, wanted, signal) {
      const found = await tools.all(caller, { signal }, new Set(wanted.map(({ server }) => server)));
      const isWanted = ({ server, definition: { name } }: ServerTool) =>
        mayCall(caller, nameOf(server, name)) && wanted.some((one) => one.server === server.id && (one.tools?.includes(name) ?? true));
      return found.filter(isWanted).map((tool) => ({
        ...shown(tool, false),
        serverName: tool.server.name,
        asks: tool.approval === 'always' ? 'always' : tool.needsApproval ? 'first' : 'never',
        isApproved: tool.isApproved,
      }));
    },
    remember: ({ userId }, { server, tool, digest }) => tools.remember(userId, server, { name: tool, digest }),
  };
}

/** What is named by its client is approved by being named, unless every call is to be. */
function shown({ server, definition, approval }: ServerTool, asks: boolean): ShownTool {
  const { name, description, inputSchema, digest, isReadOnly } = definition;
  const declared = {
    type: 'function',
    name: nameOf(server, name),
    ...(description === '' ? {} : { description }),
    parameters: inputSchema as JsonObject,
  } as const;
  return { declared, server: server.id, name, digest, isReadOnly, needsApproval: asks || approval === 'always' };
}

async function oneOf(
  mine: readonly McpServer[],
  { label }: WantedServer,
  entry: McpPolicy['whitelist'][number] | undefined,
  servers: Pick<McpServerStore, 'listed'>,
): Promise<McpServer | undefined> {
  if (!entry) return mine.find(({ name }) => name === label) ?? mine.find(({ id }) => String(id) === label);
  return mine.find((one) => one.url !== '' && entryOf(one.url, { whitelist: [entry] })) ?? servers.listed(entry);
}

/** @param otherwise where nothing says which are meant */
function isMeant({ definition: { name, isReadOnly } }: ServerTool, meant: ToolsMeant | undefined, otherwise: boolean): boolean {
  if (!meant) return otherwise;
  const { names, readOnly } = meant;
  return (names?.includes(name) ?? true) && (readOnly !== true || isReadOnly) && (names ?? readOnly) !== undefined;
}

function namedTool(tool: ServerTool, { asked, unasked }: WantedServer, caller: Parameters<typeof mayCall>[0]): readonly ShownTool[] {
  const asks = unasked !== 'all' && (isMeant(tool, asked, false) || !isMeant(tool, unasked, false));
  const named = shown(tool, asks);
  return mayCall(caller, named.declared.name) ? [named] : [];
}
