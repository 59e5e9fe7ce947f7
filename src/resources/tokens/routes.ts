import { Type } from 'typebox';
import { nounRoute, type NounRoute } from '#http/noun-route';
import { pastedAddress as email } from '../text-fields.ts';
import type { Judged, Tokens } from './tokens.ts';

/** Someone who wants to be let in. */
export interface Visitor {
  /** An e-mail address. */
  readonly account: string;
  readonly address: string;
  /** What they show. */
  readonly by: 'api key' | 'password';
}

export interface TokenRoutesDeps {
  readonly tokens: Tokens;
  /** Judges a pair, unless too many of theirs were wrong, and keeps a record. @throws Fault `unauthenticated` for a wrong one, `rate-limited` */
  readonly letIn: (visitor: Visitor, judge: () => Promise<Judged>) => Promise<NonNullable<Judged['owner']>>;
}

/** The form that all keys have, with white space around it, as it comes out of the clipboard. */
const apiKey = Type.String({
  maxLength: 8192,
  pattern: '^\\s*[A-Za-z0-9_-]{64}\\s*$',
  expected: 'must be an API key, which has 64 characters',
  description: 'An API key of this user.',
});
const Given = Type.Object({ access_token: Type.String({ description: 'A JWT, good for 24 hours wherever an API key is.' }) });

/** Access tokens, for whoever has an API key or a password. */
export function tokenRoutes({ tokens, letIn }: TokenRoutesDeps): readonly NounRoute[] {
  const common = { scope: 'public', owner: 'nobody', output: Given } as const;
  return [
    nounRoute('POST', '/user/get-token-with-api-key', {
      ...common,
      summary: 'An access token for an e-mail address and an API key.',
      input: Type.Object({ email, api_key: apiKey }),
      async answer({ by, input: { email: account, api_key: key } }) {
        const who = account.trim().toLowerCase();
        const owner = await letIn({ account: who, address: by.address ?? '', by: 'api key' }, () => tokens.judgeKey(who, key.trim()));
        return { access_token: await tokens.issue(owner) };
      },
    }),
    nounRoute('POST', '/user/get-token', {
      ...common,
      summary: 'An access token for an e-mail address and a password.',
      input: Type.Object({ email, password: Type.String({ minLength: 1, maxLength: 8192, description: 'The password of this user.' }) }),
      async answer({ by, input: { email: account, password } }) {
        const [who, address] = [account.trim().toLowerCase(), by.address ?? ''];
        const owner = await letIn({ account: who, address, by: 'password' }, () => tokens.judgePassword(who, password, address));
        return { access_token: await tokens.issue(owner) };
      },
    }),
  ];
}

const Jwk = Type.Object({
  kty: Type.String(),
  crv: Type.String(),
  x: Type.String(),
  kid: Type.String(),
  alg: Type.String(),
  use: Type.String(),
});

export function signingKeyRoutes(tokens: Pick<Tokens, 'published'>): readonly NounRoute[] {
  return [
    nounRoute('GET', '/.well-known/jwks.json', {
      scope: 'public',
      owner: 'nobody',
      summary: 'The public keys of the access tokens (RFC 7517).',
      output: Type.Object({ keys: Type.Array(Jwk) }),
      answer: async () => ({ keys: await tokens.published() }),
    }),
  ];
}
