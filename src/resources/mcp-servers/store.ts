import { sql, type RawBuilder } from 'kysely';
import type { Actor } from '#core/audit';
import { Fault } from '#core/fault';
import { unknownThing } from '#http/noun-route';
import { sealedJson, openedJson, type Sealer } from '#kit/crypto/sealing';
import type { McpTrouble } from '#kit/mcp/connection';
import type { Audit } from '#store/auditing';
import { allows, forgetGrants, isGivenByName, levelOf, rightOf, type Reader, type Right } from '#store/grants';
import type { Access, Store } from '#store/open';
import type { Approval } from './policy.ts';
import { forgetSignIns, type SignInState } from './sign-in-rows.ts';

export interface McpServer {
  readonly id: number;
  /** Null: the operator's. */
  readonly owner: number | null;
  readonly name: string;
  /** Empty: a program of the operator's. */
  readonly url: string;
  readonly type: string;
  readonly description: string;
  /** JSON, as its owner wrote it. */
  readonly metadata: string | null;
  /** The only tools that may be called; null: all. */
  readonly tools: readonly string[] | null;
  readonly approval: Approval | null;
  readonly hasHeaders: boolean;
  readonly active: boolean;
  readonly state: 'ok' | McpTrouble;
  readonly lastError: string | null;
  readonly lastSeenAt: Date | null;
  /** How the reader is signed in at it; null: it has not asked for that. */
  readonly signIn: SignInState | null;
  readonly signInError: string | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /** Of the operator's: its name in the settings. */
  readonly operatorName: string | null;
  readonly right: Right | 'owner';
  /** Of the servers of its name that the reader may use it is the first: their own, the operator's, one given by name, and one given to everybody. */
  readonly isFirstOfName: boolean;
}

export interface ServerText extends Pick<McpServer, 'name' | 'url' | 'type' | 'description' | 'metadata' | 'tools' | 'approval'> {
  /** Undefined: as they were, while the address is the same. */
  readonly headers: Readonly<Record<string, string>> | undefined;
}

/** Headers as they are configured, and the user whose secrets fill them. */
export interface ServerHeaders {
  readonly headers: Readonly<Record<string, string>>;
  readonly by: number;
}

export interface ListAsked {
  readonly after: number;
  readonly limit: number;
  readonly inactive?: boolean;
}

export interface McpServerStore {
  /** The servers of a user, those shared with them and the operator's, by id, those behind `after`. */
  list(reader: Reader, asked: ListAsked): Promise<readonly McpServer[]>;
  /** Those of them that are asked for tools, or of these alone, in the order of `isFirstOfName`; at most 200. */
  usable(reader: Reader, only?: ReadonlySet<number>): Promise<readonly McpServer[]>;
  /** @throws Fault `not-found` for one that the reader may not use, and for one that was deleted */
  one(reader: Reader, id: number): Promise<McpServer>;
  /** @throws Fault `not-found` for a user who is not there */
  checkUser(userId: number): Promise<void>;
  /** Undefined where the server has none, or is elsewhere by now: they are for the address that it has. */
  headersOf(server: Pick<McpServer, 'id' | 'url'>): Promise<ServerHeaders | undefined>;
  /** @throws Fault `conflict` for a name that the user has, and where they have as many as a user may have */
  add(userId: number, text: ServerText, by: Actor): Promise<McpServer>;
  /** @throws Fault `not-found`; `forbidden` where it is shared with the reader for use only; `conflict` for a name that its owner has */
  change(reader: Reader, id: number, text: (before: McpServer) => ServerText, by: Actor): Promise<McpServer>;
  /** Softly: nobody finds or uses it any more. @throws Fault `not-found`; `forbidden` where it is another's */
  remove(reader: Reader, id: number, by: Actor): Promise<McpServer>;
  administered(reader: Reader, id: number): Promise<number>;
  lock(inside: Access, id: number): Promise<number | undefined>;
  /** Notes how it is, unless it has another address by now. */
  noted(server: Pick<McpServer, 'id' | 'url'>, state: McpServer['state'], error: string | null): Promise<void>;
  /** Makes rows of the operator's servers, whose names are these. */
  meetOperators(names: readonly string[]): Promise<void>;
  /** The row of an address of the operator's list, which everybody may use who names it, and nobody finds in a list. */
  listed(entry: { readonly name: string; readonly url: string }): Promise<McpServer>;
  /** The digests that a user has approved, by tool. */
  approvals(userId: number, id: number): Promise<ReadonlyMap<string, string>>;
  approve(userId: number, id: number, tool: string, digest: string, by: Actor | undefined): Promise<void>;
}

/** Most servers of a user. */
export const mostServers = 200;

/** As `grants.kind`. */
export const kind = 'mcp-server';

interface Row extends Omit<McpServer, 'right'> {
  readonly level: number | null;
}

const columnsOf = (table: string) => ({ id: sql.ref(`${table}.id`), owner: sql.ref(`${table}.owner_id`) });
const thing = columnsOf('mcp_server');
const namesake = columnsOf('namesake');
type ServerColumns = typeof thing;

const signInOf = ({ userId }: Reader, column: RawBuilder<unknown>) =>
  sql`(select one.${column} from mcp_sign_in as one where one.user_id = ${userId} and one.server_id = mcp_server.id and one.url = mcp_server.url)`;

/** Of two servers of one name the lower one comes first for a reader; then that of the lower id. */
const placeFor = (reader: Reader, columns: ServerColumns) => sql`
  case when ${columns.owner} = ${reader.userId}::bigint then 0 when ${columns.owner} is null then 1 when ${isGivenByName(kind, reader, columns)} then 2 else 3 end`;
const contextOf = (owner: number) => `mcp-headers/${owner}`;

const isFirstFor = (reader: Reader, operators: readonly string[]) => sql`not exists (
  select from mcp_server as namesake where namesake.name = mcp_server.name and namesake.deleted_at is null
    and (${allows(kind, 'read', reader, namesake)} or namesake.operator_name = any(${[...operators]}::text[]))
    and (${placeFor(reader, namesake)}, namesake.id) < (${placeFor(reader, thing)}, mcp_server.id))`;

export interface McpServerStoreDeps {
  readonly store: Store;
  readonly seal: Sealer;
  readonly audit: Audit;
  /** The names of the operator's servers, as they are in the settings now. */
  readonly operators: () => readonly string[];
  /** The addresses of the operator's list, as they are in the settings now. */
  readonly addresses: () => readonly string[];
}

const among = (ids: ReadonlySet<number> | undefined) => (ids ? sql`id = any(${[...ids]}::bigint[])` : sql`true`);

export function openMcpServers({ store, seal, audit, operators, addresses }: McpServerStoreDeps): McpServerStore {
  const read = async (reader: Reader, where: RawBuilder<unknown>, { db }: Pick<Access, 'db'> = store, open = operators()): Promise<readonly McpServer[]> => {
    const { rows } = await sql<Row>`
      select id, owner_id as owner, operator_name as "operatorName", name, url, type, description, metadata, tools, approval, headers is not null as "hasHeaders",
        deleted_at is null as active, state, last_error as "lastError", last_seen_at as "lastSeenAt", created_at as "createdAt", updated_at as "updatedAt",
        ${signInOf(reader, sql`state`)} as "signIn", ${signInOf(reader, sql`error`)} as "signInError", ${levelOf(kind, reader, thing)} as level,
        ${isFirstFor(reader, operators())} as "isFirstOfName"
      from mcp_server where (${allows(kind, 'read', reader, thing)} or operator_name = any(${[...open]}::text[])) and ${where}`.execute(db);
    return rows.map(({ level, ...row }) => ({ ...row, right: rightOf(level ?? 1) }));
  };
  /** Of the list only what is asked for by its id. */
  const named = async (reader: Reader, id: number, access?: Pick<Access, 'db'>) =>
    (await read(reader, sql`id = ${id} and deleted_at is null`, access, [...operators(), ...addresses()]))[0];
  const one = async (reader: Reader, id: number, access?: Pick<Access, 'db'>): Promise<McpServer> => {
    const server = await named(reader, id, access);
    if (!server) throw unknownThing(what);
    return server;
  };
  /** Locks the row before it is read: what its change keeps, such as its headers, is then what it has. */
  const locked = async (reader: Reader, id: number, inside: Access) => {
    await sql`select from mcp_server where id = ${id} for update`.execute(inside.db);
    return one(reader, id, inside);
  };
  return {
    list: (reader, { after, limit, inactive = false }) =>
      read(reader, sql`id > ${after} and (${inactive}::boolean or deleted_at is null) order by id limit ${limit}`),
    usable: (reader, only) => read(reader, sql`deleted_at is null and ${among(only)} order by ${placeFor(reader, thing)}, id limit ${mostServers}`),
    one: (reader, id) => one(reader, id),
    add: (userId, text, by) =>
      store.transaction(async (inside) => {
        const { db } = inside;
        // the user's row is locked: two requests at once make no more than one may
        const user = await sql`select from users where id = ${userId} and removed_at is null for no key update`.execute(db);
        if (user.rows.length === 0) throw unknownThing('user');
        const { rows } = await sql<{
          servers: number;
        }>`select count(*)::int as servers from mcp_server where owner_id = ${userId} and deleted_at is null`.execute(db);
        if (rows[0]!.servers >= mostServers) throw new Fault('conflict', `A user has at most ${mostServers} MCP servers: delete one first.`);
        await refuseTwice(inside, userId, text.name);
        const made = await sql<{ id: number }>`
          insert into mcp_server (owner_id, name, url, type, description, metadata, headers, headers_by, tools, approval)
          values (${userId}, ${text.name}, ${text.url}, ${text.type}, ${text.description}, ${text.metadata}, ${sealed(seal, userId, text.headers)},
            ${by.userId === 0 ? userId : by.userId}, ${text.tools === null ? null : [...text.tools]}::text[], ${text.approval}) returning id`.execute(db);
        const server = await one({ userId, teamIds: [] }, made.rows[0]!.id, inside);
        await audit(inside, { by, action: 'mcp-server.create', target: { kind, id: server.id }, after: inTrail(server) });
        return server;
      }),
    change: (reader, id, changed, by) =>
      store.transaction(async (inside) => {
        const { owner } = changeable(await one(reader, id, inside));
        await sql`select from users where id = ${owner} for no key update`.execute(inside.db); // of two that take the same name at once, one is refused
        const before = changeable(await locked(reader, id, inside));
        const text = changed(before);
        await refuseTwice(inside, owner, text.name, id);
        // headers stay only where the address does: whoever edits could otherwise send another's secrets elsewhere
        const keeps = text.headers === undefined && text.url === before.url;
        const headers = keeps ? sql`` : sql`, headers = ${sealed(seal, owner, text.headers)}, headers_by = ${by.userId === 0 ? owner : by.userId}`;
        await sql`
          update mcp_server set name = ${text.name}, url = ${text.url}, type = ${text.type}, description = ${text.description}, metadata = ${text.metadata},
            tools = ${text.tools === null ? null : [...text.tools]}::text[], approval = ${text.approval}, updated_at = clock_timestamp() ${headers}
          where id = ${id} and deleted_at is null`.execute(inside.db);
        if (text.url !== before.url) await forgetUses(inside, id);
        else if (hasCredential(text.headers)) await forgetSignIns(inside, id);
        const after = await one(reader, id, inside);
        await audit(inside, { by, action: 'mcp-server.change', target: { kind, id }, before: inTrail(before), after: inTrail(after) });
        return after;
      }),
    remove: (reader, id, by) =>
      store.transaction(async (inside) => {
        const server = await locked(reader, id, inside);
        if (server.right !== 'owner') throw new Fault('forbidden', 'Only its owner deletes an MCP server.');
        await sql`update mcp_server set deleted_at = clock_timestamp(), headers = null where id = ${id}`.execute(inside.db);
        await forgetUses(inside, id);
        await forgetGrants(inside, kind, [id]);
        await audit(inside, { by, action: 'mcp-server.delete', target: { kind, id }, before: inTrail(server) });
        return { ...server, active: false };
      }),
    administered: async (reader, id) => idToShare(await one(reader, id)),
    listed: async (entry) => one({ userId: 0, teamIds: [] }, await rowOf(store, entry)),
    ...remembering({ store, seal, audit }),
  };
}

function changeable(server: McpServer): McpServer & { readonly owner: number } {
  const { right, owner } = server;
  if (right === 'read' || owner === null) throw new Fault('forbidden', 'This MCP server is shared with you to be used, not to be changed.');
  return { ...server, owner };
}

function idToShare({ id, right }: McpServer): number {
  if (right !== 'owner' && right !== 'admin') throw new Fault('forbidden', 'You may use this MCP server, and not say who else may.');
  return id;
}

/** Forgets how it was, what users have approved, and how they are signed in: it is another server now, or none. */
async function forgetUses(inside: Access, id: number): Promise<void> {
  await sql`update mcp_server set state = 'ok', last_error = null, last_seen_at = null where id = ${id}`.execute(inside.db);
  await sql`delete from mcp_approval where server_id = ${id}`.execute(inside.db);
  await forgetSignIns(inside, id);
}

async function rowOf({ db }: Pick<Store, 'db'>, { name, url }: { readonly name: string; readonly url: string }): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into mcp_server (operator_name, name, url) values (${url}, ${name}, ${url})
    on conflict (operator_name) do update set name = excluded.name returning id`.execute(db);
  return rows[0]!.id;
}

const sealed = (seal: Sealer, owner: number, headers: ServerText['headers']) =>
  headers && Object.keys(headers).length > 0 ? sealedJson(seal, headers, contextOf(owner)) : null;

/** Whether headers have a credential of their own: then nobody signs in at the server. */
export const hasCredential = (headers: ServerText['headers']) => Object.keys(headers ?? {}).some((name) => name.toLowerCase() === 'authorization');

async function refuseTwice({ db }: Access, owner: number, name: string, except = 0): Promise<void> {
  const { rows } = await sql`
    select from mcp_server where owner_id = ${owner} and lower(name) = lower(${name}) and id <> ${except} and deleted_at is null`.execute(db);
  if (rows.length > 0) throw new Fault('conflict', 'There is an MCP server of this name already.', { field: 'name' });
}

/** What is remembered of servers besides what their owners say. */
function remembering({
  store,
  seal,
  audit,
}: Omit<McpServerStoreDeps, 'operators' | 'addresses'>): Pick<
  McpServerStore,
  'checkUser' | 'headersOf' | 'lock' | 'noted' | 'meetOperators' | 'approvals' | 'approve'
> {
  return {
    async checkUser(userId) {
      const { rows } = await sql`select from users where id = ${userId} and removed_at is null`.execute(store.db);
      if (rows.length === 0) throw unknownThing('user');
    },
    async headersOf({ id, url }) {
      const { rows } = await sql<{ owner: number; by: number; headers: Buffer }>`
        select owner_id as owner, headers_by as by, headers from mcp_server
        where id = ${id} and url = ${url} and headers is not null and headers_by is not null`.execute(store.db);
      const [row] = rows;
      return row && { by: row.by, headers: openedJson(seal, row.headers, contextOf(row.owner)) as Record<string, string> };
    },
    async lock({ db }, id) {
      const { rows } = await sql<{ owner: number | null }>`select owner_id as owner from mcp_server where id = ${id} and deleted_at is null for update`.execute(
        db,
      );
      return rows[0]?.owner ?? undefined;
    },
    async noted({ id, url }, state, error) {
      const seen = state === 'ok' ? sql`clock_timestamp()` : sql`last_seen_at`;
      await sql`
        update mcp_server set state = ${state}, last_error = ${error}, last_seen_at = ${seen}
        where id = ${id} and url = ${url} and (state <> ${state} or last_error is distinct from ${error} or last_seen_at is null or last_seen_at < clock_timestamp() - interval '1 minute')`.execute(
        store.db,
      );
    },
    async meetOperators(names) {
      if (names.length === 0) return;
      await sql`
        insert into mcp_server (operator_name, name, url) select name, name, '' from unnest(${[...names]}::text[]) as one (name)
        where not exists (select from mcp_server where operator_name = one.name) on conflict (operator_name) do nothing`.execute(store.db);
    },
    async approvals(userId, id) {
      const { rows } = await sql<{ tool: string; digest: string }>`
        select tool, digest from mcp_approval where user_id = ${userId} and server_id = ${id}`.execute(store.db);
      return new Map(rows.map(({ tool, digest }) => [tool, digest]));
    },
    approve: (userId, id, tool, digest, by) =>
      store.transaction(async (inside) => {
        await sql`
          insert into mcp_approval (user_id, server_id, tool, digest) values (${userId}, ${id}, ${tool}, ${digest})
          on conflict (user_id, server_id, tool) do update set digest = excluded.digest, approved_at = clock_timestamp()`.execute(inside.db);
        if (by) await audit(inside, { by, action: 'mcp-server.approve', target: { kind, id }, after: { tool } });
      }),
  };
}

const what = 'MCP server';

/** The values of headers are not in the trail. */
const inTrail = ({ name, url, owner, description, tools, approval, hasHeaders, updatedAt }: McpServer) => ({
  name,
  url,
  owner,
  description,
  tools,
  approval,
  hasHeaders,
  updatedAt: updatedAt.toISOString(),
});
