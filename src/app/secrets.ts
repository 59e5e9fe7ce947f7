import type { ResolveSecrets } from '#core/secrets';
import type { NounRoute } from '#http/noun-route';
import { audit } from '#resources/audit/store';
import { nativeSecretRoutes, secretRoutes } from '#resources/secrets/routes';
import { kind, openSecrets } from '#resources/secrets/store';
import { openSharing } from '#resources/sharing';
import type { Database } from './database.ts';

/** What users keep for their MCP servers and plugins, and nothing gives back. */
export interface UserSecrets {
  readonly resolve: ResolveSecrets;
  /** Of the native interface. */
  readonly native: readonly NounRoute[];
  /** Under `/server/mine`. */
  readonly own: readonly NounRoute[];
}

export function openUserSecrets({ store, seal }: Pick<Database, 'store' | 'seal'>): UserSecrets {
  const secrets = openSecrets({ store, seal, audit });
  const administers = (caller: Parameters<typeof secrets.one>[0], id: number) =>
    secrets.one(caller, id).then(({ right }) => right === 'admin' || right === 'owner');
  const sharing = openSharing({ store, audit, kind, lock: secrets.lock, administers });
  return { resolve: secrets.resolve, native: nativeSecretRoutes(secrets), own: secretRoutes(secrets, sharing) };
}
