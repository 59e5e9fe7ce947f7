import { Type } from 'typebox';
import type { Actor } from '#core/audit';
import type { Caller } from '#core/context';
import { Fault } from '#core/fault';
import { nounRoute, WithSession, type NounRoute } from '#http/noun-route';
import { closed, nullable } from '#http/schemas';
import { emailAddress, newPassword, pastedAddress } from '../text-fields.ts';
import { described, whoami, type MineDeps } from './routes.ts';

/** How sessions begin and end. */
export interface SigningIn {
  /** @returns the text of a new session. @throws Fault `unauthenticated` for a wrong pair, `rate-limited`, `overloaded` */
  readonly signIn: (email: string, password: string, address: string) => Promise<string>;
  /** Makes a user. @returns the text of their first session. @throws Fault `conflict` for an address that is taken, `forbidden`, `rate-limited`, `overloaded` */
  readonly signUp: (wanted: { readonly email: string; readonly password: string }, by: Omit<Actor, 'userId'>) => Promise<string>;
  /** May people sign up? */
  readonly takesNewUsers: () => boolean;
  readonly callerOf: (text: string) => Caller | Promise<Caller>;
  readonly endToken: (token: NonNullable<Caller['token']>, userId: number) => Promise<void>;
  readonly endSession: (session: NonNullable<Caller['session']>, userId: number) => Promise<void>;
}

export type SessionRoutesDeps = SigningIn & MineDeps;

const path = '/server/session';
const expiresAt = nullable(Type.String(), { description: 'Of a session: when it ends if it is not used again. Null for an API key.' });
const SessionObject = Type.Object({ ...whoami, expiresAt });

/** Signing in and out, by the cookie of a session. */
export function sessionRoutes(deps: SessionRoutesDeps): readonly NounRoute[] {
  const answerTo = async (caller: Caller) => ({ ...(await described(deps, caller, caller.userId)), expiresAt: expiryOf(caller) });
  const begun = async (text: string) => new WithSession(await answerTo(await deps.callerOf(text)), text);
  const forBrowsers = { scope: 'public', isForOwnPages: true, owner: 'nobody', output: SessionObject } as const;
  const common = { scope: 'any', owner: 'caller' } as const;
  return [
    nounRoute('POST', path, {
      ...forBrowsers,
      summary: 'Signs you in with e-mail address and password: the answer has the cookie of a session.',
      input: closed({ email: pastedAddress, password: Type.String({ minLength: 1, maxLength: 8192, description: 'The password of this user.' }) }),
      answer: async ({ by, input: { email, password } }) => begun(await deps.signIn(email.trim().toLowerCase(), password, by.address ?? '')),
    }),
    nounRoute('POST', `${path}/signup`, {
      ...forBrowsers,
      makes: true,
      missing: () => (deps.takesNewUsers() ? undefined : 'People cannot sign up here: ask an administrator.'),
      summary: 'Makes you a user and signs you in, where newUsers.signup is on; elsewhere 404.',
      input: closed({ email: emailAddress, password: newPassword }),
      answer: async ({ by, input: { email, password } }) => begun(await deps.signUp({ email: email.toLowerCase(), password }, by)),
    }),
    nounRoute('GET', path, {
      ...common,
      summary: 'Who you are, and until when the session or the access token is good that you came with.',
      output: SessionObject,
      answer: ({ caller }) => answerTo(caller),
    }),
    nounRoute('DELETE', path, {
      ...common,
      summary: 'Ends the session or the access token that you came with. The answer says who you were.',
      output: SessionObject,
      async answer({ caller }) {
        const { token, session, userId } = caller;
        const ended = await answerTo(caller);
        if (session) {
          await deps.endSession(session, userId);
          return new WithSession(ended, '');
        }
        if (!token) throw new Fault('invalid', 'This request came with an API key, which is no session: it is revoked under /server/mine/keys.');
        await deps.endToken(token, userId);
        return ended;
      },
    }),
  ];
}

const expiryOf = ({ session, token }: Caller) => {
  const ends = session ?? token;
  return ends ? new Date(ends.expiresAt).toISOString() : null;
};
