import type { NounRoute } from '#http/noun-route';
import type { Outside } from '#kit/net/guarded-dial';
import { type GuardedStreams, openGuardedStreams } from '#kit/net/guarded-stream';
import { type McpServers, type McpServersDeps, openKnownMcpServers } from './mcp-servers.ts';
import { outwardOf } from './upstreams.ts';
import type { ResolveSecrets } from '#core/secrets';
import { audit } from '#resources/audit/store';
import { nativeSecretRoutes, secretRoutes } from '#resources/secrets/routes';
import { kind, openSecrets } from '#resources/secrets/store';
import { openSharing } from '#resources/sharing';
import type { Database } from './database.ts';

/** What lets models act for users: secrets, MCP servers and their tools. */
export interface Acting extends Pick<UserSecrets, 'resolve'>, Pick<McpServers, 'tools' | 'offered' | 'ofAgents' | 'waiting' | 'signedIn'> {
  /** Asks addresses that users chose. */
  readonly streams: GuardedStreams;
  /** Fetches what datasets follow. */
  readonly followed: { readonly pages: GuardedStreams; readonly buckets: GuardedStreams };
  readonly native: readonly NounRoute[];
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

/** What users keep for their MCP servers and plugins, and nothing gives back. */
interface UserSecrets {
  readonly resolve: ResolveSecrets;
  readonly native: readonly NounRoute[];
  readonly own: readonly NounRoute[];
}

function openUserSecrets({ store, seal }: Pick<Database, 'store' | 'seal'>): UserSecrets {
  const secrets = openSecrets({ store, seal, audit });
  const sharing = openSharing({ store, audit, kind, lock: secrets.lock });
  return { resolve: secrets.resolve, native: nativeSecretRoutes(secrets), own: secretRoutes(secrets, sharing) };
}
