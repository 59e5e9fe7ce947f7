import { Type, type Static } from 'typebox';
import { pageById, pageQuery, pageSchema } from '../pagination.ts';
import { idIn, nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import { closed } from '#http/schemas';
import { Fault } from '#core/fault';
import type { Caller } from '#core/context';
import { changedLimits, changedStorage, optionalLimits, optionalStorage } from '../plan-limits.ts';
import type { PlanNames } from '../plan-names.ts';
import { isNarrowed } from '#core/narrowed';
import type { Audit } from '#store/auditing';
import type { Access, Store } from '#store/open';
import { emailAddress as email, newPassword } from '../text-fields.ts';
import type { Passwords } from '../passwords.ts';
import { openUsers, shownUser } from './store.ts';

export interface UserRoutesDeps {
  readonly store: Store;
  readonly audit: Audit;
  readonly passwords: Pick<Passwords, 'sealed'>;
  /** Has what is left of a deleted user taken away. */
  readonly removal: (userId: number, inside: Access) => Promise<void>;
  readonly plans: PlanNames;
  /** The plan of who is added without a word about it. */
  readonly newUserPlan: () => string;
}

const role = Type.Enum(['user', 'auditor', 'admin']);
const status = Type.Enum(['active', 'suspended']);
const plan = Type.String({ minLength: 1, maxLength: 64, description: 'The name of a plan.' });

const NewUser = closed({ email, plan: Type.Optional(plan), role: Type.Optional(role), password: Type.Optional(newPassword) });

/** A limit of the user's own stands above the plan's; null takes it away. */
const UserPatch = closed({
  plan: Type.Optional(plan),
  role: Type.Optional(role),
  status: Type.Optional(status),
  password: Type.Optional(newPassword),
  ...changedLimits,
  ...changedStorage,
});

const UserObject = Type.Object({ id: Type.Integer(), email: Type.String(), plan, role, status, ...optionalLimits, ...optionalStorage });

const UserQuery = closed({
  query: Type.Optional(Type.String({ maxLength: 254, description: 'A part of the e-mail address.' })),
  ...pageQuery,
});

const root = '/server/admin/users';
const common = { scope: 'admin', owner: 'admin' } as const;

export function userRoutes({ store, audit, passwords, removal, plans: { requirePlan }, newUserPlan }: UserRoutesDeps): readonly NounRoute[] {
  const users = openUsers(store);
  const target = (id: number) => ({ kind: 'user', id });
  return [
    nounRoute('POST', root, {
      ...common,
      summary: 'Adds a user.',
      input: NewUser,
      output: UserObject,
      makes: true,
      async answer({ caller, by, input: { email, role = 'user', plan, password: given } }) {
        if (role !== 'user') mayRaise(caller, 'role');
        if (given !== undefined) mayRaise(caller, 'password');
        const password = given === undefined ? null : await passwords.sealed(given, by.address ?? '');
        const named = plan ?? newUserPlan();
        return store.transaction(async (inside) => {
          await requirePlan(inside, named);
          const made = shownUser(await openUsers(inside).add({ email, role, plan: named, password }));
          await audit(inside, { by, action: 'user.add', target: target(made.id), after: { ...made, hasPassword: password !== null } });
          return made;
        });
      },
    }),
    nounRoute('GET', root, {
      ...common,
      summary: 'Lists the users, oldest first.',
      query: UserQuery,
      output: pageSchema(UserObject),
      answer: ({ query: { query: text = '', ...asked } }) => pageById('users', asked, (after, limit) => users.list({ text, after, limit }), shownUser),
    }),
    nounRoute('GET', `${root}/:id`, {
      ...common,
      summary: 'One user.',
      output: UserObject,
      answer: async ({ params }) => shownUser(there(await users.find(idIn(params, 'id', 'user')))),
    }),
    nounRoute('PATCH', `${root}/:id`, {
      ...common,
      summary: "Changes a user. A limit stands above the plan's; null gives the plan's back.",
      input: UserPatch,
      output: UserObject,
      async answer({ caller, by, params, input }) {
        const id = idIn(params, 'id', 'user');
        if (input.role !== undefined && input.role !== 'user') mayRaise(caller, 'role');
        if (input.password !== undefined) mayRaise(caller, 'password');
        const sealed = input.password === undefined ? undefined : await passwords.sealed(input.password, by.address ?? '');
        return store.transaction(async (inside) => {
          if (input.plan !== undefined) await requirePlan(inside, input.plan);
          const { before, after } = there(await openUsers(inside).change(id, changeOf(input)));
          if (sealed !== undefined) await openUsers(inside).setPassword(id, sealed);
          const told = sealed === undefined ? {} : { password: 'changed' };
          await audit(inside, { by, action: 'user.change', target: target(id), before: shownUser(before), after: { ...shownUser(after), ...told } });
          return shownUser(after);
        });
      },
    }),
    nounRoute('DELETE', `${root}/:id`, {
      ...common,
      summary: 'Deletes a user with all keys at once, and all that was kept for them soon after; what was booked stays.',
      output: UserObject,
      async answer({ by, params }) {
        const id = idIn(params, 'id', 'user');
        return store.transaction(async (inside) => {
          const before = shownUser(there(await openUsers(inside).remove(id)));
          await removal(id, inside);
          await audit(inside, { by, action: 'user.delete', target: target(id), before });
          return before;
        });
      },
    }),
  ];
}

/** A narrowed key makes no user with more rights than its own. @throws Fault `forbidden` */
function mayRaise(caller: Caller, field: 'role' | 'password'): void {
  if (!isNarrowed(caller)) return;
  const what = field === 'role' ? 'makes nobody an administrator or auditor' : 'sets no password';
  throw new Fault('forbidden', `A key that is narrowed by scopes, models, mcpTools, limits or an expiry ${what}.`, { field, reason: 'scope' });
}

function changeOf({ plan, role, status, password: _, ...limits }: Static<typeof UserPatch>) {
  return { ...(plan === undefined ? {} : { plan }), ...(role ? { role } : {}), ...(status ? { status } : {}), limits };
}

function there<Found>(found: Found | undefined): Found {
  if (found === undefined) throw unknownThing('user');
  return found;
}
