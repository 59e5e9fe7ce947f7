import { sql } from 'kysely';
import { Type } from 'typebox';
import { Fault } from '#core/fault';
import { nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import { closed, nullable } from '#http/schemas';
import type { Job, Jobs } from '#store/jobs';
import type { Store } from '#store/open';
import { jobOwner, ownerOf as ownerIn, ownerQuery } from '../owner.ts';
import { badCursor, cursorOf, pageOf, pageQuery, pageSchema, placeOf } from '../pagination.ts';
import { buildingKind, buildingPayloadOf, type SecondIndex } from './second-index.ts';
import { ingestionKind, payloadOf, progressOf } from './ingestion.ts';
import { syncKind, syncPayloadOf } from './sources/schedule.ts';

export interface JobRoutesDeps {
  readonly store: Store;
  readonly jobs: Jobs;
  readonly secondIndex: Pick<SecondIndex, 'again'>;
}

const shownKinds = [ingestionKind, buildingKind, syncKind];

const states = ['waiting', 'running', 'done', 'failed', 'cancelled'] as const;
const JobObject = Type.Object({
  id: Type.String(),
  kind: Type.String(),
  state: Type.Enum([...states]),
  stage: nullable(Type.Enum(['store', 'parse', 'chunk', 'embed', 'index'])),
  progress: Type.Number({ minimum: 0, maximum: 1 }),
  error: nullable(Type.String()),
  tries: Type.Integer(),
  dataset: nullable(Type.String({ description: 'The full name.' })),
  filename: nullable(Type.String()),
  addedAt: Type.String(),
  endedAt: nullable(Type.String()),
});

const JobQuery = closed({
  ...ownerQuery,
  kind: Type.Optional(Type.Enum([...shownKinds])),
  state: Type.Optional(Type.Enum([...states])),
  dataset: Type.Optional(Type.String({ maxLength: 400, description: 'The full name.' })),
  ...pageQuery,
});

const OneQuery = closed(ownerQuery);

/** A job as it is read from its row. */
export interface JobRow extends Pick<Job, 'id' | 'kind' | 'state' | 'tries' | 'progress' | 'result' | 'error' | 'addedAt' | 'endedAt'> {
  readonly payload: Job['progress'];
  /** Microseconds since 1970, as text. */
  readonly place: string;
}

const columns = sql`id, kind, state, tries, progress, result, error, payload, added_at as "addedAt", ended_at as "endedAt", (extract(epoch from added_at) * 1000000)::int8::text as place`;

/** A job of this user. @throws Fault `not-found` */
export async function jobOf({ db }: Pick<Store, 'db'>, userId: number, id: string): Promise<JobRow> {
  const { rows } = await sql<JobRow>`select ${columns} from job where id = ${id} and owner = ${jobOwner(userId)} and kind = any(${shownKinds}::text[])`.execute(
    db,
  );
  if (!rows[0]) throw unknownThing('job');
  return rows[0];
}

function shownJob({ id, kind, state, progress, error, tries, payload, addedAt, endedAt }: JobRow) {
  const { stage = null, share = 0 } = progressOf(progress);
  const { dataset, filename } = payloadOf(payload);
  return {
    id,
    kind,
    state,
    stage: state === 'done' ? null : stage,
    progress: state === 'done' ? 1 : share,
    error,
    tries,
    dataset,
    filename: kind === ingestionKind ? filename : null,
    addedAt: addedAt.toISOString(),
    endedAt: endedAt?.toISOString() ?? null,
  };
}

export function jobRoutes({ store, jobs, secondIndex }: JobRoutesDeps): readonly NounRoute[] {
  const root = '/server/mine/jobs';
  const common = { scope: 'datasets', owner: 'caller', output: JobObject } as const;
  const one = async (userId: number, params: Readonly<Record<string, string>>) => jobOf(store, userId, (params['id'] ?? '').slice(0, 100));
  return [
    nounRoute('GET', root, {
      ...common,
      summary: 'Your jobs, newest first.',
      query: JobQuery,
      output: pageSchema(JobObject),
      async answer({ caller, query: { kind, state, dataset, limit = 50, cursor, owner } }) {
        const userId = ownerIn(caller, { owner });
        const conditions = [sql`owner = ${jobOwner(userId)} and kind = any(${shownKinds}::text[])`];
        if (kind !== undefined) conditions.push(sql`kind = ${kind}`);
        if (state !== undefined) conditions.push(sql`state = ${state}`);
        if (dataset !== undefined) conditions.push(sql`payload ->> 'dataset' = ${dataset}`);
        if (cursor !== undefined) conditions.push(behind(cursor));
        const { rows } = await sql<JobRow>`
          select ${columns} from job where ${sql.join(conditions, sql` and `)} order by added_at desc, id desc limit ${limit + 1}`.execute(store.db);
        const { items, nextCursor } = pageOf(rows, limit, ({ place, id }) => cursorOf('jobs', [place, id]));
        return { items: items.map(shownJob), nextCursor };
      },
    }),
    nounRoute('GET', `${root}/:id`, {
      ...common,
      summary: 'A job of yours.',
      query: OneQuery,
      answer: async ({ caller, params, query }) => shownJob(await one(ownerIn(caller, query), params)),
    }),
    nounRoute('POST', `${root}/:id/retry`, {
      ...common,
      summary: 'Has a job that failed or was cancelled go on where it stood.',
      query: OneQuery,
      async answer({ caller, params, query }) {
        const userId = ownerIn(caller, query);
        const { id, kind, payload } = await one(userId, params);
        if (kind === buildingKind) await secondIndex.again(id, buildingPayloadOf(payload));
        if (kind === ingestionKind && !(await isCurrent(store, id, payloadOf(payload).fileId)))
          throw new Fault('conflict', 'The file was deleted, or another content took its place.');
        if (kind === syncKind && !(await isLast(store, id, syncPayloadOf(payload).sourceId)))
          throw new Fault('conflict', 'The source was deleted, or synchronised once more.');
        if (!(await jobs.retry(id))) throw new Fault('conflict', 'Only a job that failed or was cancelled is tried again.');
        return shownJob(await jobOf(store, userId, id));
      },
    }),
    nounRoute('POST', `${root}/:id/cancel`, {
      ...common,
      summary: 'Cancels a job of yours.',
      query: OneQuery,
      async answer({ caller, params, query }) {
        const userId = ownerIn(caller, query);
        const { id } = await one(userId, params);
        if (!(await jobs.cancel(id))) throw new Fault('conflict', 'The job is over already.');
        return shownJob(await jobOf(store, userId, id));
      },
    }),
  ];
}

/** The jobs behind the one at which a page ended. */
function behind(cursor: string) {
  const [place, id, ...rest] = placeOf('jobs', cursor);
  if (typeof place !== 'string' || !/^\d{1,17}$/.test(place) || typeof id !== 'string' || rest.length > 0) throw badCursor();
  return sql`((extract(epoch from added_at) * 1000000)::int8, id) < (${place}::int8, ${id})`;
}

async function isCurrent({ db }: Pick<Store, 'db'>, jobId: string, fileId: number): Promise<boolean> {
  const { rows } = await sql`select from dataset_files where id = ${fileId} and job_id = ${jobId} and deleted_at is null`.execute(db);
  return rows.length > 0;
}

/** Is it the last synchronisation of the source? */
async function isLast({ db }: Pick<Store, 'db'>, jobId: string, sourceId: number): Promise<boolean> {
  const { rows } = await sql`select from dataset_source where id = ${sourceId} and job_id = ${jobId}`.execute(db);
  return rows.length > 0;
}
