import type { NounRoute } from '#http/noun-route';
import type { Outside } from '#kit/net/guarded-dial';
import { openGuardedStreams, type GuardedStreams } from '#kit/net/guarded-stream';
import { openKnownMcpServers, type McpServers, type McpServersDeps } from './mcp-servers.ts';
import { openUserSecrets, type UserSecrets } from './secrets.ts';
import { outwardOf } from './upstreams.ts';

/** What lets models act for users: secrets, MCP servers and their tools. */
export interface Acting extends Pick<UserSecrets, 'resolve'>, Pick<McpServers, 'tools' | 'waiting'> {
  /** Asks addresses that users chose. */
  readonly streams: GuardedStreams;
  /** Of the native interface. */
  readonly native: readonly NounRoute[];
  /** Under `/server/mine`. */
  readonly own: readonly NounRoute[];
  close(): Promise<void>;
}

/** Longest exchange with an address: a call of a tool, and what is around it. */
const exchangeSeconds = 65;

export function openActing({ outside, ...deps }: Omit<McpServersDeps, 'resolve' | 'streams'> & { readonly outside: Outside | undefined }): Acting {
  const { first, clock } = deps;
  const secrets = openUserSecrets(deps.database);
  const { resolve } = secrets;
  const streams = openGuardedStreams({ clock, allow: first.outbound.allow, ...outwardOf(first), outside, seconds: exchangeSeconds });
  const servers = openKnownMcpServers({ ...deps, resolve, streams });
  const { tools, waiting, close } = servers;
  return { resolve, streams, tools, waiting, native: [...secrets.native, ...servers.native], own: [...secrets.own, ...servers.own], close };
}
