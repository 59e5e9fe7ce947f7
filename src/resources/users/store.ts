import { sql, type RawBuilder } from 'kysely';
import { Fault } from '#core/fault';
import type { Plan } from '#core/plan';
import type { Access } from '#store/open';
import type { LimitsChange } from '../plan-limits.ts';

export interface User {
  readonly id: number;
  readonly email: string;
  readonly role: 'user' | 'auditor' | 'admin';
  readonly plan: string;
  readonly status: 'active' | 'suspended';
  /** Of the user's own: they stand above those of the plan. */
  readonly limits: Plan;
}

/** As administrators see it. */
export const shownUser = ({ id, email, plan, role, status, limits }: User) => ({ id, email, plan, role, status, ...limits });

/** What is to be another; a limit that is null is the plan's again. */
export interface UserChange extends Partial<Pick<User, 'role' | 'plan' | 'status'>> {
  readonly limits?: LimitsChange;
}

const columns = sql`id, email, role, plan, status, limits`;

interface OwnPassword {
  readonly before: string | null;
  readonly tokenId: string | undefined;
  readonly sessionId: number | undefined;
}

export interface Users {
  /** @throws Fault `conflict` when the address is taken */
  add(user: { email: string; role: User['role']; plan: string; /** As it is stored. */ password?: string | null }): Promise<User>;
  /** False on a new server, also where the command line has added other users before its first start. */
  hasAdministrator(): Promise<boolean>;
  find(id: number): Promise<User | undefined>;
  /** By id, those behind `after` whose address has the text in it. */
  list(asked: { text: string; after: number; limit: number }): Promise<readonly User[]>;
  /** To be called in a transaction. @returns the user as it was and is. @throws Fault `conflict` when the last active administrator would be gone */
  change(id: number, change: UserChange): Promise<{ readonly before: User; readonly after: User } | undefined>;
  /** What is stored of the user's password; undefined for nobody. */
  password(id: number): Promise<string | null | undefined>;
  /**
   * Sessions, and access tokens had by the password before, are no longer good but for what is kept. To be called in a transaction.
   * @param own where users change their own: what they keep, and what was stored of the password before
   * @returns false for nobody, and where another password was stored before
   */
  setPassword(id: number, sealed: string, own?: OwnPassword): Promise<boolean>;
  /**
   * Nobody sees the user any more, and the keys and memberships are gone; what else was theirs is for `removal`, and what was booked stays. To be called in a
   * transaction.
   * @throws Fault `conflict` as `change`
   */
  remove(id: number): Promise<User | undefined>;
}

/** Notifies all processes of a change to this user. */
const changed = (access: Access, userId: number) => access.publish('users', { userId });

export function openUsers(access: Access): Users {
  const { db } = access;

  /** Those who were not deleted. */
  async function present(where: RawBuilder<unknown>): Promise<readonly User[]> {
    const { rows } = await sql<User>`select ${columns} from users where removed_at is null and ${where}`.execute(db);
    return rows;
  }

  /** All active administrators are locked in one order, so of two who go at the same time one comes second and sees it. */
  async function keepAnAdministrator(id: number): Promise<void> {
    const { rows } = await sql<{ id: number }>`select id from users where role = 'admin' and status = 'active' order by id for update`.execute(db);
    if (rows.length === 1 && rows[0]!.id === id) throw new Fault('conflict', 'This is the last active administrator: make another one first.');
  }

  const endSessions = (userId: number, keptId = 0) => sql`delete from session where user_id = ${userId} and id <> ${keptId}`.execute(db);

  return {
    async add({ email, role, plan, password = null }) {
      const { rows } = await sql<User>`
        insert into users (email, role, plan, password) values (${email.toLowerCase()}, ${role}, ${plan}, ${password})
        on conflict do nothing returning ${columns}`.execute(db);
      if (!rows[0]) throw new Fault('conflict', 'There is a user with this e-mail address already.', { field: 'email' });
      return rows[0];
    },
    hasAdministrator: async () => (await present(sql`role = 'admin' and status = 'active' limit 1`)).length > 0,
    find: async (id) => (await present(sql`id = ${id}`))[0],
    list({ text, after, limit }) {
      const isFound = text === '' ? sql`true` : sql`strpos(lower(email), ${text.toLowerCase()}) > 0`;
      return present(sql`id > ${after} and ${isFound} order by id limit ${limit}`);
    },
    async change(id, { limits, ...change }) {
      if ((change.role !== undefined && change.role !== 'admin') || change.status === 'suspended') await keepAnAdministrator(id);
      const [before] = await present(sql`id = ${id} for update`);
      if (!before) return undefined;
      const { role, plan, status } = { ...before, ...change };
      const { rows } = await sql<User>`
        update users set role = ${role}, plan = ${plan}, status = ${status}, limits = jsonb_strip_nulls(limits || ${JSON.stringify(limits ?? {})}::jsonb)
        where id = ${id} returning ${columns}`.execute(db);
      const after = rows[0]!;
      if (after.status === 'suspended') await endSessions(id);
      await changed(access, id);
      return { before, after };
    },
    async password(id) {
      const { rows } = await sql<{ password: string | null }>`select password from users where id = ${id} and removed_at is null`.execute(db);
      return rows[0]?.password;
    },
    async setPassword(id, sealed, own) {
      const { rows } = await sql`
        update users set password = ${sealed}, password_version = password_version + 1, password_kept = ${own?.tokenId ?? null}
        where id = ${id} and removed_at is null ${own ? sql`and password is not distinct from ${own.before}` : sql``} returning id`.execute(db);
      await endSessions(id, own?.sessionId);
      if (rows.length > 0) await changed(access, id);
      return rows.length > 0;
    },
    async remove(id) {
      await keepAnAdministrator(id);
      const [user] = await present(sql`id = ${id} for update`);
      if (!user) return undefined;
      await sql`update users set status = 'suspended', removed_at = now() where id = ${id}`.execute(db);
      await sql`delete from api_keys where user_id = ${id}`.execute(db);
      await endSessions(id);
      await sql`delete from team_members where user_id = ${id}`.execute(db);
      await sql`delete from team_admins where user_id = ${id}`.execute(db);
      await changed(access, id);
      return user;
    },
  };
}

/** The id of the user with this address, in lower case. */
export async function userWith({ db }: Access, email: string): Promise<number | null> {
  const { rows } = await sql<{ id: number }>`select id from users where lower(email) = ${email} and removed_at is null`.execute(db);
  return rows[0]?.id ?? null;
}
