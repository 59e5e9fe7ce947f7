import { sql, type RawBuilder } from 'kysely';
import { allows, levelOf, rightOf, type Reader } from '#store/grants';
import type { Access, Store } from '#store/open';
import { ownRows, type OwnRow, type OwnRows, type RowOf } from '../own-rows.ts';
import { builtInPersonas, type Persona } from './built-in.ts';
import { invalid } from '#core/fault';

export type OwnPersona = Persona & OwnRow;

export type PersonaText = Pick<Persona, 'name' | 'description' | 'prompt'>;

export interface PersonaStore extends OwnRows<OwnPersona> {
  /** Those of `list` without their prompts: the reader's own first, then by id. */
  names(reader: Reader): Promise<readonly Pick<Persona, 'id' | 'name' | 'description'>[]>;
  /** The built-in one, or one that the reader may use. @throws Fault `not-found` */
  usable(reader: Reader, id: number): Promise<Persona>;
  /** @throws Fault `conflict` where the user has as many as a user may have */
  add(userId: number, text: PersonaText): Promise<OwnPersona>;
  /** @param by the user who writes it. @throws Fault `not-found`; `forbidden` where it is shared with the reader for use only */
  change(reader: Reader, id: number, text: PersonaText, by: number): Promise<OwnPersona>;
  /** @throws Fault `not-found`; `forbidden` where it is another's */
  remove(reader: Reader, id: number): Promise<OwnPersona>;
  /** Those who wrote of a passage in the prompt of a persona that the reader may use: by their rights the reader may read it. */
  citers(reader: Reader, passageId: number): Promise<readonly Reader[]>;
}

/** Most personas of a user. */
export const mostPersonas = 1000;
/** Most in a list of names. */
const mostNamed = 2000;

/** As `grants.kind`. */
export const kind = 'persona';

const thing = { id: sql.ref('persona.id'), owner: sql.ref('persona.owner_id') };
const readable = (reader: Reader) => allows(kind, 'read', reader, thing);
const columnsFor = (reader: Reader) => sql`
  id, owner_id as owner, name, description, prompt, created_at as "createdAt", updated_at as "updatedAt", ${levelOf(kind, reader, thing)} as level`;

export function openPersonas(store: Store): PersonaStore {
  const read = async (reader: Reader, where: RawBuilder<unknown>, { db }: Pick<Access, 'db'> = store): Promise<readonly OwnPersona[]> => {
    const { rows } = await sql<RowOf<OwnPersona>>`select ${columnsFor(reader)} from persona where ${readable(reader)} and ${where}`.execute(db);
    return rows.map(shown);
  };
  const things = ownRows({ kind, most: mostPersonas, read });
  return {
    ...things,
    async names(reader) {
      const { rows } = await sql<Pick<Persona, 'id' | 'name' | 'description'>>`
        select id, name, description from persona where ${readable(reader)}
        order by owner_id <> ${reader.userId}::bigint, id limit ${mostNamed}`.execute(store.db);
      return rows;
    },
    async usable(reader, id) {
      return builtInPersonas.find((persona) => persona.id === id) ?? (await things.one(reader, id));
    },
    add: (userId, { name, description, prompt }) =>
      store.transaction(async (inside) => {
        await things.checkRoom(inside, userId);
        const made = await sql<{ id: number }>`
          insert into persona (owner_id, name, description, prompt) values (${userId}, ${name}, ${description}, ${prompt}) returning id`.execute(inside.db);
        const { id } = made.rows[0]!;
        await cite(inside, id, prompt, userId);
        return things.one({ userId, teamIds: [] }, id, inside);
      }),
    change: (reader, id, { name, description, prompt }, by) =>
      store.transaction(async (inside) => {
        await things.editable(reader, id, inside);
        await sql`update persona set name = ${name}, description = ${description}, prompt = ${prompt}, updated_at = clock_timestamp() where id = ${id}`.execute(
          inside.db,
        );
        await cite(inside, id, prompt, by);
        return things.one(reader, id, inside);
      }),
    remove: (reader, id) => store.transaction((inside) => things.remove(inside, reader, id)),
    async citers(reader, passageId) {
      const { rows } = await sql<Reader>`
        select cited.user_id as "userId", array(select team_id from team_members where team_members.user_id = cited.user_id) as "teamIds"
        from (
          select distinct user_id from persona_passage join persona on persona.id = persona_id
          where passage_id = ${passageId} and ${readable(reader)} limit ${mostCiters}
        ) as cited join users on users.id = cited.user_id and users.removed_at is null`.execute(store.db);
      return rows;
    },
  };
}

/** Passages that one prompt cites. */
const mostCited = 1000;
/** By whose rights a passage is looked for. */
const mostCiters = 20;

/** Keeps which passages a prompt cites, by their addresses. What was cited before stays that of who wrote it: nobody gets at a passage by another's rights. */
async function cite({ db }: Access, id: number, prompt: string, userId: number): Promise<void> {
  const passages = new Set(Array.from(prompt.matchAll(/\/server\/mine\/passages\/([1-9]\d{0,14})(?!\d)/g), ([, number]) => Number(number)));
  if (passages.size > mostCited) throw invalid('prompt', `must cite at most ${mostCited} passages`);
  const all = sql`${[...passages]}::bigint[]`;
  await sql`delete from persona_passage where persona_id = ${id} and not passage_id = any(${all})`.execute(db);
  await sql`
    insert into persona_passage (persona_id, passage_id, user_id) select ${id}, passage_id, ${userId} from unnest(${all}) as passage_id
    on conflict (persona_id, passage_id) do nothing`.execute(db);
}

const shown = ({ level, ...row }: RowOf<OwnPersona>): OwnPersona => ({ ...row, right: rightOf(level) });
