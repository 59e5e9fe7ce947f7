import { isDeepStrictEqual } from 'node:util';
import { sql, type RawBuilder } from 'kysely';
import { Fault } from '#core/fault';
import type { JsonObject } from '#core/json';
import { allows, isGivenByName, levelOf, rightOf, type Reader } from '#store/grants';
import type { Access, Store } from '#store/open';
import { isDuplicate } from '#store/sql-error';
import { ownRows, type OwnRows, type RowOf } from '../own-rows.ts';
import type { RunnablePlugin } from '../plugin-run.ts';
import { builtInPlugins } from './built-in.ts';
import { placesIn } from './template.ts';
import type { OwnPlugin, Plugin, PluginText } from './types.ts';

export interface PluginStore extends OwnRows<OwnPlugin> {
  /** All of them without what is in them, each name once: that which `named` gives. */
  runnable(reader: Reader): Promise<readonly RunnablePlugin[]>;
  /** The one of a name that the reader may use: a built-in one, else the reader's own, else the first that is shared with them or a team of theirs, else with everybody. Undefined: there is none. */
  named(reader: Reader, name: string): Promise<Plugin | OwnPlugin | undefined>;
  /** @throws Fault `conflict` for a name that is taken, and where the user has as many as a user may have */
  add(userId: number, text: PluginText): Promise<OwnPlugin>;
  /** @throws Fault `not-found`; `forbidden` where it is shared with the reader for use only, and for what its owner alone changes; `conflict` */
  change(reader: Reader, id: number, text: PluginText): Promise<OwnPlugin>;
  /** @throws Fault `not-found`; `forbidden` where it is another's */
  remove(reader: Reader, id: number): Promise<OwnPlugin>;
}

/** Most plugins of a user. */
export const mostPlugins = 1000;
/** Most in a list of what somebody may run. */
const mostRunnable = 2000;

/** As `grants.kind`. */
export const kind = 'plugin';

type Row = Omit<RowOf<OwnPlugin>, 'fields'> & { readonly fields: JsonObject | null };

const thing = { id: sql.ref('plugin.id'), owner: sql.ref('plugin.owner_id') };
const readable = (reader: Reader) => allows(kind, 'read', reader, thing);
const columnsFor = (reader: Reader) => sql`
  id, owner_id as owner, name, title, description, category, definition, fields, file_mode as "fileMode",
  created_at as "createdAt", updated_at as "updatedAt", ${levelOf(kind, reader, thing)} as level`;

const valuesOf = ({ name, title, description, category, definition, fields, fileMode }: PluginText) =>
  sql`${name}, ${title}, ${description}, ${category}, ${definition.kind}, ${JSON.stringify(definition)}::json, ${fields ? JSON.stringify(fields) : null}::json, ${fileMode}`;

export function openPlugins(store: Store): PluginStore {
  const read = async (reader: Reader, where: RawBuilder<unknown>, { db }: Pick<Access, 'db'> = store): Promise<readonly OwnPlugin[]> => {
    const { rows } = await sql<Row>`select ${columnsFor(reader)} from plugin where ${readable(reader)} and ${where}`.execute(db);
    return rows.map(shown);
  };
  const things = ownRows({ kind, most: mostPlugins, read });
  return {
    ...things,
    async runnable(reader) {
      const { rows } = await sql<Omit<RunnablePlugin, 'fields'> & { readonly fields: JsonObject | null }>`
        select distinct on (lower(name)) name, title, description, fields from plugin where ${readable(reader)}
        order by lower(name), owner_id <> ${reader.userId}::bigint, not ${isGivenByName(kind, reader, thing)}, id limit ${mostRunnable}`.execute(store.db);
      return rows.map(({ fields, ...row }) => ({ ...row, ...(fields ? { fields } : {}) }));
    },
    async named(reader, name) {
      const own = builtInPlugins.find((plugin) => plugin.name === name.toLowerCase());
      if (own || !/^[\w-]{1,64}$/.test(name)) return own;
      const found = await read(
        reader,
        sql`lower(name) = ${name.toLowerCase()} order by owner_id <> ${reader.userId}::bigint, not ${isGivenByName(kind, reader, thing)}, id limit 1`,
      );
      return found[0];
    },
    add: (userId, text) =>
      store
        .transaction(async (inside) => {
          refuseReserved(text);
          await things.checkRoom(inside, userId);
          const made = await sql<{ id: number }>`
            insert into plugin (owner_id, name, title, description, category, kind, definition, fields, file_mode) values (${userId}, ${valuesOf(text)})
            returning id`.execute(inside.db);
          return things.one({ userId, teamIds: [] }, made.rows[0]!.id, inside);
        })
        .catch(taken),
    change: (reader, id, text) =>
      store
        .transaction(async (inside) => {
          const before = await things.editable(reader, id, inside);
          if (before.right !== 'owner') refuseOfOwner(before, text);
          refuseReserved(text);
          await sql`
            update plugin set name = ${text.name}, title = ${text.title}, description = ${text.description}, category = ${text.category}, kind = ${text.definition.kind},
              definition = ${JSON.stringify(text.definition)}::json, fields = ${text.fields ? JSON.stringify(text.fields) : null}::json, file_mode = ${text.fileMode},
              updated_at = clock_timestamp()
            where id = ${id}`.execute(inside.db);
          return things.one(reader, id, inside);
        })
        .catch(taken),
    remove: (reader, id) => store.transaction((inside) => things.remove(inside, reader, id)),
  };
}

/** Nobody can have a plugin that is taken for a built-in one. */
function refuseReserved({ name }: PluginText): void {
  if (builtInPlugins.some((plugin) => plugin.name === name.toLowerCase())) throw nameTaken();
}

const nameTaken = () => new Fault('conflict', 'plugin_name is that of another plugin.', { field: 'plugin_name' });

function taken(error: unknown): never {
  throw isDuplicate(error) ? nameTaken() : error;
}

/** What others change must not make the plugin reach further: its owner runs it with more rights than they have. */
function refuseOfOwner(before: PluginText, after: PluginText): void {
  if (usesSecrets(before)) throw new Fault('forbidden', 'Only its owner changes a plugin that uses secrets: they would be sent where the change says.');
  const field = ownersField(before, after);
  if (field) throw new Fault('forbidden', `${field} is changed by the owner of the plugin alone.`, { field });
}

/** The field of a change that is its owner's to change; of prompts only the kind. */
function ownersField(before: PluginText, after: PluginText): 'kind' | 'request' | 'script' | 'fields' | undefined {
  const { kind: had } = before.definition;
  if (after.definition.kind !== had) return 'kind';
  if (had === 'prompt') return undefined;
  if (!isDeepStrictEqual(before.definition, after.definition)) return had === 'http' ? 'request' : 'script';
  return isDeepStrictEqual(before.fields, after.fields) ? undefined : 'fields';
}

const usesSecrets = ({ definition }: PluginText): boolean => placesIn(JSON.stringify(definition)).secrets.length > 0;

const shown = ({ level, fields, ...row }: Row): OwnPlugin => ({ ...row, ...(fields ? { fields } : {}), right: rightOf(level) });
