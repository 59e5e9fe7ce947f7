import { Type } from 'typebox';
import { secretName } from '#core/secrets';
import { idIn, nounRoute, type NounRoute } from '#http/noun-route';
import { ownerOf, ownerQuery, readerOf } from '../owner.ts';
import { cursorOf, idBefore, pageOf, pageQuery } from '../pagination.ts';
import { grantRoutes, type Sharing } from '../sharing.ts';
import { mostSecrets, type Secret, type SecretStore } from './store.ts';

const SecretText = Type.Object(
  {
    name: Type.String({
      pattern: secretName.source,
      expected: 'must be a letter and up to 63 letters, digits and underscores',
      description: 'The name in `{{secret.NAME}}`.',
    }),
    value: Type.String({
      minLength: 1,
      maxLength: 65_536,
      pattern: '^[^\\u0000]*$',
      expected: 'must be a text of 1 to 65536 characters without the character U+0000',
      writeOnly: true,
      description: 'Is never given back.',
    }),
  },
  { additionalProperties: false },
);

const SecretObject = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  owner: Type.Integer(),
  right: Type.Enum(['read', 'edit', 'admin', 'owner'], { description: 'What the caller may do with it; read is to have it filled in.' }),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});

const shown = ({ createdAt, updatedAt, ...secret }: Secret) => ({ ...secret, createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() });

/** A user's own secrets, and those shared with them: names alone. */
export function secretRoutes(secrets: SecretStore, sharing: Pick<Sharing, 'list' | 'set'>): readonly NounRoute[] {
  const root = '/server/mine/secrets';
  const common = { scope: 'unscoped', owner: 'caller', output: SecretObject } as const;
  const query = Type.Object(ownerQuery, { additionalProperties: false });
  return [
    nounRoute({
      ...common,
      method: 'GET',
      path: root,
      summary: 'Lists your secrets, and those shared with you, without their values.',
      query: Type.Object(
        {
          ...ownerQuery,
          ...pageQuery,
        },
        { additionalProperties: false },
      ),
      output: Type.Object({ items: Type.Array(SecretObject), nextCursor: Type.Union([Type.String(), Type.Null()]) }),
      async answer({ caller, query: { limit = 50, cursor, ...whose } }) {
        const found = await secrets.list(readerOf(caller, whose), { after: idBefore('secrets', cursor), limit: limit + 1 });
        return pageOf(found.map(shown), limit, ({ id }) => cursorOf('secrets', [id]));
      },
    }),
    nounRoute({
      ...common,
      method: 'POST',
      path: root,
      summary: `Keeps a secret of yours; at most ${mostSecrets}.`,
      query,
      input: SecretText,
      makes: true,
      answer: async ({ caller, by, query: whose, input }) => shown(await secrets.add(ownerOf(caller, whose), input, by)),
    }),
    nounRoute({
      ...common,
      method: 'GET',
      path: `${root}/:id`,
      summary: 'One of your secrets, without its value.',
      query,
      answer: async ({ caller, params, query: whose }) => shown(await secrets.one(readerOf(caller, whose), idIn(params, 'id', 'secret'))),
    }),
    nounRoute({
      ...common,
      method: 'PUT',
      path: `${root}/:id`,
      summary: 'Replaces one of your secrets.',
      query,
      input: SecretText,
      answer: async ({ caller, by, params, query: whose, input }) =>
        shown(await secrets.change(readerOf(caller, whose), idIn(params, 'id', 'secret'), input, by)),
    }),
    nounRoute({
      ...common,
      method: 'DELETE',
      path: `${root}/:id`,
      summary: 'Deletes one of your secrets.',
      query,
      answer: async ({ caller, by, params, query: whose }) => shown(await secrets.remove(readerOf(caller, whose), idIn(params, 'id', 'secret'), by)),
    }),
    ...grantRoutes({
      sharing,
      scope: 'unscoped',
      path: `${root}/:id`,
      what: 'secret',
      administered: (caller, params, whose) => secrets.administered(readerOf(caller, whose), idIn(params, 'id', 'secret')),
    }),
  ];
}

/** The names of the caller's own secrets, in the words of the native interface. */
export function nativeSecretRoutes(secrets: Pick<SecretStore, 'names'>): readonly NounRoute[] {
  return [
    nounRoute({
      method: 'POST',
      path: '/server/get-secrets',
      scope: 'unscoped',
      owner: 'caller',
      summary: 'The names of your secrets.',
      output: Type.Array(Type.String()),
      answer: ({ caller }) => secrets.names(caller.userId),
    }),
  ];
}
