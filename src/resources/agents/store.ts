import { isDeepStrictEqual } from 'node:util';
import { sql, type RawBuilder } from 'kysely';
import { Fault } from '#core/fault';
import { secretsIn } from '#core/secrets';
import { unknownThing } from '#http/noun-route';
import { allows, levelOf, rightOf, type Reader, type Right } from '#store/grants';
import type { Access, Store } from '#store/open';
import { ownRows, type OwnRows, type OwnRowsInside, type RowOf } from '../own-rows.ts';
import { builtInAgents } from './built-in.ts';
import type { Agent, AgentDefinition, AgentVersion, OwnAgent } from './types.ts';

export interface AgentStore extends OwnRows<OwnAgent> {
  /** A page by offset of those that the reader may run, with the built-in ones before them. @param search in the name or the description */
  page(reader: Reader, asked: PageAsked): Promise<AgentPage>;
  /** The built-in one, or the version that the reader runs. @throws Fault `not-found`; `conflict` for one that was not published */
  runnable(reader: Reader, id: number): Promise<Agent | OwnAgent>;
  /** @param author who writes it. @throws Fault `conflict` where the user has as many as a user may have */
  add(userId: number, definition: AgentDefinition, author: number): Promise<OwnAgent>;
  /** Makes a new version. @param author who writes it. @throws Fault `not-found`; `forbidden` where it is shared with the reader for use only, and for what its owner alone changes */
  change(reader: Reader, id: number, definition: AgentDefinition, author: number): Promise<OwnAgent>;
  /** @param version absent: the last one. @throws Fault as `change`, `not-found` for a version that there is not */
  publish(reader: Reader, id: number, version: number | undefined): Promise<AgentVersion>;
  /** The newest first, those before `before`; 0: from the newest. @throws Fault as `change` */
  versions(reader: Reader, id: number, asked: { readonly before: number; readonly limit: number }): Promise<readonly AgentVersion[]>;
  /** @throws Fault as `change`, `not-found` for a version that there is not */
  version(reader: Reader, id: number, version: number): Promise<AgentVersion>;
  /** @throws Fault `not-found`; `forbidden` where it is another's */
  remove(reader: Reader, id: number): Promise<OwnAgent>;
}

interface PageAsked {
  readonly offset: number;
  readonly limit: number;
  readonly search?: string | undefined;
}

export interface AgentPage {
  readonly agents: readonly (Agent | OwnAgent)[];
  readonly total: number;
}

/** Most agents of a user. */
export const mostAgents = 1000;

/** Versions of an agent that are kept, beside the published one. */
const mostVersions = 200;

/** As `grants.kind`. */
export const kind = 'agent';

type Row = Omit<RowOf<OwnAgent>, 'isPublished'>;

const thing = { id: sql.ref('agent.id'), owner: sql.ref('agent.owner_id') };
const may = (right: Right, reader: Reader) => allows(kind, right, reader, thing);
type VersionFor = (reader: Reader) => RawBuilder<unknown>;
/** The version that a reader runs. */
const runByThem: VersionFor = ({ userId }) => sql`case when owner_id = ${userId}::bigint then agent.version else coalesce(published, agent.version) end`;
/** The version that a reader is shown: whoever may change the agent goes on from the last one. */
const shownToThem: VersionFor = (reader) => sql`case when ${may('edit', reader)} then agent.version else coalesce(published, agent.version) end`;
const columnsFor = (reader: Reader) => sql`
  agent.id, uuid, owner_id as owner, author_id as author, agent_version.version, published, definition, agent.created_at as "createdAt", updated_at as "updatedAt",
  ${levelOf(kind, reader, thing)} as level`;
const tables = (version: RawBuilder<unknown>) => sql`agent join agent_version on agent_id = agent.id and agent_version.version = ${version}`;
const versionColumns = sql`version, definition, created_at as "createdAt", published_at as "publishedAt"`;

export function openAgents(store: Store): AgentStore {
  const reading =
    (versionFor: VersionFor) =>
    async (reader: Reader, where: RawBuilder<unknown>, { db }: Pick<Access, 'db'> = store): Promise<readonly OwnAgent[]> => {
      const { rows } = await sql<Row>`select ${columnsFor(reader)} from ${tables(versionFor(reader))} where ${may('read', reader)} and ${where}`.execute(db);
      return rows.map(shown);
    };
  const things = ownRows({ kind, most: mostAgents, read: reading(shownToThem) });
  const readRun = reading(runByThem);
  return {
    ...things,
    page: (reader, asked) => pageOfAll(store, readRun, reader, asked),
    async runnable(reader, id) {
      const own = builtInAgents.find((agent) => agent.id === id);
      if (own) return own;
      const [agent] = await readRun(reader, sql`agent.id = ${id}`);
      if (!agent) throw unknownThing('agent');
      if (agent.right !== 'owner' && agent.published === null) throw new Fault('conflict', 'This agent was not published: only its owner runs it.');
      return agent;
    },
    add: (userId, definition, author) =>
      store.transaction(async (inside) => {
        await things.checkRoom(inside, userId);
        const made = await sql<{ id: number }>`insert into agent (owner_id, version) values (${userId}, 1) returning id`.execute(inside.db);
        const { id } = made.rows[0]!;
        await insertVersion(inside, { id, version: 1, definition, author });
        return things.one({ userId, teamIds: [] }, id, inside);
      }),
    ...versionsOf(store, things),
    remove: (reader, id) => store.transaction((inside) => things.remove(inside, reader, id)),
  };
}

function versionsOf(
  store: Store,
  { one, editable }: Pick<OwnRowsInside<OwnAgent>, 'one' | 'editable'>,
): Pick<AgentStore, 'change' | 'publish' | 'versions' | 'version'> {
  return {
    change: (reader, id, definition, author) =>
      store.transaction(async (inside) => {
        const { right } = await editable(reader, id, inside);
        const last = await versionOf(inside, id, lastOf(id));
        if (right !== 'owner') refuseOfOwner(last.definition, definition);
        const version = last.version + 1;
        await insertVersion(inside, { id, version, definition, author });
        await sql`update agent set version = ${version}, updated_at = clock_timestamp() where id = ${id}`.execute(inside.db);
        await sql`delete from agent_version where agent_id = ${id} and version <= ${version - mostVersions}
          and version is distinct from (select published from agent where id = ${id})`.execute(inside.db);
        return one(reader, id, inside);
      }),
    publish: (reader, id, version) =>
      store.transaction(async (inside) => {
        await editable(reader, id, inside);
        const found = await versionOf(inside, id, version === undefined ? lastOf(id) : sql`${version}::int`);
        await sql`update agent_version set published_at = clock_timestamp() where agent_id = ${id} and version = ${found.version}`.execute(inside.db);
        await sql`update agent set published = ${found.version}, updated_at = clock_timestamp() where id = ${id}`.execute(inside.db);
        return versionOf(inside, id, sql`${found.version}::int`);
      }),
    async versions(reader, id, { before, limit }) {
      await editable(reader, id);
      const { rows } = await sql<AgentVersion>`
        select ${versionColumns} from agent_version where agent_id = ${id} and (${before}::bigint = 0 or version < ${before}::bigint) order by version desc limit ${limit}`.execute(
        store.db,
      );
      return rows;
    },
    async version(reader, id, version) {
      await editable(reader, id);
      return versionOf(store, id, sql`${version}::int`);
    },
  };
}

const lastOf = (id: number) => sql`(select version from agent where id = ${id})`;

async function versionOf({ db }: Pick<Access, 'db'>, id: number, version: RawBuilder<unknown>): Promise<AgentVersion> {
  const { rows } = await sql<AgentVersion>`select ${versionColumns} from agent_version where agent_id = ${id} and version = ${version}`.execute(db);
  if (!rows[0]) throw unknownThing('version');
  return rows[0];
}

async function pageOfAll(
  { db }: Store,
  read: (reader: Reader, where: RawBuilder<unknown>) => Promise<readonly OwnAgent[]>,
  reader: Reader,
  { offset, limit, search = '' }: PageAsked,
): Promise<AgentPage> {
  const wanted = search.toLowerCase();
  const isRunnable = sql`(owner_id = ${reader.userId}::bigint or published is not null)`;
  const isFound = sql`${isRunnable} and (${wanted} = '' or position(${wanted} in lower(name)) > 0 or position(${wanted} in lower(description)) > 0)`;
  const own = builtInAgents.filter(({ definition: { name, description } }) => `${name}\n${description}`.toLowerCase().includes(wanted));
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from ${tables(runByThem(reader))} where ${may('read', reader)} and ${isFound}`.execute(db);
  const first = own.slice(offset, offset + limit);
  const left = limit - first.length;
  const rest = left > 0 ? await read(reader, sql`${isFound} order by agent.id limit ${left} offset ${Math.max(0, offset - own.length)}`) : [];
  return { agents: [...first, ...rest], total: own.length + rows[0]!.count };
}

interface NewVersion extends Pick<AgentVersion, 'version' | 'definition'> {
  /** Of the agent. */
  readonly id: number;
  readonly author: number;
}

async function insertVersion({ db }: Access, { id, version, definition, author }: NewVersion): Promise<void> {
  const { name, description, mode } = definition;
  await sql`
    insert into agent_version (agent_id, version, name, description, mode, definition, author_id)
    values (${id}, ${version}, ${name}, ${description}, ${mode}, ${JSON.stringify(definition)}::json, ${author})`.execute(db);
}

/** Requests with secrets are sent with those of the agent's owner: who else changes the agent must not change where they go. */
function refuseOfOwner(before: AgentDefinition, after: AgentDefinition): void {
  const withSecrets = ({ tools }: AgentDefinition) => tools.filter((tool) => tool.type === 'http' && secretsIn(JSON.stringify(tool)).length > 0);
  if (!isDeepStrictEqual(withSecrets(before), withSecrets(after)))
    throw new Fault('forbidden', 'tools: requests that use secrets are changed by the owner of the agent alone.', { field: 'tools' });
}

const shown = ({ level, ...row }: Row): OwnAgent => ({ ...row, right: rightOf(level), isPublished: row.published !== null });
