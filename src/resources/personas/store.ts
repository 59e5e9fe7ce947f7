import { sql, type RawBuilder } from 'kysely';
import { Fault } from '#core/fault';
import { unknownThing } from '#http/noun-route';
import { allows, forgetGrants, levelOf, rightOf, type Reader, type Right } from '#store/grants';
import type { Access, Store } from '#store/open';
import { builtInPersonas, type Persona } from './built-in.ts';

/** A persona that a user made. */
export interface OwnPersona extends Persona {
  readonly owner: number;
  readonly right: Right | 'owner';
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export type PersonaText = Pick<Persona, 'name' | 'description' | 'prompt'>;

export interface PersonaStore {
  /** The personas of a user and those shared with them, by id, those behind `after`. */
  list(reader: Reader, asked: { readonly after: number; readonly limit: number }): Promise<readonly OwnPersona[]>;
  /** Those of `list` without their prompts: the reader's own first, then by id. */
  names(reader: Reader): Promise<readonly Pick<Persona, 'id' | 'name' | 'description'>[]>;
  /** @throws Fault `not-found` for one that the reader may not use */
  one(reader: Reader, id: number): Promise<OwnPersona>;
  /** The built-in one, or one that the reader may use. @throws Fault `not-found` */
  usable(reader: Reader, id: number): Promise<Persona>;
  /** @throws Fault `conflict` where the user has as many as a user may have */
  add(userId: number, text: PersonaText): Promise<OwnPersona>;
  /** @param by the user who writes it. @throws Fault `not-found`; `forbidden` where it is shared with the reader for use only */
  change(reader: Reader, id: number, text: PersonaText, by: number): Promise<OwnPersona>;
  /** @throws Fault `not-found`; `forbidden` where it is another's */
  remove(reader: Reader, id: number): Promise<OwnPersona>;
  /** The id, for who may say who else uses it. @throws Fault `not-found`, `forbidden` */
  administered(reader: Reader, id: number): Promise<number>;
  /** Those who wrote of a passage in the prompt of a persona that the reader may use: by their rights the reader may read it. */
  citers(reader: Reader, passageId: number): Promise<readonly Reader[]>;
  /** Locks it, within a transaction. @returns its owner, undefined where it is not there */
  lock(inside: Access, id: number): Promise<number | undefined>;
}

/** Most personas of a user. */
export const mostPersonas = 1000;
/** Most in a list of names. */
const mostNamed = 2000;

/** As `grants.kind`. */
export const kind = 'persona';

interface Row extends Persona {
  readonly owner: number;
  readonly level: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

const thing = { id: sql.ref('persona.id'), owner: sql.ref('persona.owner_id') };
const may = (right: Right, reader: Reader) => allows(kind, right, reader, thing);
const columnsFor = (reader: Reader) => sql`
  id, owner_id as owner, name, description, prompt, created_at as "createdAt", updated_at as "updatedAt", ${levelOf(kind, reader, thing)} as level`;

export function openPersonas(store: Store): PersonaStore {
  const read = async (reader: Reader, where: RawBuilder<unknown>, { db }: Pick<Access, 'db'> = store): Promise<readonly OwnPersona[]> => {
    const { rows } = await sql<Row>`select ${columnsFor(reader)} from persona where ${may('read', reader)} and ${where}`.execute(db);
    return rows.map(shown);
  };
  const one = async (reader: Reader, id: number, access?: Pick<Access, 'db'>, lock = sql``): Promise<OwnPersona> => {
    const [persona] = await read(reader, sql`id = ${id} ${lock}`, access);
    if (!persona) throw unknownThing('persona');
    return persona;
  };
  return {
    list: (reader, { after, limit }) => read(reader, sql`id > ${after} order by id limit ${limit}`),
    async names(reader) {
      const { rows } = await sql<Pick<Persona, 'id' | 'name' | 'description'>>`
        select id, name, description from persona where ${may('read', reader)}
        order by owner_id <> ${reader.userId}::bigint, id limit ${mostNamed}`.execute(store.db);
      return rows;
    },
    one: (reader, id) => one(reader, id),
    async usable(reader, id) {
      return builtInPersonas.find((persona) => persona.id === id) ?? (await one(reader, id));
    },
    add: (userId, { name, description, prompt }) =>
      store.transaction(async (inside) => {
        await sql`select from users where id = ${userId} for update`.execute(inside.db); // two requests at once make no more than one may
        const { rows } = await sql<{ personas: number }>`select count(*)::int as personas from persona where owner_id = ${userId}`.execute(inside.db);
        if (rows[0]!.personas >= mostPersonas) throw new Fault('conflict', `A user has at most ${mostPersonas} personas: delete one first.`);
        const made = await sql<{ id: number }>`
          insert into persona (owner_id, name, description, prompt) select id, ${name}, ${description}, ${prompt} from users
          where id = ${userId} and removed_at is null returning id`.execute(inside.db);
        if (!made.rows[0]) throw unknownThing('user');
        await cite(inside, made.rows[0].id, prompt, userId);
        return one({ userId, teamIds: [] }, made.rows[0].id, inside);
      }),
    change: (reader, id, { name, description, prompt }, by) =>
      store.transaction(async (inside) => {
        const { right } = await one(reader, id, inside, sql`for update`);
        if (right === 'read') throw new Fault('forbidden', 'This persona is shared with you to be used, not to be changed.');
        await sql`update persona set name = ${name}, description = ${description}, prompt = ${prompt}, updated_at = clock_timestamp() where id = ${id}`.execute(
          inside.db,
        );
        await cite(inside, id, prompt, by);
        return one(reader, id, inside);
      }),
    remove: (reader, id) =>
      store.transaction(async (inside) => {
        const persona = await one(reader, id, inside, sql`for update`);
        if (persona.right !== 'owner') throw new Fault('forbidden', 'Only its owner deletes a persona.');
        await sql`delete from persona where id = ${id}`.execute(inside.db);
        await forgetGrants(inside, kind, [id]);
        return persona;
      }),
    async administered(reader, id) {
      const { right } = await one(reader, id);
      if (right !== 'owner' && right !== 'admin') throw new Fault('forbidden', 'You may use this persona, and not say who else may.');
      return id;
    },
    async citers(reader, passageId) {
      const { rows } = await sql<Reader>`
        select cited.user_id as "userId", array(select team_id from team_members where team_members.user_id = cited.user_id) as "teamIds"
        from (
          select distinct user_id from persona_passage join persona on persona.id = persona_id
          where passage_id = ${passageId} and ${may('read', reader)} limit ${mostCiters}
        ) as cited join users on users.id = cited.user_id and users.removed_at is null`.execute(store.db);
      return rows;
    },
    async lock({ db }, id) {
      const { rows } = await sql<{ owner: number }>`select owner_id as owner from persona where id = ${id} for update`.execute(db);
      return rows[0]?.owner;
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
  if (passages.size > mostCited) throw new Fault('invalid', `prompt must cite at most ${mostCited} passages.`, { field: 'prompt' });
  const all = sql`${[...passages]}::bigint[]`;
  await sql`delete from persona_passage where persona_id = ${id} and not passage_id = any(${all})`.execute(db);
  await sql`
    insert into persona_passage (persona_id, passage_id, user_id) select ${id}, passage_id, ${userId} from unnest(${all}) as passage_id
    on conflict (persona_id, passage_id) do nothing`.execute(db);
}

const shown = ({ level, ...row }: Row): OwnPersona => ({ ...row, right: rightOf(level) });
