import type { NounRoute } from '#http/noun-route';
import type { Outside } from '#kit/net/guarded-dial';
import { openGuardedStreams, type GuardedStreams } from '#kit/net/guarded-stream';
import { openKnownMcpServers, type McpServers, type McpServersDeps } from './mcp-servers.ts';
import { openUserSecrets, type UserSecrets } from './secrets.ts';
import { outwardOf } from './upstreams.ts';

/** What lets models act for users: secrets, MCP servers and their tools. */
export interface Acting extends Pick<UserSecrets, 'resolve'>, Pick<McpServers, 'tools' | 'offered' | 'ofAgents' | 'waiting' | 'signedIn'> {
  /** Asks addresses that users chose. */
  readonly streams: GuardedStreams;
  /** Fetches what datasets follow. */
  readonly followed: { readonly pages: GuardedStreams; readonly buckets: GuardedStreams };
  /** Of the native interface. */
  readonly native: readonly NounRoute[];
  /** Under `/server/mine`. */
  readonly own: readonly NounRoute[];
  close(): Promise<void>;
}

/** Longest exchange with an address: a call of a tool, and what is around it. */
const exchangeSeconds = 65;
/** Longest fetch of a page and of an object of a bucket that a dataset follows. */
const [pageSeconds, objectSeconds] = [30, 600];

export function openActing({ outside, ...deps }: Omit<McpServersDeps, 'resolve' | 'streams'> & { readonly outside: Outside | undefined }): Acting {
  const { first, clock } = deps;
  const secrets = openUserSecrets(deps.database);
  const { resolve } = secrets;
  const open = (seconds: number) => openGuardedStreams({ clock, allow: first.outbound.allow, ...outwardOf(first), outside, seconds });
  const streams = open(exchangeSeconds);
  const followed = { pages: open(pageSeconds), buckets: open(objectSeconds) };
  const servers = openKnownMcpServers({ ...deps, resolve, streams });
  const { tools, offered, ofAgents, waiting, signedIn, close } = servers;
  const native = [...secrets.native, ...servers.native];
  return { resolve, streams, followed, tools, offered, ofAgents, waiting, signedIn, native, own: [...secrets.own, ...servers.own], close };
}
