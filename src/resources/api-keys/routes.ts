import { Type, type Static } from 'typebox';
import type { Actor } from '#core/audit';
import { idIn, nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import { closed } from '#http/schemas';
import { ownerOf, ownerQuery } from '../owner.ts';
import { cursorOf, idBefore, pageOf, pageQuery, pageSchema } from '../pagination.ts';
import type { KeyKeeping } from './keeping.ts';
import { KeyObject, KeyPatch, KeyWanted, MadeKey, RotatedKey, shownKey } from './shapes.ts';

const KeyPage = pageSchema(KeyObject);

async function pageOfKeys(keys: KeyKeeping, userId: number, { limit = 50, cursor }: { readonly limit?: number; readonly cursor?: string }) {
  const found = await keys.list({ userId, after: idBefore('keys', cursor), limit: limit + 1 });
  if (found.length === 0 && !(await keys.hasUser(userId))) throw unknownThing('user');
  return pageOf(found.map(shownKey), limit, ({ id }) => cursorOf('keys', [id]));
}

const Grace = closed({
  graceSeconds: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 2_592_000, description: 'For so long the text before stays good; 86,400 (a day) by default, 0: not at all.' }),
  ),
});
const daySeconds = 86_400;

async function rotated(keys: KeyKeeping, userId: number, keyId: number, { graceSeconds = daySeconds }: Static<typeof Grace>, by: Actor) {
  const { id, key, after, oldUntil } = await keys.rotate(userId, keyId, graceSeconds, by);
  return { id, name: after.name, key, scopes: after.scopes, oldUntil: oldUntil.toISOString() };
}

export function apiKeyRoutes(keys: KeyKeeping): readonly NounRoute[] {
  const root = '/server/admin/users/:id/keys';
  const common = { scope: 'admin', owner: 'admin' } as const;
  return [
    nounRoute('POST', root, {
      ...common,
      scope: 'unscoped',
      givesRights: true, // the new key might do more than the one that makes it
      summary: 'Makes an API key, shown in clear this once. Needs a key without scopes, models, mcpTools, limits or an expiry.',
      input: KeyWanted,
      output: MadeKey,
      makes: true,
      async answer({ by, params, input }) {
        const { id, key, scopes } = await keys.make(idIn(params, 'id', 'user'), input, by);
        return { id, name: input.name, key, scopes };
      },
    }),
    nounRoute('GET', root, {
      ...common,
      summary: 'Lists the keys of a user that were not revoked.',
      query: closed(pageQuery),
      output: KeyPage,
      answer: ({ params, query }) => pageOfKeys(keys, idIn(params, 'id', 'user'), query),
    }),
    nounRoute('DELETE', `${root}/:key`, {
      ...common,
      summary: 'Revokes a key at once.',
      output: KeyObject,
      answer: async ({ by, params }) => shownKey(await keys.revoke(idIn(params, 'id', 'user'), idIn(params, 'key', 'key'), by)),
    }),
    nounRoute('POST', `${root}/:key/rotate`, {
      ...common,
      scope: 'unscoped',
      givesRights: true,
      summary: 'Gives a key another text, shown in clear this once: the same id, limits and books. The one before stays good for a while.',
      input: Grace,
      inputMayBeLeftOut: true,
      output: RotatedKey,
      makes: true,
      answer: ({ by, params, input }) => rotated(keys, idIn(params, 'id', 'user'), idIn(params, 'key', 'key'), input, by),
    }),
  ];
}

/** The keys of whoever asks; administrators name an `owner`. */
export function ownKeyRoutes(keys: KeyKeeping): readonly NounRoute[] {
  const root = '/server/mine/keys';
  const common = { scope: 'unscoped', owner: 'caller' } as const;
  const query = closed(ownerQuery);
  return [
    nounRoute('GET', root, {
      ...common,
      summary: 'Lists your keys that were not revoked.',
      query: closed({ ...ownerQuery, ...pageQuery }),
      output: KeyPage,
      answer: ({ caller, query: asked }) => pageOfKeys(keys, ownerOf(caller, asked), asked),
    }),
    nounRoute('POST', root, {
      ...common,
      givesRights: true,
      summary: 'Makes an API key of yours, shown in clear this once; at most 100. Needs a key without scopes, models, mcpTools, limits or an expiry.',
      query,
      input: KeyWanted,
      output: MadeKey,
      makes: true,
      async answer({ caller, by, query: asked, input }) {
        const { id, key, scopes } = await keys.make(ownerOf(caller, asked), input, by);
        return { id, name: input.name, key, scopes };
      },
    }),
    nounRoute('GET', `${root}/:id`, {
      ...common,
      summary: 'One of your keys.',
      query,
      output: KeyObject,
      answer: async ({ caller, params, query: asked }) => shownKey(await keys.one(ownerOf(caller, asked), idIn(params, 'id', 'key'))),
    }),
    nounRoute('PATCH', `${root}/:id`, {
      ...common,
      givesRights: true, // it may take away what narrows the key
      summary: 'Changes one of your keys: null takes away what narrows it. Needs a key without scopes, models, mcpTools, limits or an expiry.',
      query,
      input: KeyPatch,
      output: KeyObject,
      answer: async ({ caller, by, params, query: asked, input }) => shownKey(await keys.change(ownerOf(caller, asked), idIn(params, 'id', 'key'), input, by)),
    }),
    nounRoute('DELETE', `${root}/:id`, {
      ...common,
      summary: 'Revokes one of your keys at once.',
      query,
      output: KeyObject,
      answer: async ({ caller, by, params, query: asked }) => shownKey(await keys.revoke(ownerOf(caller, asked), idIn(params, 'id', 'key'), by)),
    }),
    nounRoute('POST', `${root}/:id/rotate`, {
      ...common,
      givesRights: true, // of a key that may do more than the one that asks
      summary: 'Gives one of your keys another text, shown in clear this once: the same id, limits and books. The one before stays good for a while.',
      query,
      input: Grace,
      inputMayBeLeftOut: true,
      output: RotatedKey,
      makes: true,
      answer: ({ caller, by, params, query: asked, input }) => rotated(keys, ownerOf(caller, asked), idIn(params, 'id', 'key'), input, by),
    }),
  ];
}
