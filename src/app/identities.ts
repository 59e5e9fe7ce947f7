import type { Caller } from '#core/context';
import { badSession, Fault } from '#core/fault';
import type { Settings } from '#config/index';
import type { Clock } from '#kit/async/clock';
import { openIdentity } from '#resources/api-keys/identify';
import { openRights, type Ongoing } from '#resources/api-keys/rights';
import { openLastUsed } from '#resources/api-keys/last-used';
import { openApiKeys } from '#resources/api-keys/store';
import type { Found } from '#resources/callers';
import { openLogins } from '#resources/logins/logins';
import { openPasswords } from '#resources/passwords';
import { isSession, openSessions } from '#resources/sessions/store';
import { openTokens } from '#resources/tokens/tokens';
import { userWith } from '#resources/users/store';
import { isToken } from '#kit/crypto/jwt';
import { runAll } from '#kit/async/run-all';
import { problemsTo, type Log } from '#telemetry/log';
import { openAdministration } from './administration.ts';
import type { Database } from './database.ts';
import { openPrompts } from './prompt-log.ts';
import type { People } from './signing-in.ts';

export interface IdentitiesDeps {
  readonly database: Database;
  readonly settings: () => Settings;
  readonly clock: Clock;
  readonly log: Log;
  /** Who gives access tokens, and takes them. */
  readonly issuer: () => string;
  /** The requests that are being answered. */
  readonly ongoing: () => readonly Ongoing[];
}

/** Opens identity, administration and rights: the owners of keys, with their plans and teams. */
export async function openIdentities({ database, settings, clock, log, issuer, ongoing }: IdentitiesDeps) {
  const { store, seal, pepper } = database;
  const note = problemsTo(log);
  const keys = openApiKeys(store, pepper);
  const passwords = openPasswords(clock);
  const sessions = openSessions(store, pepper);
  const tokens = await openTokens({ store, seal, pepper, passwords, clock, issuer, log: note });
  const logins = openLogins({ store, clock, months: () => settings().retention.usageMonths, log: note });
  const lastUsed = openLastUsed(store, clock);
  /** Makes sure that the plans and teams of the callers found are in memory: another process may have just made them. */
  const met = async <Some extends Iterable<Found | undefined>>(found: Some): Promise<Some> => {
    for (const one of found) if (one) await administration.meets(one.caller);
    return found;
  };
  const metAll = async <Key>(found: ReadonlyMap<Key, Found>): Promise<ReadonlyMap<Key, Found>> => {
    await met(found.values());
    return found;
  };
  const find: typeof keys.find = async (credentials) => {
    const byToken = credentials.some(isToken) ? await tokens.find(credentials) : [];
    const byKey = await keys.find(credentials);
    return met(credentials.map((_, at) => byToken[at] ?? byKey[at]));
  };
  const staleSeconds = () => settings().limits.staleCredentialSeconds;
  const identity = openIdentity({ find }, store, clock, staleSeconds, lastUsed.note);
  /** Sessions apart from keys: what a request with a key costs does not depend on them. */
  const signedIn = openIdentity({ find: async (texts) => met(await sessions.find(texts)), isOne: isSession, bad: badSession }, store, clock, staleSeconds);
  const forget = () => {
    identity.forget();
    signedIn.forget();
  };
  /** Puts new settings into effect. If they name another issuer, access tokens that were good are good no more. */
  const withSettings = (change: () => void) => {
    const { publicUrl } = settings();
    change();
    if (settings().publicUrl !== publicUrl) identity.forget();
  };
  const prompts = openPrompts({ database, settings, clock, log });
  const administration = await openAdministration({ database, settings, clock, passwords, prompts: prompts.kept, teamsChanged: forget, log: note });
  const rights = openRights({
    keys: { callers: async (keyIds) => metAll(await keys.callers(keyIds)) },
    sessions: { callers: async (ids) => metAll(await sessions.callers(ids)) },
    tokens: {
      callers: async (holders) => metAll(await tokens.callers(holders)),
      user: async (userId) => (await met([await tokens.user(userId)]))[0],
    },
    store,
    clock,
    ongoing,
    log: note,
  });
  const userBy = async (email: string): Promise<Caller> => {
    const userId = await userWith(store, email.toLowerCase());
    if (userId === null) throw new Fault('not-found', `There is no user ${email.slice(0, 254)}.`);
    return rights.callerOf({ userId, keyId: 0 }).catch((error: unknown) => {
      if (!(error instanceof Fault) || error.code !== 'unauthenticated') throw error;
      throw new Fault('forbidden', `${email.slice(0, 254)} is suspended.`);
    });
  };
  const close = () => runAll([() => administration.close(), () => tokens.close(), () => logins.close(), () => lastUsed.close(), () => prompts.kept.close()]);
  const people: People = { signedIn, passwords, sessions, tokens, logins };
  return { identity, withSettings, administration, rights, people, prompts, userBy, close };
}
