import type { Settings } from '#config/index';
import type { Clock } from '#kit/async/clock';
import { openIdentity } from '#resources/api-keys/identify';
import { openRights, type Ongoing } from '#resources/api-keys/rights';
import { openApiKeys, type Found } from '#resources/api-keys/store';
import { causeOf, type Log } from '#telemetry/log';
import { openAdministration } from './administration.ts';
import type { Database } from './database.ts';

export interface IdentitiesDeps {
  readonly database: Database;
  readonly settings: () => Settings;
  readonly clock: Clock;
  readonly log: Log;
  /** The requests that are being answered. */
  readonly ongoing: () => readonly Ongoing[];
}

/** Opens identity, administration and rights: the owners of keys, with their plans and teams. */
export async function openIdentities({ database, settings, clock, log, ongoing }: IdentitiesDeps) {
  const { store, pepper } = database;
  const keys = openApiKeys(store, pepper);
  /** Makes sure that the plans and teams of the callers found are in memory: another process may have just made them. */
  const met = async <Some extends Iterable<Found | undefined>>(found: Some): Promise<Some> => {
    for (const one of found) if (one) await administration.meets(one.caller);
    return found;
  };
  const find: typeof keys.find = async (credentials) => met(await keys.find(credentials));
  const identity = openIdentity({ find }, store, clock, () => settings().limits.staleCredentialSeconds);
  const note = (problem: string, cause: unknown) => log.error(causeOf(cause), problem);
  const administration = await openAdministration({ database, settings, clock, teamsChanged: identity.forget, log: note });
  const rights = openRights({
    keys: {
      async callers(keyIds) {
        const found = await keys.callers(keyIds);
        await met(found.values());
        return found;
      },
    },
    store,
    clock,
    ongoing,
    log: note,
  });
  return { identity, administration, rights };
}
