import type { Actor } from '#core/audit';
import { Fault } from '#core/fault';
import type { Audit } from '#store/auditing';
import type { Access, Store } from '#store/open';
import type { Passwords } from '../passwords.ts';
import { openUsers, shownUser, userWith } from './store.ts';

export interface SignUpDeps {
  readonly store: Store;
  readonly audit: Audit;
  readonly passwords: Pick<Passwords, 'sealed'>;
  readonly plan: () => string;
  /** Those of the addresses that may sign up; empty: all. */
  readonly domains: () => readonly string[];
  /** Begins the first session. @returns its text */
  readonly begin: (user: { readonly userId: number; readonly version: number }, inside: Access) => Promise<string>;
}

/** What became of a sign-up: nothing where the address is somebody's. */
export interface SignedUp {
  /** Whose address it is. */
  readonly userId: number | null;
  /** The text of the first session. */
  readonly owner: string | undefined;
  readonly why?: string;
}

export interface SignUp {
  /** @throws Fault `forbidden` for an address of another domain than those that may */
  requireDomain(email: string): void;
  /** Nothing of a user who is there already is changed, and to find that out takes as long. @throws Fault `overloaded` */
  make(wanted: { readonly email: string; readonly password: string }, by: Omit<Actor, 'userId'>): Promise<SignedUp>;
}

/** People who make themselves users. */
export function openSignUp({ store, audit, passwords, plan, domains, begin }: SignUpDeps): SignUp {
  return {
    requireDomain(email) {
      const all = domains();
      const domain = email.slice(email.lastIndexOf('@') + 1).toLowerCase();
      if (all.length > 0 && !all.some((one) => one.toLowerCase() === domain))
        throw new Fault('forbidden', 'email: addresses of this domain may not sign up here.', { field: 'email' });
    },
    async make({ email, password }, by) {
      // Nobody may take the address of the administrator whom a new server makes.
      if (!(await openUsers(store).hasAdministrator()))
        throw new Fault('overloaded', 'This server has no administrator yet: try again in a moment.', { retryAfter: 1 });
      const sealed = await passwords.sealed(password, by.address ?? '');
      try {
        return await store.transaction(async (inside) => {
          const made = shownUser(await openUsers(inside).add({ email, role: 'user', plan: plan(), password: sealed }));
          await audit(inside, { by: { ...by, userId: made.id }, action: 'user.sign-up', target: { kind: 'user', id: made.id }, after: made });
          return { userId: made.id, owner: await begin({ userId: made.id, version: 0 }, inside) };
        });
      } catch (error) {
        if (!(error instanceof Fault) || error.code !== 'conflict') throw error;
        return { userId: await userWith(store, email), owner: undefined, why: 'the address is in use' };
      }
    },
  };
}
