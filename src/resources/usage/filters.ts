import { sql, type RawBuilder } from 'kysely';

/** What rows of usage are looked for. Absent members narrow nothing. */
export interface UsageFilter {
  readonly userId?: number | undefined;
  readonly keyId?: number | undefined;
  /** The id of a team that the rows were charged to. */
  readonly team?: number | undefined;
  /** The model name as the client sent it. */
  readonly model?: string | undefined;
  readonly app?: string | undefined;
  readonly face?: string | undefined;
  readonly provider?: string | undefined;
  readonly region?: string | undefined;
  /** HTTP status. */
  readonly status?: number | undefined;
  readonly end?: string | undefined;
  readonly tag?: { readonly name: string; readonly value: string } | undefined;
}

/** Whether only the rows themselves can be asked: sums know nothing of how calls ended. */
export const needsRows = ({ status, end }: UsageFilter): boolean => status !== undefined || end !== undefined;

/** @param tags the column of the tags as JSON @returns conditions on the rows or on their sums, whose columns have the same names */
export function conditionsOf(wanted: UsageFilter, tags: RawBuilder<unknown>): readonly RawBuilder<unknown>[] {
  const { userId, keyId, team, model, app, face, provider, region, status, end, tag } = wanted;
  return [
    userId === undefined ? undefined : sql`user_id = ${userId}`,
    keyId === undefined ? undefined : sql`key_id = ${keyId}`,
    team === undefined ? undefined : sql`team_ids @> array[${team}::bigint]`,
    model === undefined ? undefined : sql`model collate "C" = ${model}`,
    app === undefined ? undefined : sql`app = ${app}`,
    face === undefined ? undefined : sql`face = ${face}`,
    provider === undefined ? undefined : sql`provider = ${provider}`,
    region === undefined ? undefined : sql`region = ${region}`,
    status === undefined ? undefined : sql`status = ${sql.lit(Math.trunc(status))}`, // a literal, so that the planner can use the partial index
    end === undefined ? undefined : sql`"end" = ${end}`,
    tag === undefined ? undefined : sql`${tags} ->> ${tag.name} = ${tag.value}`,
  ].filter((condition) => condition !== undefined);
}
