import { Type } from 'typebox';
import { Fault, missing } from '#core/fault';
import { nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import { closed } from '#http/schemas';
import type { Audit } from '#store/auditing';
import type { Store } from '#store/open';
import { newPassword } from '../text-fields.ts';
import type { Passwords } from '../passwords.ts';
import { openUsers } from './store.ts';

export interface PasswordRoutesDeps {
  readonly store: Store;
  readonly audit: Audit;
  readonly passwords: Pick<Passwords, 'sealed'>;
  /** Whether it is the user's password. @throws Fault `rate-limited` after too many that were not, `overloaded` */
  readonly isRight: (user: { readonly email: string; readonly address: string }, password: string) => Promise<boolean>;
}

export function passwordRoutes({ store, audit, passwords, isRight }: PasswordRoutesDeps): readonly NounRoute[] {
  return [
    nounRoute('PUT', '/server/mine/password', {
      scope: 'unscoped',
      givesRights: true,
      owner: 'caller',
      summary: 'Sets your password. Your sessions, and access tokens that were had by the password before, end, but for the one that you came with.',
      input: closed({
        old: Type.Optional(Type.String({ maxLength: 256, description: 'The password that you have now; left out where you have none.' })),
        new: newPassword,
      }),
      output: Type.Object({}),
      async answer({ caller, by, input: { old, new: wanted } }) {
        const id = caller.userId;
        const kept = await openUsers(store).password(id);
        if (kept === undefined) throw unknownThing('user');
        if (kept !== null) await requireOld(old, (given) => isRight({ email: caller.email, address: by.address ?? '' }, given));
        const sealed = await passwords.sealed(wanted, by.address ?? '');
        const { keyId, token, session } = caller;
        await store.transaction(async (inside) => {
          const own = { before: kept, tokenId: keyId === 0 ? token?.id : undefined, sessionId: session?.id };
          if (!(await openUsers(inside).setPassword(id, sealed, own))) throw new Fault('conflict', 'Your password has changed meanwhile.', { field: 'old' });
          const after = { password: kept === null ? 'set' : 'changed' };
          await audit(inside, { by, action: 'user.password', target: { kind: 'user', id }, after });
        });
        return {};
      },
    }),
  ];
}

async function requireOld(old: string | undefined, isRight: (given: string) => Promise<boolean>): Promise<void> {
  if (old === undefined) throw missing('old', 'is missing: it is the password that you have now');
  if (!(await isRight(old))) throw new Fault('forbidden', 'old is not your password.', { field: 'old' });
}
