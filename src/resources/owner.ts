import { Type } from 'typebox';
import type { Caller } from '#core/context';
import { unknownThing } from '#http/noun-route';
import type { Reader } from '#store/grants';

/** Whose things an administrator wants to see or to change. */
export const ownerQuery = {
  owner: Type.Optional(Type.Integer({ minimum: 1, description: 'For administrators: the id of the user whose it is; absent: the caller.' })),
};

/** The user whose things are meant. @throws Fault `not-found` for another's, but for administrators */
export function ownerOf(caller: Caller, { owner }: { readonly owner?: number | undefined }): number {
  if (owner === undefined || owner === caller.userId || isAdministrator(caller)) return owner ?? caller.userId;
  throw unknownThing('user');
}

/** By whose rights things are looked at: the caller's, or for an administrator those of another user. @throws as `ownerOf` */
export function readerOf(caller: Caller, query: { readonly owner?: number | undefined }): Reader {
  const userId = ownerOf(caller, query);
  return userId === caller.userId ? caller : { userId, teamIds: [] };
}

/** Whether the user is an administrator and the credential may be used as one's. */
export const isAdministrator = ({ role, scopes }: Pick<Caller, 'role' | 'scopes'>) => role === 'admin' && (scopes === undefined || scopes.includes('admin'));
