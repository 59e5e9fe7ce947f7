import { sql } from 'kysely';
import { Type, type Static } from 'typebox';
import type { Actor } from '#core/audit';
import type { Caller } from '#core/context';
import { Fault, invalid } from '#core/fault';
import { nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import type { Scope } from '#http/route';
import { closed } from '#http/schemas';
import type { Audit } from '#store/auditing';
import { grantsOf, grantTo, setGrants, takeFrom, type Grant, type Right } from '#store/grants';
import type { Access, Store } from '#store/open';
import { ownerQuery } from './owner.ts';

const GrantItem = closed({
  user: Type.Optional(
    Type.Union([Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), Type.String({ minLength: 3, maxLength: 254, description: 'E-mail address.' })]),
  ),
  team: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
  everybody: Type.Optional(Type.Literal(true)),
  right: Type.Enum(['read', 'edit', 'admin']),
});

export const GrantList = closed({ items: Type.Array(GrantItem, { maxItems: 1000, description: 'All of them; each for a user, a team or everybody.' }) });

/** Sharing of things of one kind. */
export interface Sharing {
  list(thing: number): Promise<readonly Grant[]>;
  /** Puts these in the place of all there are. @throws Fault `invalid` naming the item whose user or team is none */
  set(thing: number, items: Static<typeof GrantList>['items'], by: Actor): Promise<readonly Grant[]>;
  /** Gives one user a right. `isNew`: it is a conflict where the user has one. @throws Fault `not-found` where there is no such user, `conflict` */
  give(thing: number, email: string, right: Right, by: Actor, options?: { readonly isNew?: boolean }): Promise<void>;
  /** Takes away what was given to one user. @throws Fault `not-found`, `invalid` for the owner */
  take(thing: number, email: string, by: Actor): Promise<void>;
}

export interface SharingDeps {
  readonly store: Store;
  readonly audit: Audit;
  /** As in `grants.kind`. */
  readonly kind: string;
  /** Locks the thing. @returns its owner, undefined where it is not there */
  readonly lock: (inside: Access, thing: number) => Promise<number | undefined>;
  /** How the audit trail names the thing; absent: by its number. */
  readonly idOf?: (inside: Access, thing: number) => Promise<string>;
  /**
   * The owner of a thing that its grants narrow, undefined for one that they do not: what is given to owners then counts, and alone stands for what was given to
   * users and teams who are gone. Absent: it is left out, as owners may do everything already.
   */
  readonly ownerOfNarrowed?: (access: Access, thing: number) => Promise<number | undefined>;
  /** Called in the transaction in which all grants were set. */
  readonly changed?: (inside: Access, thing: number, grants: readonly Grant[]) => Promise<void>;
}

export function openSharing({ store, audit, kind, lock, idOf, ownerOfNarrowed, changed }: SharingDeps): Sharing {
  const listed = async (access: Access, thing: number): Promise<readonly Grant[]> => {
    const grants = await grantsOf(access, kind, thing);
    const owner = grants.length === 0 ? await ownerOfNarrowed?.(access, thing) : undefined;
    return owner === undefined ? grants : [{ user: owner, right: 'admin' }];
  };
  /** Changes grants and writes both into the trail. */
  const changing = (thing: number, by: Actor, work: (inside: Access, owner: number) => Promise<void>): Promise<readonly Grant[]> =>
    store.transaction(async (inside) => {
      const owner = await lock(inside, thing);
      if (owner === undefined) throw unknownThing(kind);
      const before = await listed(inside, thing);
      await work(inside, owner);
      const after = await listed(inside, thing);
      await audit(inside, {
        by,
        action: `${kind}.share`,
        target: { kind, id: (await idOf?.(inside, thing)) ?? thing },
        before: { grants: before.map(wordOf) },
        after: { grants: after.map(wordOf) },
      });
      return after;
    });
  return {
    list: (thing) => listed(store, thing),
    set: (thing, items, by) =>
      changing(thing, by, async (inside, owner) => {
        const known = await resolved(inside, items);
        const given = ownerOfNarrowed ? known : known.filter(({ user }) => user !== owner);
        await setGrants(inside, kind, thing, given);
        await changed?.(inside, thing, given);
      }),
    async give(thing, email, right, by, { isNew = false } = {}) {
      await changing(thing, by, async (inside, owner) => {
        const user = await userOf(inside, email);
        if (user === undefined) throw noAccount();
        if (user === owner) throw new Fault('conflict', 'The owner of a dataset may do everything with it already.', { field: 'email' });
        if (isNew && (await grantsOf(inside, kind, thing)).some((grant) => grant.user === user))
          throw new Fault('conflict', 'Already in: this user has the dataset.', { field: 'email' });
        await grantTo(inside, kind, thing, user, right);
      });
    },
    async take(thing, email, by) {
      await changing(thing, by, async (inside, owner) => {
        const user = await userOf(inside, email);
        if (user === undefined) throw noAccount();
        if (user === owner) throw new Fault('invalid', 'Cannot remove dataset owner.', { field: 'email' });
        if (!(await takeFrom(inside, kind, thing, user))) throw new Fault('not-found', 'Not in: this user was not given the dataset.', { field: 'email' });
      });
    },
  };
}

const noAccount = () => new Fault('not-found', 'No account.', { field: 'email' });

const wordOf = ({ user, team, right }: Grant) => `${user === undefined ? (team === undefined ? 'everybody' : `team:${team}`) : `user:${user}`} ${right}`;

async function userOf({ db }: Access, email: string): Promise<number | undefined> {
  const { rows } = await sql<{ id: number }>`select id from users where lower(email) = ${email.toLowerCase()} and removed_at is null`.execute(db);
  return rows[0]?.id;
}

/** The items by ids. */
async function resolved({ db }: Access, items: Static<typeof GrantList>['items']): Promise<readonly Grant[]> {
  const { rows } = await sql<{ kind: string; id: number; email: string | null }>`
    select 'user' as kind, id, lower(email) as email from users where removed_at is null
      and (id = any(${items.flatMap(({ user }) => (typeof user === 'number' ? [user] : []))}::bigint[])
        or lower(email) = any(${items.flatMap(({ user }) => (typeof user === 'string' ? [user.toLowerCase()] : []))}::text[]))
    union all select 'team', id, null from teams where id = any(${items.flatMap(({ team }) => team ?? [])}::bigint[])`.execute(db);
  const users = new Map<number | string, number>(rows.flatMap(({ kind, id, email }) => (kind === 'user' ? [[id, id] as const, [email!, id] as const] : [])));
  const teams = new Set(rows.flatMap(({ kind, id }) => (kind === 'team' ? [id] : [])));
  return items.map(({ user, team, everybody, right }, at) => {
    const named = [user, team, everybody].filter((one) => one !== undefined);
    if (named.length !== 1) throw invalid(`items[${at}]`, 'must name one of user, team and everybody');
    if (user !== undefined) {
      const id = users.get(typeof user === 'string' ? user.toLowerCase() : user);
      if (id === undefined) throw invalid(`items[${at}].user`, 'must be the id or the e-mail address of a user');
      return { user: id, right };
    }
    if (team === undefined) return { everybody: true, right };
    if (!teams.has(team)) throw invalid(`items[${at}].team`, 'must be the id of a team');
    return { team, right };
  });
}

export interface GrantRoutesDeps {
  readonly sharing: Sharing;
  readonly scope: Scope | 'unscoped';
  /** Of the thing: `/server/mine/datasets/:id`. */
  readonly path: string;
  /** What it is called in the document: `dataset`. */
  readonly what: string;
  /** Who has it in any case; absent: its owner. */
  readonly beside?: string;
  /** The thing's id, for who may say who else uses it. @throws Fault `not-found`, `forbidden` */
  readonly administered: (caller: Caller, params: Readonly<Record<string, string>>, query: { readonly owner?: number | undefined }) => Promise<number>;
  /** Who may give it to everybody; absent: whoever may say who else uses it. */
  readonly mayGiveToEverybody?: ((caller: Caller) => boolean) | undefined;
}

/** Who may do what with a thing, for those who may say so. */
export function grantRoutes({
  sharing,
  scope,
  path,
  what,
  beside = 'its owner',
  administered,
  mayGiveToEverybody = () => true,
}: GrantRoutesDeps): readonly NounRoute[] {
  const common = {
    scope,
    owner: 'caller',
    query: closed(ownerQuery),
    output: GrantList,
  } as const;
  return [
    nounRoute('GET', `${path}/grants`, {
      ...common,
      summary: `Who may do what with a ${what}, beside ${beside}.`,
      answer: async ({ caller, params, query }) => ({ items: await sharing.list(await administered(caller, params, query)) }),
    }),
    nounRoute('PUT', `${path}/grants`, {
      ...common,
      summary: `Says who may do what with a ${what}, beside ${beside}.`,
      input: GrantList,
      async answer({ caller, by, params, query, input: { items } }) {
        const thing = await administered(caller, params, query);
        const at = items.findIndex(({ everybody }) => everybody);
        if (at >= 0 && !mayGiveToEverybody(caller) && !(await sharing.list(thing)).some(({ everybody }) => everybody))
          throw new Fault('forbidden', `items[${at}].everybody: only administrators share this with everybody.`, { field: `items[${at}].everybody` });
        return { items: await sharing.set(thing, items, by) };
      },
    }),
  ];
}
