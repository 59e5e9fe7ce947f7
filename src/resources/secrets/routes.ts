import { Type } from 'typebox';
import { secretName } from '#core/secrets';
import { nounRoute, type NounRoute } from '#http/noun-route';
import { closed, shownAs } from '#http/schemas';
import { ownThingRoutes } from '../own-things.ts';
import type { Sharing } from '../sharing.ts';
import { mostSecrets, type SecretStore } from './store.ts';

const SecretText = closed({
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
});

const SecretObject = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  owner: Type.Integer(),
  right: Type.Enum(['read', 'edit', 'admin', 'owner'], { description: 'What the caller may do with it; read is to have it filled in.' }),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});

const shown = shownAs(SecretObject);

/** A user's own secrets, and those shared with them: names alone. */
export function secretRoutes(secrets: SecretStore, sharing: Sharing): readonly NounRoute[] {
  return ownThingRoutes({
    noun: 'secrets',
    what: 'secret',
    scope: 'unscoped',
    input: SecretText,
    output: SecretObject,
    summaries: {
      list: 'Lists your secrets, and those shared with you, without their values.',
      make: `Keeps a secret of yours; at most ${mostSecrets}.`,
      one: 'One of your secrets, without its value.',
      replace: 'Replaces one of your secrets.',
      remove: 'Deletes one of your secrets.',
    },
    shown,
    rows: secrets,
    make: (text, { owner, by }) => secrets.add(owner, text, by),
    replace: (id, text, { reader, by }) => secrets.change(reader, id, text, by),
    remove: (id, { reader, by }) => secrets.remove(reader, id, by),
    sharing,
  });
}

/** The names of the caller's own secrets, in the words of the native interface. */
export function nativeSecretRoutes(secrets: Pick<SecretStore, 'names'>): readonly NounRoute[] {
  return [
    nounRoute('POST', '/server/get-secrets', {
      scope: 'unscoped',
      owner: 'caller',
      summary: 'The names of your secrets.',
      output: Type.Array(Type.String()),
      answer: ({ caller }) => secrets.names(caller.userId),
    }),
  ];
}
