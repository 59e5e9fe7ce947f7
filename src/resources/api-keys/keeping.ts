import type { Actor } from '#core/audit';
import { unknownThing } from '#http/noun-route';
import { instantOf } from '#kit/text/instant';
import type { Audit } from '#store/auditing';
import { databaseNow } from '#store/database-clock';
import type { Store } from '#store/open';
import type { ApiKey, KeyRights } from '../api-key.ts';
import type { KeyPatch, KeyWanted } from './shapes.ts';
import { openApiKeys, type ApiKeys, type ClearKey, type KeyChange } from './store.ts';
import { invalid } from '#core/fault';

export interface KeepingDeps {
  readonly store: Store;
  readonly audit: Audit;
  readonly pepper: Buffer;
}

/** What is done with the keys of a user, by an administrator or by the user: each change stands in the audit trail. All throw Fault `not-found` for what the user has not. */
export interface KeyKeeping extends Pick<ApiKeys, 'list' | 'hasUser'> {
  /** @throws Fault `invalid`, `conflict` for more keys than a user may have */
  make(userId: number, wanted: KeyWanted, by: Actor): Promise<ClearKey & { readonly scopes: readonly string[] | null }>;
  one(userId: number, id: number): Promise<ApiKey>;
  /** @throws Fault `invalid` */
  change(userId: number, id: number, patch: KeyPatch, by: Actor): Promise<ApiKey>;
  /** @param graceSeconds for which the texts before it stay good */
  rotate(userId: number, id: number, graceSeconds: number, by: Actor): Promise<ClearKey & { readonly after: ApiKey; readonly oldUntil: Date }>;
  revoke(userId: number, id: number, by: Actor): Promise<ApiKey>;
}

export function openKeyKeeping({ store, audit, pepper }: KeepingDeps): KeyKeeping {
  const keys = openApiKeys(store, pepper);
  const target = (id: number) => ({ kind: 'key', id });
  return {
    list: keys.list,
    hasUser: keys.hasUser,
    one: async (userId, id) => there(await keys.one(userId, id)),
    async make(userId, { name, ...wanted }, by) {
      const rights = await rightsOf(wanted, store);
      return store.transaction(async (inside) => {
        const made = await openApiKeys(inside, pepper).add({ userId, name, ...rights });
        if (!made) throw unknownThing('user');
        await audit(inside, { by, action: 'key.create', target: target(made.id), after: { userId, name, ...audited({ ...unnarrowed, ...rights }) } });
        return { ...made, scopes: rights.scopes ?? null };
      });
    },
    async change(userId, id, { name, ...wanted }, by) {
      const change: KeyChange = { ...(await rightsOf(wanted, store)), ...(name === undefined ? {} : { name }) };
      return store.transaction(async (inside) => {
        const { before, after } = there(await openApiKeys(inside, pepper).change(userId, id, change));
        await audit(inside, { by, action: 'key.change', target: target(id), before: told(before), after: told(after) });
        return after;
      });
    },
    rotate: (userId, id, graceSeconds, by) =>
      store.transaction(async (inside) => {
        const { before, ...rotated } = there(await openApiKeys(inside, pepper).rotate(userId, id, graceSeconds));
        const texts = { before: { userId, shown: before.shown }, after: { userId, shown: rotated.after.shown, oldUntil: rotated.oldUntil.toISOString() } };
        await audit(inside, { by, action: 'key.rotate', target: target(id), ...texts });
        return rotated;
      }),
    revoke: (userId, id, by) =>
      store.transaction(async (inside) => {
        const revoked = there(await openApiKeys(inside, pepper).revoke(userId, id));
        await audit(inside, { by, action: 'key.revoke', target: target(id), before: told(revoked) });
        return revoked;
      }),
  };
}

const unnarrowed: KeyRights = { scopes: null, models: null, mcpTools: null, expiresAt: null, limits: {} };

/** What the audit trail tells of a key. */
const told = ({ userId, name, ...rights }: ApiKey) => ({ userId, name, ...audited(rights) });

const audited = ({ scopes, models, mcpTools, expiresAt, limits }: KeyRights) => ({
  scopes,
  models,
  ...(mcpTools === null ? {} : { mcpTools }),
  expiresAt: expiresAt?.toISOString() ?? null,
  ...limits,
});

type WithLimits<Limits> = Pick<KeyPatch, 'scopes' | 'models' | 'mcpTools' | 'expiresAt'> & Limits;

/** The members that were given, as they are kept. @throws Fault `invalid` */
async function rightsOf<Limits>({ scopes, models, mcpTools, expiresAt, ...limits }: WithLimits<Limits>, store: Store) {
  return {
    ...(scopes === undefined ? {} : { scopes: once(scopes) }),
    ...(models === undefined ? {} : { models: once(models) }),
    ...(mcpTools === undefined ? {} : { mcpTools: once(mcpTools) }),
    ...(expiresAt === undefined ? {} : { expiresAt: expiresAt === null ? null : expiryOf(expiresAt, await databaseNow(store.db)) }),
    limits,
  };
}

const once = (names: readonly string[] | null) => names && [...new Set(names)];

function expiryOf(text: string, now: number): Date {
  const instant = instantOf(text);
  if (instant === undefined) throw invalid('expiresAt', 'must be a time in ISO 8601 such as 2027-01-31T12:00:00Z');
  if (instant <= now) throw invalid('expiresAt', 'must be in the future');
  return new Date(instant);
}

function there<Found>(found: Found | undefined): Found {
  if (found === undefined) throw unknownThing('key');
  return found;
}
