import { sql, type RawBuilder } from 'kysely';
import type { Json } from '#core/json';
import type { NewRun, RunKind, RunState, RunUsage, ShownRun, WaitsFor } from '#core/run';
import { sealedJson, type Sealer } from '#kit/crypto/sealing';
import { asWritten, parseAsWritten } from '#kit/json/numbers';
import type { Access, Store } from '#store/open';
import { rowsChanged } from '#store/pieces';

/** The topic under which the id of a run is published whenever something of it has changed. */
export const topic = 'runs';

/** Bytes of all that is sealed of a run. */
export const mostBytes = 16 * 2 ** 20;

export type StepState = 'told' | 'begun' | 'interrupted' | 'done' | 'scratch';

export interface StepRow {
  readonly key: string;
  /** Of the booked step; −1: none. */
  readonly number: number;
  readonly state: StepState;
  readonly sealed: Buffer | null;
}

/** What a run has used, and what is counted of it. */
export interface Counted extends RunUsage {
  readonly numbered: number;
  readonly steps: number;
  readonly calls: number;
  readonly workedMs: number;
}

/** A run that this process works on. */
export interface TakenRun extends Counted, Omit<NewRun, 'asked' | 'caller'> {
  readonly id: string;
  readonly userId: number;
  readonly keyId: number;
  readonly cancelWanted: boolean;
  readonly seq: number;
  readonly bytes: number;
  readonly asked: Buffer;
  readonly startedAt: Date;
}

export interface Written {
  /** The number of the last event before. */
  readonly from: number;
  readonly events: { readonly count: number; readonly sealed: Buffer } | undefined;
  readonly steps: readonly StepRow[];
  readonly counted: Counted;
  readonly bytes: number;
}

export interface Ending {
  readonly state: 'completed' | 'failed' | 'cancelled';
  readonly ending: Buffer;
  readonly event: Buffer;
}

interface ShownRow extends Omit<ShownRun, 'waitsFor' | 'message' | 'error'> {
  readonly number: number;
  readonly job: string;
  readonly keyId: number;
  readonly waits_for: Buffer | null;
  readonly isHeld: boolean;
  readonly ending: Buffer | null;
}

/** What a waiting run waits for, with the key of the step that the answer completes. */
export interface Waiting {
  readonly waitsFor: WaitsFor;
  readonly key: string;
}

export interface FoundRun extends ShownRun {
  readonly number: number;
  readonly job: string;
  readonly keyId: number;
  readonly waiting: Waiting | null;
  /** What it waits for as it is kept, where a process goes on with it when it is answered. */
  readonly heldFor: Buffer | null;
}

/** What a page of runs is filtered by. */
export interface RunsWanted {
  readonly kind?: RunKind | undefined;
  readonly state?: RunState | undefined;
  readonly agentId?: number | undefined;
  /** The number of the run before the first of the page; 0: none. */
  readonly before: number;
  readonly limit: number;
}

/** One that its holder keeps while it waits is waiting too. */
const shownState = sql`case when state = 'running' and waits_for is not null then 'waiting' else state end`;

/** What was booked of answers that died with a process: nobody was there to count them. */
const lost = (sum: RawBuilder<unknown>) => sql`(
  select ${sum} from usage
  where usage.request_id = run.request_id and usage."end" = 'gateway-died' and usage.month >= to_char(run.started_at at time zone 'UTC', 'YYYY-MM'))`;
const lostPlanTokens = lost(sql`sum(usage.plan_tokens)`);
const allUsd = sql`(select sum(usd) from (values (cost_usd), (${lost(sql`sum(usage.cost_usd)::float8`)})) as part(usd))`;

const shownColumns = sql`number, id, key_id as "keyId", kind, agent_id as "agentId", version, ${shownState} as state, state = 'running' as "isHeld", job, waits_for, ending, steps, calls,
  (plan_tokens + coalesce(${lostPlanTokens}, 0))::float8 as "planTokens", ${allUsd} as "costUsd",
  request_id as "requestId", started_at as "startedAt", ended_at as "endedAt"`;

export const nothingLost: RunUsage = { inputTokens: 0, outputTokens: 0, planTokens: 0, costUsd: null };

/** The rows of runs, of their events and their steps. What users wrote and were told is sealed. */
export class RunRows {
  readonly #store: Store;
  readonly #seal: Sealer;

  constructor(store: Store, seal: Sealer) {
    this.#store = store;
    this.#seal = seal;
  }

  sealed(userId: number, value: Json): Buffer {
    return sealedJson(this.#seal, value, contextOf(userId));
  }

  opened(userId: number, sealed: Buffer): Json {
    return parseAsWritten(this.#seal.open(sealed, contextOf(userId)).toString()) as Json;
  }

  async add(
    run: Pick<TakenRun, 'id' | 'userId' | 'keyId' | 'kind' | 'agentId' | 'version' | 'requestId' | 'app' | 'limits' | 'asked'>,
    job: string,
    { db }: Access,
  ) {
    await sql`
      insert into run (id, user_id, key_id, kind, agent_id, version, state, job, request_id, app, limits, asked, bytes)
      values (${run.id}, ${run.userId}, ${run.keyId}, ${run.kind}, ${run.agentId}, ${run.version}, 'running', ${job}, ${run.requestId}, ${run.app},
        ${JSON.stringify(run.limits)}::jsonb, ${run.asked}, ${run.asked.length})`.execute(db);
  }

  /** What was booked of answers that died with a process. Who goes on with the run may have it before all of that is booked. */
  async lost(id: string): Promise<RunUsage> {
    const { rows } = await sql<RunUsage>`
      select ${lost(sql`coalesce(sum(usage.input_tokens), 0)::float8`)} as "inputTokens", ${lost(sql`coalesce(sum(usage.output_tokens), 0)::float8`)} as "outputTokens",
        coalesce(${lostPlanTokens}, 0)::float8 as "planTokens", ${lost(sql`sum(usage.cost_usd)::float8`)} as "costUsd" from run where id = ${id}`.execute(
      this.#store.db,
    );
    return rows[0] ?? nothingLost;
  }

  /** Makes a running run this holder's. @returns undefined where it is not running, or another job has it */
  async take(id: string, job: string, holder: string): Promise<TakenRun | undefined> {
    const { rows } = await sql<TakenRun>`
      update run set holder = ${holder}, waits_for = null where id = ${id} and job = ${job} and state = 'running'
      returning id, user_id as "userId", key_id as "keyId", kind, agent_id as "agentId", version, request_id as "requestId", app, limits,
        cancel_wanted as "cancelWanted", seq, numbered, steps, calls, input_tokens::float8 as "inputTokens", output_tokens::float8 as "outputTokens",
        plan_tokens::float8 as "planTokens", cost_usd as "costUsd", worked_ms::float8 as "workedMs", bytes::float8 as bytes, asked, started_at as "startedAt"`.execute(
      this.#store.db,
    );
    return rows[0];
  }

  /** All steps but texts of the scratch. */
  async steps(id: string): Promise<readonly StepRow[]> {
    const { rows } = await sql<StepRow>`select key, number, state, sealed from run_step where run_id = ${id} and state <> 'scratch'`.execute(this.#store.db);
    return rows;
  }

  async scratch(id: string, key: string): Promise<Buffer | undefined> {
    const { rows } = await sql<{ sealed: Buffer }>`select sealed from run_step where run_id = ${id} and key = ${key} and state = 'scratch'`.execute(
      this.#store.db,
    );
    return rows[0]?.sealed;
  }

  /** Writes events and steps, all or none; what was written before is not written again. @returns false where the run is no longer this holder's: then nothing was written */
  async write(id: string, holder: string, { from, events, steps, counted, bytes }: Written): Promise<boolean> {
    const count = events?.count ?? 0;
    const said = events
      ? sql`, said as (insert into run_event (run_id, first, last, sealed) select ${id}, seq - ${count}::int + 1, seq, ${events.sealed} from mine)`
      : sql``;
    const kept = steps.length > 0 ? sql`, kept as (${insertSteps(id, steps)})` : sql``;
    const { rows } = await sql`
      with mine as (
        update run set seq = seq + ${count}::int, bytes = bytes + ${bytes}::bigint, ${setCounted(counted)}
        where id = ${id} and holder = ${holder} and state = 'running' and seq = ${from} returning seq
      ) ${said} ${kept} select seq from mine`.execute(this.#store.db);
    if (rows.length > 0 && count > 0) await this.changed(id);
    if (rows.length > 0 || count === 0) return rows.length > 0;
    const before = await sql`select from run where id = ${id} and holder = ${holder} and state = 'running' and seq = ${from + count}`.execute(this.#store.db);
    return before.rows.length > 0;
  }

  /** Lets a run wait for its user. @returns false where it is no longer this holder's, or is to be cancelled */
  async wait(id: string, holder: string, waiting: Buffer): Promise<boolean> {
    const done = await sql`
      update run set state = 'waiting', holder = null, waits_for = ${waiting} where id = ${id} and holder = ${holder} and state = 'running' and not cancel_wanted`.execute(
      this.#store.db,
    );
    await this.changed(id);
    return done.numAffectedRows === 1n;
  }

  /** Lets a run wait for its user while this holder goes on with it. @returns false where it is no longer this holder's, or is to be cancelled */
  async waitHere(id: string, holder: string, waiting: Buffer): Promise<boolean> {
    const done = await sql`
      update run set waits_for = ${waiting} where id = ${id} and holder = ${holder} and state = 'running' and not cancel_wanted`.execute(this.#store.db);
    await this.changed(id);
    return done.numAffectedRows === 1n;
  }

  async waitHereNoMore(id: string, holder: string): Promise<void> {
    const done = await sql`update run set waits_for = null where id = ${id} and holder = ${holder} and state = 'running' and waits_for is not null`.execute(
      this.#store.db,
    );
    if (done.numAffectedRows === 1n) await this.changed(id);
  }

  /** Gives a run that waits while its holder goes on what it waits for. @param waiting as it was read @returns false where it does not wait for that any more */
  async answerHere(id: string, waiting: Buffer, step: StepRow): Promise<boolean> {
    const { rows } = await sql`
      with mine as (
        update run set waits_for = null, bytes = bytes + ${step.sealed?.length ?? 0}::bigint where id = ${id} and state = 'running' and waits_for = ${waiting}
        returning id
      ), kept as (${insertSteps(id, [step])}) select id from mine`.execute(this.#store.db);
    await this.changed(id);
    return rows.length > 0;
  }

  /** The result of a step that is done. */
  async answerOf(id: string, key: string): Promise<Buffer | undefined> {
    const { rows } = await sql<{ sealed: Buffer | null }>`select sealed from run_step where run_id = ${id} and key = ${key} and state = 'done'`.execute(
      this.#store.db,
    );
    return rows[0]?.sealed ?? undefined;
  }

  /** Ends a run with its last event. @param holder absent: whoever has it. @returns false where it is over, or another's */
  async end(id: string, { state, ending, event }: Ending, holder?: string): Promise<boolean> {
    const mine = holder === undefined ? sql`state in ('running', 'waiting')` : sql`state = 'running' and holder = ${holder}`;
    const { rows } = await sql`
      with mine as (
        update run set state = ${state}, holder = null, waits_for = null, ending = ${ending}, ended_at = now(), seq = seq + 1,
          bytes = bytes + ${ending.length + event.length}::bigint
        where id = ${id} and ${mine} returning seq
      ), said as (insert into run_event (run_id, first, last, sealed) select ${id}, seq, seq, ${event} from mine)
      select seq from mine`.execute(this.#store.db);
    await this.changed(id);
    return rows.length > 0;
  }

  /** Lets a run go on that waits or has failed, under another job. @param step the answer that it waited for. @returns false where it is in another state, or is being cancelled */
  async goOn(id: string, { job, from, step }: { readonly job: string; readonly from: 'waiting' | 'failed'; readonly step?: StepRow }, { db }: Access) {
    const kept = step ? sql`, kept as (${insertSteps(id, [step])})` : sql``;
    const { rows } = await sql`
      with mine as (
        update run set state = 'running', job = ${job}, waits_for = null, ending = null, ended_at = null, cancel_wanted = false,
          bytes = bytes + ${step?.sealed?.length ?? 0}::bigint
        where id = ${id} and state = ${from} and (state = 'failed' or not cancel_wanted) returning id
      ) ${kept} select id from mine`.execute(db);
    return rows.length > 0;
  }

  /** @returns the state that it had and its job; undefined where it is over or not there */
  async wantCancelled(userId: number, id: string): Promise<{ readonly state: RunState; readonly job: string } | undefined> {
    const { rows } = await sql<{ state: RunState; job: string }>`
      update run set cancel_wanted = true where id = ${id} and user_id = ${userId} and state in ('running', 'waiting') returning state, job`.execute(
      this.#store.db,
    );
    return rows[0];
  }

  async find(userId: number, id: string): Promise<FoundRun | undefined> {
    const { rows } = await sql<ShownRow>`select ${shownColumns} from run where id = ${id} and user_id = ${userId}`.execute(this.#store.db);
    return rows.map((row) => this.#shown(userId, row))[0];
  }

  /** The newest first. */
  async list(userId: number, { kind, state, agentId, before, limit }: RunsWanted): Promise<readonly FoundRun[]> {
    const and = (condition: RawBuilder<unknown>, wanted: unknown) => (wanted === undefined || wanted === 0 ? sql`` : sql`and ${condition}`);
    const { rows } = await sql<ShownRow>`
      select ${shownColumns} from run where user_id = ${userId} ${and(sql`kind = ${kind}`, kind)} ${and(sql`${shownState} = ${state}`, state)}
        ${and(sql`agent_id = ${agentId}`, agentId)} ${and(sql`number < ${before}`, before)}
      order by number desc limit ${limit}`.execute(this.#store.db);
    return rows.map((row) => this.#shown(userId, row));
  }

  /** How far a run has come. */
  async progress(userId: number, id: string): Promise<{ readonly state: RunState; readonly seq: number } | undefined> {
    const { rows } = await sql<{ state: RunState; seq: number }>`select ${shownState} as state, seq from run where id = ${id} and user_id = ${userId}`.execute(
      this.#store.db,
    );
    return rows[0];
  }

  /** How far a run has come, and some of its events, those behind `after`, as they were written together. */
  async news(
    userId: number,
    id: string,
    after: number,
  ): Promise<{ readonly state: RunState; readonly seq: number; readonly events: readonly { readonly first: number; readonly sealed: Buffer }[] } | undefined> {
    const { rows } = await sql<{ state: RunState; seq: number; first: number | null; sealed: Buffer }>`
      select ${shownState} as state, seq, first, sealed from run left join lateral (
        select first, sealed from run_event where run_id = run.id and last > ${after} order by first limit ${batches}
      ) event on true where id = ${id} and user_id = ${userId} order by first`.execute(this.#store.db);
    const [one] = rows;
    return one && { state: one.state, seq: one.seq, events: rows.flatMap(({ first, sealed }) => (first === null ? [] : [{ first, sealed }])) };
  }

  /** Deletes runs that are older. @returns how many went */
  purge(days: number): Promise<number> {
    const some = sql`select id from run where started_at < now() - make_interval(days => ${days}) limit ${purgedAtOnce} for update skip locked`;
    return rowsChanged(sql`delete from run where id = any(array(${some}))`, this.#store.db);
  }

  /** Tells who follows the run, on every machine; they also look from time to time. */
  async changed(id: string): Promise<void> {
    await this.#store.publish(topic, id).catch(() => {});
  }

  #shown(userId: number, { waits_for: waits, ending, planTokens, isHeld, ...row }: ShownRow): FoundRun {
    const waiting = row.state === 'waiting' && waits ? (this.opened(userId, waits) as unknown as Waiting) : null;
    const end = ending ? (this.opened(userId, ending) as { readonly message: string }).message : null;
    return {
      ...row,
      planTokens,
      waiting,
      heldFor: isHeld ? waits : null,
      waitsFor: (asWritten(waiting?.waitsFor) as WaitsFor | undefined) ?? null,
      message: row.state === 'completed' ? end : null,
      error: row.state === 'failed' ? end : null,
    };
  }
}

const batches = 50;
const purgedAtOnce = 100;

const contextOf = (userId: number) => `run/${userId}`;

const setCounted = ({ numbered, steps, calls, inputTokens, outputTokens, planTokens, costUsd, workedMs }: Counted) => sql`
  numbered = ${numbered}, steps = ${steps}, calls = ${calls}, input_tokens = ${inputTokens}, output_tokens = ${outputTokens}, plan_tokens = ${planTokens},
  cost_usd = ${costUsd}, worked_ms = ${Math.round(workedMs)}`;

/** Steps of the run that the statement has changed: of `mine`. */
function insertSteps(id: string, steps: readonly StepRow[]): RawBuilder<unknown> {
  const rows = steps.map(({ key, number, state, sealed }) => sql`(${key}::text, ${number}::int, ${state}::text, ${sealed}::bytea)`);
  return sql`
    insert into run_step (run_id, key, number, state, sealed) select ${id}, one.* from (values ${sql.join(rows)}) as one (key, number, state, sealed), mine
    on conflict (run_id, key) do update set number = excluded.number, state = excluded.state, sealed = excluded.sealed`;
}
