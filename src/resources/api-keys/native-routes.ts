import { Type } from 'typebox';
import { nounRoute, type NounRoute } from '#http/noun-route';
import { scopes, type Scope } from '#http/route';
import { nullable, optionalOrNull } from '#http/schemas';
import type { KeyKeeping } from './keeping.ts';
import { keyName } from './shapes.ts';
import { mostKeys } from './store.ts';
import { invalid } from '#core/fault';

const NativeKey = Type.Object({
  id: Type.Integer(),
  date_time: Type.String({ description: 'RFC 1123' }),
  name: Type.String(),
  user_id: Type.Integer(),
  key: Type.String({ description: 'Its first and last characters.' }),
  token_scopes: nullable(Type.String()),
  revoked_at: Type.Null(),
  revoked_reason: Type.Null(),
});

/** The keys of whoever asks, in the words of the native interface. */
export function nativeKeyRoutes(keys: KeyKeeping): readonly NounRoute[] {
  const common = { scope: 'unscoped', owner: 'caller' } as const;
  return [
    nounRoute('POST', '/user/get-user-api-keys', {
      ...common,
      summary: 'Your keys, masked.',
      output: Type.Array(NativeKey),
      async answer({ caller }) {
        const found = await keys.list({ userId: caller.userId, after: 0, limit: mostKeys });
        return found.map(({ id, createdAt, name, userId, shown, scopes: its }) => ({
          id,
          date_time: createdAt.toUTCString(),
          name,
          user_id: userId,
          key: shown,
          token_scopes: its?.join(',') ?? null,
          revoked_at: null,
          revoked_reason: null,
        }));
      },
    }),
    nounRoute('POST', '/user/user-api-key', {
      ...common,
      givesRights: true,
      summary: 'Makes an API key of yours, shown in clear this once. Needs a key without scopes, models, mcpTools, limits or an expiry.',
      input: Type.Object({
        name: keyName,
        token_scopes: optionalOrNull(Type.String({ maxLength: 1000, description: 'Names of scopes with commas between them; empty or absent: everything.' })),
        scopes: optionalOrNull(
          Type.Union([Type.Array(Type.String({ maxLength: 100, pattern: '\\S' }), { minItems: 1, maxItems: scopes.length }), Type.String({ maxLength: 1000 })]),
          {
            description: 'Another name of `token_scopes`, also as a list of names.',
          },
        ),
      }),
      output: Type.Object({ id: Type.Integer(), key: Type.String() }),
      async answer({ caller, by, input: { name, token_scopes: text, scopes: list } }) {
        const wanted = wantedScopes(text ?? undefined, (Array.isArray(list) ? list.join(',') : list) ?? undefined);
        const { id, key } = await keys.make(caller.userId, { name, ...(wanted.length > 0 ? { scopes: wanted } : {}) }, by);
        return { id, key };
      },
    }),
    nounRoute('DELETE', '/user/user-api-key', {
      ...common,
      summary: 'Revokes one of your keys at once.',
      input: Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) }),
      answer: async ({ caller, by, input: { id } }) => void (await keys.revoke(caller.userId, id, by)),
    }),
  ];
}

/** @throws Fault `invalid`, also where the names of the field give different scopes */
function wantedScopes(text: string | undefined, other: string | undefined): Scope[] {
  const [wanted, others] = [scopesIn(text ?? '', 'token_scopes'), scopesIn(other ?? '', 'scopes')];
  if (text === undefined || other === undefined) return text === undefined ? others : wanted;
  if (new Set(wanted).symmetricDifference(new Set(others)).size > 0) throw invalid('scopes', 'and token_scopes are the same: give one of them');
  return wanted;
}

/** None, which stands for all of them, is meant by an empty text only. @throws Fault `invalid` naming the scope that is none */
function scopesIn(text: string, field: string): Scope[] {
  if (text.trim() === '') return [];
  const names = text.split(',').map((name) => name.trim());
  const named = names.filter((name) => name !== '');
  return (named.length === 0 ? names : named).map((name) => {
    const scope = scopes.find((one) => one === name);
    if (scope) return scope;
    throw invalid(field, `must be names of scopes with commas between them: ${scopes.join(', ')}. There is none called "${name.slice(0, 100)}"`);
  });
}
