import { Type } from 'typebox';
import type { Caller } from '#core/context';
import { type NounRoute, type PlainAsked, unknownThing } from '#http/noun-route';
import type { Reader } from '#store/grants';

/** Whose things an administrator wants to see or to change. */
export const ownerQuery = {
  owner: Type.Optional(
    Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'For administrators: the id of the user whose it is; absent: the caller.' }),
  ),
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

/** The same routes, which are 404 where the owner that an administrator names is nobody: else a list of nobody's things would be an empty one. */
export function ofSomebody(routes: readonly NounRoute[], isThere: (userId: number) => Promise<boolean>): readonly NounRoute[] {
  const checked = async ({ caller, query }: PlainAsked) => {
    const owner = query.get('owner') ?? '';
    if (!/^[1-9]\d*$/.test(owner) || !Number.isSafeInteger(Number(owner)) || Number(owner) === caller.userId || !isAdministrator(caller)) return;
    if (!(await isThere(Number(owner)))) throw unknownThing('user');
  };
  const answering = (route: NounRoute) => async (asked: PlainAsked) => {
    await checked(asked);
    return route.answer(asked);
  };
  return routes.map((route) => (route.query?.properties['owner'] ? { ...route, answer: answering(route) } : route));
}

/** Whether the user is an administrator and the credential may be used as one's. */
export const isAdministrator = ({ role, scopes }: Pick<Caller, 'role' | 'scopes'>) => role === 'admin' && (scopes === undefined || scopes.includes('admin'));

/** The owner of a user's jobs: owners take turns, and the jobs of a deleted user go. */
export const jobOwner = (userId: number) => `user:${userId}`;
