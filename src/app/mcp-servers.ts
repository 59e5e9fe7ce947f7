import type { Settings } from '#config/index';
import type { Context } from '#core/context';
import { callbackPath } from '#faces/mcp/sign-in-page';
import type { ToolSource } from '#core/mcp-offers';
import type { ResolveSecrets } from '#core/secrets';
import type { AgentServerTools, ServerTools } from '#core/server-tools';
import type { NounRoute } from '#http/noun-route';
import type { Clock } from '#kit/async/clock';
import { runAll } from '#kit/async/run-all';
import type { GuardedStreams } from '#kit/net/guarded-stream';
import { audit } from '#resources/audit/store';
import { openApprovedCalls } from '#resources/mcp-servers/approved-calls';
import { forgetting } from '#resources/mcp-servers/forgetting';
import { nativeMcpRoutes } from '#resources/mcp-servers/native-routes';
import type { McpPolicy } from '#resources/mcp-servers/policy';
import { mcpServerRoutes, type McpRoutesDeps } from '#resources/mcp-servers/routes';
import { offeredServerTools } from '#resources/mcp-servers/offered';
import { openMcpSessions } from '#resources/mcp-servers/sessions';
import { kind, openMcpServers } from '#resources/mcp-servers/store';
import { agentServerTools, serverTools } from '#resources/mcp-servers/server-tools';
import { openSignIns, type SignIns } from '#resources/mcp-servers/sign-ins';
import { openMcpTools } from '#resources/mcp-servers/tools';
import { openWaiting, type WaitingStore } from '#resources/mcp-servers/waiting';
import { nativeContext } from '#resources/native-context';
import { openSharing } from '#resources/sharing';
import { problemsTo, type Log } from '#telemetry/log';
import type { Database } from './database.ts';

export interface McpServersDeps {
  readonly database: Pick<Database, 'store' | 'seal'>;
  /** Those that the server started with. */
  readonly first: Settings;
  readonly settings: () => Settings;
  readonly resolve: ResolveSecrets;
  readonly streams: GuardedStreams;
  readonly clock: Clock;
  /** Where browsers reach this server; empty: nothing says so. */
  readonly address: () => string;
  /** Takes the permit of a request. @throws Fault `rate-limited` */
  readonly enters: (context: Context) => Promise<void>;
  readonly log: Log;
}

/** The MCP servers of users and of the operator, and their tools. */
export interface McpServers {
  /** As the gateway calls them for models. */
  readonly tools: ServerTools;
  /** As they are offered to clients of MCP. */
  readonly offered: ToolSource;
  /** As agents have them. */
  readonly ofAgents: AgentServerTools;
  /** Calls that wait for the approval of their user. */
  readonly waiting: WaitingStore;
  readonly native: readonly NounRoute[];
  readonly own: readonly NounRoute[];
  /** Ends a sign-in at a server of a user. */
  readonly signedIn: SignIns['finish'];
  close(): Promise<void>;
}

export function openKnownMcpServers({ database: { store, seal }, first, settings, resolve, streams, clock, address, enters, log }: McpServersDeps): McpServers {
  const policy = (): McpPolicy => ({ ...settings().mcp, allowed: first.outbound.allow });
  const operators = () => policy().stdio.map(({ name }) => name);
  const servers = openMcpServers({ store, seal, audit, operators, addresses: () => policy().whitelist.map(({ url }) => url) });
  const sessions = openMcpSessions({ streams, clock });
  const problem = problemsTo(log);
  const allowed = () => policy().allowed;
  const callback = () => (address() === '' ? undefined : address().replace(/\/$/, '') + callbackPath);
  const signIns = openSignIns({ store, seal, audit, streams, clock, allowed, callback, changed: sessions.forget, log: problem });
  const tools = openMcpTools({ servers, sessions, clock, policy, resolve, signIns });
  const sharing = openSharing({ store, audit, kind, lock: servers.lock });
  const waiting = openWaiting({ store, seal });
  const approved = openApprovedCalls({ store, seal, clock, log: problem });
  const stopForgetting = forgetting([waiting, approved], clock, problem);
  const changed = (id: number) => sessions.forget(id);
  const deps: McpRoutesDeps & Parameters<typeof serverTools>[0] = {
    servers,
    tools,
    signIns,
    policy,
    approved,
    sharing,
    met: () => servers.meetOperators(operators()),
    enters: ({ caller, by, signal }) => enters(nativeContext({ caller, requestId: by.requestId ?? '', signal })),
    changed,
  };
  return {
    tools: serverTools(deps),
    offered: offeredServerTools(deps),
    ofAgents: agentServerTools(deps, servers.one),
    waiting,
    native: nativeMcpRoutes(deps),
    own: mcpServerRoutes(deps),
    signedIn: signIns.finish,
    close() {
      stopForgetting();
      return runAll([() => signIns.close(), () => sessions.close()]);
    },
  };
}
