import { Type } from 'typebox';
import { cursorOf, idBefore, pageOf } from '../pagination.ts';
import { idIn, nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import { scopes } from '#http/route';
import { instantOf } from '#kit/async/instant';
import { Fault } from '#core/fault';
import type { Audit } from '#store/auditing';
import type { Store } from '#store/open';
import { databaseNow } from '#store/database-clock';
import { openApiKeys, type ApiKey } from './store.ts';

const scopeNames = Type.Array(Type.Enum([...scopes]), { minItems: 1, maxItems: scopes.length, description: 'What it may be used for; absent: everything.' });

const NewKey = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 100, pattern: '^[^\\p{C}]*$', expected: 'must not have control characters in it' }),
    scopes: Type.Optional(scopeNames),
    expiresAt: Type.Optional(Type.String({ maxLength: 40, description: 'ISO 8601, in the future; absent: never.' })),
    models: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 200, pattern: '^[^\\p{C}]*$', expected: 'must be the name of a model' }), {
        minItems: 1,
        maxItems: 100,
        description: 'Names of the only models it may ask; absent: all.',
      }),
    ),
  },
  { additionalProperties: false },
);

const orNull = <Schema extends ReturnType<typeof Type.String> | typeof scopeNames>(schema: Schema) => Type.Union([schema, Type.Null()]);

const MadeKey = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  key: Type.String({ description: 'In clear, this once.' }),
  scopes: orNull(scopeNames),
});

const KeyObject = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  shown: Type.String({ description: 'Its first and last characters.' }),
  scopes: orNull(scopeNames),
  models: Type.Union([Type.Array(Type.String()), Type.Null()]),
  createdAt: Type.String(),
  expiresAt: orNull(Type.String()),
});

const KeyQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: 'At most so many, 50 by default.' })),
    cursor: Type.Optional(Type.String({ maxLength: 500, description: 'nextCursor of the page before.' })),
  },
  { additionalProperties: false },
);

const root = '/server/admin/users/:id/keys';
const common = { scope: 'admin', owner: 'admin' } as const;

export interface ApiKeyRoutesDeps {
  readonly store: Store;
  readonly audit: Audit;
  readonly pepper: Buffer;
}

/** The keys of a user, for administrators. */
export function apiKeyRoutes({ store, audit, pepper }: ApiKeyRoutesDeps): readonly NounRoute[] {
  const keys = openApiKeys(store, pepper);
  return [
    nounRoute({
      ...common,
      scope: 'unscoped',
      givesRights: true, // the new key might do more than the one that makes it
      method: 'POST',
      path: root,
      summary: 'Makes an API key, shown in clear this once. Needs a key without scopes, models or an expiry.',
      input: NewKey,
      output: MadeKey,
      makes: true,
      async answer({ by, params, input: { name, scopes: given, models, expiresAt } }) {
        const userId = idIn(params, 'id', 'user');
        const scopes = given && [...new Set(given)];
        const expiry = expiresAt === undefined ? undefined : expiryOf(expiresAt, await databaseNow(store.db));
        return store.transaction(async (inside) => {
          const made = await openApiKeys(inside, pepper).add({ userId, name, scopes, models, expiresAt: expiry });
          if (!made) throw unknownThing('user');
          const after = { userId, name, scopes: scopes ?? null, models: models ?? null, expiresAt: expiry?.toISOString() ?? null };
          await audit(inside, { by, action: 'key.create', target: { kind: 'key', id: made.id }, after });
          return { id: made.id, name, key: made.key, scopes: scopes ?? null };
        });
      },
    }),
    nounRoute({
      ...common,
      method: 'GET',
      path: root,
      summary: 'Lists the keys of a user that were not revoked.',
      query: KeyQuery,
      output: Type.Object({ items: Type.Array(KeyObject), nextCursor: orNull(Type.String()) }),
      async answer({ params, query: { limit = 50, cursor } }) {
        const userId = idIn(params, 'id', 'user');
        const found = await keys.list({ userId, after: idBefore('keys', cursor), limit: limit + 1 });
        if (found.length === 0 && !(await keys.hasUser(userId))) throw unknownThing('user');
        return pageOf(found.map(plain), limit, ({ id }) => cursorOf('keys', [id]));
      },
    }),
    nounRoute({
      ...common,
      method: 'DELETE',
      path: `${root}/:key`,
      summary: 'Revokes a key at once.',
      output: KeyObject,
      async answer({ by, params }) {
        const [userId, id] = [idIn(params, 'id', 'user'), idIn(params, 'key', 'key')];
        return store.transaction(async (inside) => {
          const revoked = await openApiKeys(inside, pepper).revoke(userId, id);
          if (!revoked) throw unknownThing('key');
          const { shown: _, createdAt: _at, ...before } = plain(revoked);
          await audit(inside, { by, action: 'key.revoke', target: { kind: 'key', id }, before: { userId, ...before } });
          return plain(revoked);
        });
      },
    }),
  ];
}

function expiryOf(text: string, now: number): Date {
  const instant = instantOf(text);
  if (instant === undefined) throw new Fault('invalid', 'expiresAt must be a time in ISO 8601 such as 2027-01-31T12:00:00Z.', { field: 'expiresAt' });
  if (instant <= now) throw new Fault('invalid', 'expiresAt must be in the future.', { field: 'expiresAt' });
  return new Date(instant);
}

function plain({ createdAt, expiresAt, ...key }: ApiKey) {
  return { ...key, createdAt: createdAt.toISOString(), expiresAt: expiresAt?.toISOString() ?? null };
}
