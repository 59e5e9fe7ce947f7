import type { NounRoute } from '#http/noun-route';
import { openKnownMcpServers, type McpServers, type McpServersDeps } from './mcp-servers.ts';
import { openUserSecrets, type UserSecrets } from './secrets.ts';

/** What lets models act for users: secrets, MCP servers and their tools. */
export interface Acting extends Pick<UserSecrets, 'resolve'>, Pick<McpServers, 'tools' | 'waiting'> {
  /** Of the native interface. */
  readonly native: readonly NounRoute[];
  /** Under `/server/mine`. */
  readonly own: readonly NounRoute[];
  close(): Promise<void>;
}

export function openActing(deps: Omit<McpServersDeps, 'resolve'>): Acting {
  const secrets = openUserSecrets(deps.database);
  const { resolve } = secrets;
  const servers = openKnownMcpServers({ ...deps, resolve });
  const { tools, waiting, close } = servers;
  return { resolve, tools, waiting, native: [...secrets.native, ...servers.native], own: [...secrets.own, ...servers.own], close };
}
