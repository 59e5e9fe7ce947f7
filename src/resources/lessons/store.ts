import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type { Actor } from '#core/audit';
import type { JsonObject } from '#core/json';
import { LocalLessons, type Lesson, type Lessons } from '#core/lessons';
import type { Clock } from '#kit/async/clock';
import type { Audit } from '#store/auditing';
import { openLiveValue } from '#store/live-value';
import type { Access, Store } from '#store/open';
import { openWriting } from './writing.ts';

/** A lesson as administrators see it. */
export interface KeptLesson extends Pick<Lesson, 'fields' | 'learned' | 'until'> {
  readonly id: number;
  readonly provider: string;
  readonly wire: string;
  readonly model: string;
}

/** What was learned from providers' refusals, for all processes and machines. */
export interface LessonStore extends Lessons {
  /** From memory; the newest first. */
  list(): readonly KeptLesson[];
  /** Forgets one lesson, or all. @returns how many. @throws Fault `overloaded` while the database is away */
  forget(id: number | 'all', by: Actor): Promise<number>;
  close(): void;
}

export interface LessonStoreDeps {
  readonly store: Store;
  readonly audit: Audit;
  readonly clock: Clock;
  readonly version: string;
  readonly log: (problem: string, cause: unknown) => void;
}

interface Row extends Omit<KeptLesson, 'until'> {
  readonly place: string;
  readonly quirks: JsonObject;
  readonly left: number;
}

interface Pending {
  readonly place: string;
  readonly provider: string;
  readonly wire: string;
  readonly model: string;
  readonly lesson: Lesson;
}

/** Most lessons that are kept; the newest stay. */
const mostLessons = 2000;

/** Opens the lessons. Callers read them from memory; they are written in the background, so that no request waits for the database. */
export async function openLessons({ store, audit, clock, version, log }: LessonStoreDeps): Promise<LessonStore> {
  const places = new Map<string, LocalLessons>();
  let kept: readonly KeptLesson[] = [];
  const local = (place: string) => {
    const found = places.get(place) ?? new LocalLessons();
    places.set(place, found);
    return found;
  };

  const writing = openWriting<Pending>({
    clock,
    write: (some) =>
      store.transaction(async (inside) => {
        for (const one of some) await insert(inside, one, clock.now());
        await sql`delete from lesson where until < now() or id in (select id from lesson order by id desc offset ${mostLessons})`.execute(inside.db);
        await inside.publish('lessons', null);
      }),
    refused: ({ model, provider }, cause) =>
      log(`The database refuses what was learned about the model ${model.slice(0, 100)} of ${provider.slice(0, 100)}: it is not kept.`, cause),
  });

  const apply = (rows: readonly Row[]) => {
    for (const place of places.values()) place.clear();
    const all = rows.map(({ left, ...row }) => ({ ...row, until: clock.now() + Number(left) * 1000 }));
    for (const { place, model, ...lesson } of all.toReversed()) local(place).keep(model, lesson);
    for (const { place, model, lesson } of writing.waiting()) local(place).keep(model, lesson);
    kept = all.map(({ id, provider, wire, model, fields, learned, until }) => ({ id, provider, wire, model, fields, learned, until }));
  };
  const live = await openLiveValue({ store, topic: 'lessons', clock, read: () => read(store), changed: () => apply(live.value) });
  apply(live.value);

  return {
    of(provider, wire, address) {
      const place = createHash('sha256')
        .update(JSON.stringify([version, provider, wire, address]))
        .digest('base64url');
      const lessons = local(place);
      return {
        get: (model) => lessons.get(model),
        keep(model, lesson) {
          if (/\p{Cc}/u.test(model)) return; // not a name, and no text for the database
          lessons.keep(model, lesson);
          if (lessons.get(model) === lesson) writing.add(`${place} ${model}`, { place, provider, wire, model, lesson });
        },
      };
    },
    list: () => kept.filter(({ until }) => until > clock.now()),
    async forget(id, by) {
      const forgotten = await store.transaction((inside) => remove(inside, audit, id, by));
      writing.clear(); // or one of them could be written again
      await live.again();
      return forgotten;
    },
    close() {
      writing.close();
      live.close();
    },
  };
}

async function read({ db }: Access): Promise<readonly Row[]> {
  const { rows } = await sql<Row>`
    select id, place, provider, wire, model, fields, learned, quirks, extract(epoch from until - now())::float8 as left
    from lesson where until > now() order by id desc limit ${mostLessons}`.execute(db);
  return rows;
}

async function insert({ db }: Access, { place, provider, wire, model, lesson }: Pending, now: number): Promise<void> {
  const { fields, learned, quirks, until } = lesson;
  await sql`
    insert into lesson (place, provider, wire, model, fields, learned, quirks, until)
    values (${place}, ${provider}, ${wire}, ${model}, ${JSON.stringify(fields)}::jsonb, ${JSON.stringify(learned)}::jsonb,
      ${JSON.stringify(quirks)}::jsonb, now() + make_interval(secs => ${(until - now) / 1000}))
    on conflict (place, model) do update
      set fields = excluded.fields, learned = excluded.learned, quirks = excluded.quirks, until = excluded.until`.execute(db);
}

async function remove(inside: Access, audit: Audit, id: number | 'all', by: Actor): Promise<number> {
  const { rows } = await sql<Pick<KeptLesson, 'provider' | 'wire' | 'model'>>`
    delete from lesson where ${id === 'all' ? sql`true` : sql`id = ${id}`} returning provider, wire, model`.execute(inside.db);
  if (rows.length === 0) return 0;
  await audit(
    inside,
    id === 'all'
      ? { by, action: 'lessons.forget', target: { kind: 'lessons', id: null }, before: { count: rows.length } }
      : { by, action: 'lesson.forget', target: { kind: 'lesson', id }, before: rows[0] },
  );
  await inside.publish('lessons', null);
  return rows.length;
}
