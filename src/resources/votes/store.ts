import { sql } from 'kysely';
import { isObject, textOf } from '#core/json';
import { unknownThing } from '#http/noun-route';
import type { Clock } from '#kit/async/clock';
import { sealedJson, openedJson, type Sealer } from '#kit/crypto/sealing';
import type { Store } from '#store/open';
import { repeated } from '#kit/async/repeated';
import type { GivenAnswer } from '../given-answer.ts';
import { repeatUntilFewer } from '#store/pieces';

/** A vote against an answer. Its texts are null where they were not kept. */
export interface Vote extends Omit<GivenAnswer, 'message' | 'answer'> {
  readonly id: number;
  readonly at: Date;
  readonly message: string | null;
  readonly answer: string | null;
}

export interface VotesWanted {
  readonly userId?: number | undefined;
  readonly from?: Date | undefined;
  /** Exclusive. */
  readonly to?: Date | undefined;
  /** The vote before the first of the page. */
  readonly before: { readonly at: Date; readonly id: number } | undefined;
  readonly limit: number;
}

export interface VoteStore {
  keep(answer: GivenAnswer): Promise<void>;
  /** Votes against an answer; once more does nothing. @throws Fault `not-found` for another's and for one that is not known */
  voteDown(userId: number, uuid: string): Promise<void>;
  /** The newest votes first. */
  list(wanted: VotesWanted): Promise<readonly Vote[]>;
  close(): void;
}

export interface VoteStoreDeps {
  readonly store: Store;
  readonly seal: Sealer;
  readonly clock: Clock;
  /** Whether prompts and answers are kept at all, and for how many days. */
  readonly bodies: () => { readonly areKept: boolean; readonly days: number };
  readonly log: (problem: string, cause: unknown) => void;
}

/** Characters of a text that is kept, and of a passage. */
const [mostText, mostPassage] = [65_536, 4000];
/** Answers of a user without a vote; older ones go. */
const mostUnvoted = 1000;
const tidyMilliseconds = 600_000;
const pieceRows = 1000;

export function openVotes(deps: VoteStoreDeps): VoteStore {
  const { store, seal, clock, bodies, log } = deps;
  const stopTidying = repeated({
    clock,
    milliseconds: tidyMilliseconds,
    work: () => tidy(store, bodies().days),
    failed: (cause) => log('Old answers that nobody voted on could not be removed: it is tried again.', cause),
  });
  return {
    async keep({ uuid, userId, requestId, model, message, answer, passages }) {
      const body = {
        message: cut(message, mostText),
        answer: cut(answer, mostText),
        passages: passages.map(({ id, dataset, filename, page, text }) => ({ id, dataset, filename, page, text: cut(text, mostPassage) })),
      };
      const sealed = bodies().areKept ? sealedJson(seal, body, contextOf(uuid)) : null;
      await sql`insert into given_answer (uuid, user_id, request_id, model, sealed, bytes)
        values (${uuid}, ${userId}, ${requestId}, ${cut(model.replaceAll('\0', ''), 200)}, ${sealed}, ${sealed?.length ?? 0})`.execute(store.db);
    },
    async voteDown(userId, uuid) {
      const voted = await sql`update given_answer set voted_at = coalesce(voted_at, now()) where uuid = ${uuid} and user_id = ${userId}`.execute(store.db);
      if (!voted.numAffectedRows) throw unknownThing('answer');
    },
    async list({ userId = null, from = null, to = null, before, limit }) {
      const { rows } = await sql<Row>`
        select id, voted_at as at, user_id as "userId", uuid, request_id as "requestId", model, sealed from given_answer
        where voted_at is not null and (${userId}::bigint is null or user_id = ${userId}::bigint)
          and (${from}::timestamptz is null or voted_at >= ${from}::timestamptz) and (${to}::timestamptz is null or voted_at < ${to}::timestamptz)
          and (${before?.at ?? null}::timestamptz is null or (date_trunc('milliseconds', voted_at), id) < (${before?.at ?? null}::timestamptz, ${before?.id ?? 0}::bigint))
        order by date_trunc('milliseconds', voted_at) desc, id desc limit ${limit}`.execute(store.db);
      return rows.map(({ sealed, ...row }) => ({ ...row, ...(sealed ? opened(seal, row.uuid, sealed) : nothingKept) }));
    },
    close: stopTidying,
  };
}

interface Row extends Omit<Vote, 'message' | 'answer' | 'passages'> {
  readonly sealed: Buffer | null;
}

const nothingKept = { message: null, answer: null, passages: [] };
const contextOf = (uuid: string) => `given-answer/${uuid}`;
const cut = (text: string, most: number) => (text.length > most ? text.slice(0, most).toWellFormed() : text);

function opened(seal: Sealer, uuid: string, sealed: Buffer): Pick<Vote, 'message' | 'answer' | 'passages'> {
  const body = openedJson(seal, sealed, contextOf(uuid));
  if (!isObject(body)) return nothingKept;
  const passages = Array.isArray(body['passages']) ? (body['passages'] as GivenAnswer['passages']) : [];
  return { message: textOf(body['message']), answer: textOf(body['answer']), passages };
}

/** Texts go when they are old, and answers without a vote with them, or when their user has very many. */
async function tidy({ db }: Store, days: number): Promise<void> {
  const old = sql`at < now() - make_interval(days => ${days})`;
  await sql`
    update given_answer set sealed = null, bytes = 0
    where id in (select id from given_answer where sealed is not null and voted_at is not null and ${old} limit ${pieceRows})`.execute(db);
  for (const unvoted of [
    sql`voted_at is null and ${old}`,
    sql`voted_at is null and id < (select id from given_answer as newer where newer.user_id = given_answer.user_id order by id desc offset ${mostUnvoted} limit 1)`,
  ])
    await repeatUntilFewer(sql`delete from given_answer where id in (select id from given_answer where ${unvoted} limit ${pieceRows})`, db, pieceRows);
}
