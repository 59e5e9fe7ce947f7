import type { Settings } from '#config/index';
import type { Identity } from '#resources/api-keys/identify';
import { audit } from '#resources/audit/store';
import type { Logins } from '#resources/logins/logins';
import type { SigningIn } from '#resources/mine/session-routes';
import type { Passwords } from '#resources/passwords';
import type { Sessions } from '#resources/sessions/store';
import type { Tokens } from '#resources/tokens/tokens';
import { openSignUp } from '#resources/users/sign-up';
import type { Store } from '#store/open';

/** What people show of themselves, and what they get for it. */
export interface People {
  /** Knows whose sessions there are. */
  readonly signedIn: Pick<Identity, 'identify'>;
  readonly passwords: Passwords;
  readonly sessions: Sessions;
  readonly tokens: Tokens;
  readonly logins: Logins;
}

export interface SigningInDeps {
  readonly people: People;
  readonly store: Store;
  readonly settings: () => Settings;
}

/** People who sign in, sign up and sign out. */
export function signingIn({ people, store, settings }: SigningInDeps): SigningIn {
  const { signedIn, passwords, sessions, tokens, logins } = people;
  const newUsers = () => settings().newUsers;
  const signUp = openSignUp({ store, audit, passwords, plan: () => newUsers().plan, domains: () => newUsers().domains, begin: sessions.begin });
  return {
    async signIn(account, password, address) {
      const user = await logins.letIn({ account, address, by: 'password' }, () => tokens.judgePassword(account, password, address));
      return sessions.begin(user);
    },
    async signUp(wanted, by) {
      signUp.requireDomain(wanted.email);
      return logins.letSignUp({ account: wanted.email, address: by.address ?? '' }, () => signUp.make(wanted, by));
    },
    takesNewUsers: () => newUsers().signup,
    callerOf: (text) => signedIn.identify(text),
    endToken: tokens.end,
    endSession: sessions.end,
  };
}
