import { setImmediate as nextTurn } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Clock } from '#kit/async/clock';
import { envelopeBytes, openedBytes, type Sealer } from '#kit/crypto/sealing';
import type { ToldRequest } from '#core/prompt-log';
import { steps } from '#core/steps';
import type { Store } from '#store/open';
import { compressed, decompressed, requestsIn, withoutTexts, type Batch, type BatchedRequest } from './lot.ts';
import { openQueue } from './queue.ts';
import { ReusedBytes } from '#kit/memory/reused-bytes';
import { repeated } from '#kit/async/repeated';
import { repeatUntilFewer } from '#store/pieces';

/** The first characters of a prompt and of its answer. */
export interface KeptText {
  readonly prompt: string;
  readonly answer: string;
}

export interface LoggedRequest {
  readonly requestId: string;
  readonly userId: number;
  /** When it began, as a date that JavaScript reads. */
  readonly at: string;
}

export interface LoggedPrompt extends KeptText {
  /** Newer ones have greater ids. */
  readonly id: number;
  readonly userId: number;
  readonly at: Date;
  /** The model that answered, else the one that was asked for. */
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly planTokens: number;
  readonly isTraining: boolean;
  /** UTF-16 units. */
  readonly promptLength: number;
  readonly answerLength: number;
  readonly address: string;
}

export interface PromptStore {
  /** Written in the background, many at once, or when the database is back; what is too much, or cannot be written, is dropped. */
  record(told: ToldRequest): void;
  /** The calls of a user, newest first, with all that this process has recorded. @throws Fault `overloaded` */
  list(userId: number, wanted: PromptsWanted): Promise<readonly LoggedPrompt[]>;
  /** The text of a request. @param forAdministrators only where administrators may see it. @throws Fault `overloaded` */
  find(request: LoggedRequest, forAdministrators: boolean): Promise<KeptText | undefined>;
  /** Writes what waits. */
  close(): Promise<void>;
}

export interface PromptsWanted {
  readonly limit: number;
  /** Only those with a smaller id. */
  readonly before?: number | undefined;
  /** With no other texts than those that administrators may see. */
  readonly forAdministrators: boolean;
}

export interface PromptStoreDeps {
  readonly store: Store;
  readonly seal: Sealer;
  readonly clock: Clock;
  readonly bodies: () => 'own' | 'all' | 'none';
  /** For how long texts are kept. */
  readonly days: () => number;
  readonly log: (problem: string, cause: unknown) => void;
}

const tidyMilliseconds = 60_000;
/** Most that are taken away at once. */
const pieceRows = 500;

export function openPromptStore({ store, seal, clock, bodies, days, log }: PromptStoreDeps): PromptStore {
  const memory = new ReusedBytes();
  const queue = openQueue({ write: (batches) => insert(store, seal, { at: clock.now(), bodies: bodies(), batches, memory }), clock, log });
  const stopTidying = repeated({
    clock,
    milliseconds: tidyMilliseconds,
    work: () => tidy(store, days()),
    failed: (cause) => log('Old prompts could not be removed: it is tried again in a minute.', cause),
  });
  return {
    record: queue.add,
    async list(userId, wanted) {
      await queue.written();
      const rows = await logged(store, userId, wanted);
      const texts = await textsOf(store, seal, userId, rows, wanted.forAdministrators);
      return rows.map(({ requestId, step, ...row }) => ({ ...row, ...shown(ofStep(step, texts.get(requestId))) }));
    },
    async find({ userId, requestId, at }, forAdministrators) {
      await queue.written();
      const text = (await textsOf(store, seal, userId, [{ requestId, at: new Date(at) }], forAdministrators)).get(requestId);
      return text?.kept === undefined ? undefined : shown(text);
    },
    async close() {
      stopTidying();
      await queue.close();
    },
  };
}

/** A request as its row has it; without `kept` where texts are not kept, or not for whoever asks. */
interface FoundText extends Omit<BatchedRequest, 'prompt' | 'answer'> {
  readonly answerLength: number;
  readonly kept: KeptText | undefined;
}

const shown = ({ kept = { prompt: '', answer: '' }, promptLength, answerLength, address }: Omit<FoundText, 'requestId'> = nothing) => ({
  ...kept,
  promptLength,
  answerLength,
  address,
});

/** The gateway's own calls show the address of their request, not its texts. */
const ofStep = (step: number, text: FoundText | undefined) => (text && step >= steps.own.each ? { ...nothing, address: text.address } : text);

const nothing = { kept: undefined, promptLength: 0, answerLength: 0, address: '' };

/** A row of the log: a batch, or a single request of an earlier version. */
interface SealedRow {
  readonly lastRequest: string;
  readonly sealed: Uint8Array | null;
  readonly isHidden: boolean;
  /** Of a single request; else null. */
  readonly address: string | null;
  readonly promptLength: number;
  readonly answerLength: number;
}

/** Rows, of about 256 KB decompressed, that are opened in one turn of the event loop. */
const turnRows = 4;
/** Bytes that are compressed in one turn: about a millisecond. */
const turnBytes = 200_000;

/** What the log has of some requests of a user, by their ids: of one that was told twice, what was told first. */
async function textsOf(
  { db }: Store,
  seal: Sealer,
  userId: number,
  requests: readonly { readonly requestId: string; readonly at: Date }[],
  forAdministrators: boolean,
): Promise<ReadonlyMap<string, FoundText>> {
  const texts = new Map<string, FoundText>();
  if (requests.length === 0) return texts;
  const ids = requests.map(({ requestId }) => requestId).toSorted();
  const times = requests.map(({ at }) => at.getTime()).toSorted((a, b) => a - b);
  const { rows } = await sql<SealedRow>`
    select last_request as "lastRequest", sealed, ${forAdministrators} and not for_administrators as "isHidden", address,
      prompt_length as "promptLength", answer_length as "answerLength"
    from prompt_log
    where user_id = ${userId} and at between ${new Date(times[0]! - clockSlack)} and ${new Date(times.at(-1)! + longestCall)}
      and last_request >= ${ids[0]!} and coalesce(first_request, last_request) <= ${ids.at(-1)!}
      and (last_request = any(${ids}::text[]) or requests && ${ids}::text[])
    order by at ${ids.length === 1 ? sql`limit 1` : sql``}`.execute(db); // one request alone is found after 7 ms where its user has four rows a second, without the limit after 115
  for (const [at, row] of rows.entries()) {
    if (at > 0 && at % turnRows === 0) await nextTurn();
    for (const one of openedRow(seal, userId, row)) if (!texts.has(one.requestId)) texts.set(one.requestId, one);
  }
  return texts;
}

/** Milliseconds after its beginning in which a call is logged at the latest; and by which the clocks that say both may differ. */
const longestCall = 86_400_000;
const clockSlack = 3_600_000;

function openedRow(seal: Sealer, userId: number, row: SealedRow): readonly FoundText[] {
  const { lastRequest, sealed, isHidden, address, promptLength, answerLength } = row;
  const bytes = sealed ? openedBytes(seal, sealed, contextOf(userId, lastRequest)) : undefined; // what does not open cannot be shown, and the log goes on
  const text = bytes && decompressed(bytes).toString();
  const of = (prompt: string, answer: string) => (isHidden || text === undefined ? undefined : { prompt, answer });
  if (address === null)
    return [...requestsIn(text ?? '')].map(({ prompt, answer, ...one }) => {
      const isKept = prompt !== '' || answer.text !== '' || one.promptLength + answer.length === 0;
      return { ...one, answerLength: answer.length, kept: isKept ? of(prompt, answer.text) : undefined };
    });
  const begin = text === undefined ? 0 : text.indexOf(':') + 1;
  const middle = begin + Number(text?.slice(0, Math.max(0, begin - 1)));
  return [{ requestId: lastRequest, address, promptLength, answerLength, kept: of(text?.slice(begin, middle) ?? '', text?.slice(middle) ?? '') }];
}

/** What a batch, or the single request of an earlier row, is sealed for. */
const contextOf = (userId: number, lastRequest: string): string => `prompt/${userId}/${lastRequest}`;

interface Written {
  readonly at: number;
  /** As it is now, whatever it was when they were told. */
  readonly bodies: 'own' | 'all' | 'none';
  readonly batches: readonly Batch[];
  /** For the sealed texts. */
  readonly memory: ReusedBytes;
}

/** A row to insert, without its sealed texts. */
interface NewRow {
  readonly userId: number;
  readonly requests: string;
  readonly first: string;
  readonly last: string;
  /** The length of its sealed texts. */
  readonly bytes: number;
}

/**
 * The sealed texts go as one value, of which each row takes its part: a list of them would be written out in hexadecimal digits. A request that ends when its user
 * was deleted leaves nothing behind.
 */
async function insert({ db }: Store, seal: Sealer, written: Written): Promise<void> {
  const { at, bodies, memory } = written;
  const { sealed, rows } = await sealedRows(seal, written);
  const column = <Value>(of: (row: NewRow) => Value) => rows.map(of);
  let end = 0;
  const starts = column(({ bytes }) => (end += bytes) - bytes + 1);
  const statement = sql`
    insert into prompt_log (user_id, at, first_request, last_request, requests, for_administrators, sealed)
    select user_id, ${new Date(at)}, first, last, string_to_array(requests, ','), ${bodies === 'all'}, substring(${sealed}::bytea from start for bytes)
    from unnest(${column(({ userId }) => userId)}::bigint[], ${column(({ first }) => first)}::text[], ${column(({ last }) => last)}::text[],
      ${column(({ requests }) => requests)}::text[], ${starts}::int[], ${column(({ bytes }) => bytes)}::int[])
      as given(user_id, first, last, requests, start, bytes)
    where exists (select from users where id = user_id and removed_at is null)`;
  await statement.execute(db).catch((error: unknown) => {
    memory.leave();
    throw error;
  });
}

/**
 * The rows of the batches, and their sealed texts one after the other. The compressed texts can be collected before the statement is sent. Compressing, sealing
 * and sending have turns of their own, so that calls wait for none of them longer than for another call.
 */
async function sealedRows(seal: Sealer, { bodies, batches, memory }: Written): Promise<{ readonly sealed: Buffer; readonly rows: readonly NewRow[] }> {
  const rows: NewRow[] = [];
  const texts: { plain: Buffer; context: string }[] = [];
  let done = 0;
  for (const { userId, requests, plain } of batches) {
    if (done > turnBytes) {
      await nextTurn();
      done = 0;
    }
    done += plain.length;
    const bytes = compressed(bodies === 'none' ? withoutTexts(plain) : plain);
    const ends = endsOf(requests);
    texts.push({ plain: bytes, context: contextOf(userId, ends.last) });
    rows.push({ userId, requests: requests.join(','), ...ends, bytes: bytes.length + envelopeBytes });
  }
  await nextTurn();
  const sealed = seal.sealAll(texts, (bytes) => memory.take(bytes));
  await nextTurn();
  return { sealed, rows };
}

function endsOf(requests: readonly string[]): { readonly first: string; readonly last: string } {
  const sorted = requests.toSorted();
  return { first: sorted[0]!, last: sorted.at(-1)! };
}

interface LoggedRow extends Omit<LoggedPrompt, keyof KeptText | 'promptLength' | 'answerLength' | 'address'> {
  readonly requestId: string;
  readonly step: number;
}

/**
 * Rows have no numbers. Their id is made of the millisecond and of the request id: it grows with time, and it is hardly ever that of another row of the user.
 */
const id = sql`(extract(epoch from date_trunc('milliseconds', usage.at)) * 1000000)::bigint + (abs(hashtext(usage.request_id || usage.step::text)) % 1000)`;

async function logged({ db }: Store, userId: number, { limit, before }: PromptsWanted): Promise<readonly LoggedRow[]> {
  const older = before === undefined ? sql`` : sql`and usage.at <= to_timestamp(${before / 1_000_000}::double precision + 0.001) and ${id} < ${before}`;
  const { rows } = await sql<LoggedRow>`
    select ${id} as id, usage.user_id as "userId", usage.request_id as "requestId", usage.step, usage.at, coalesce(nullif(served_model, ''), model) as model,
      input_tokens as "inputTokens", output_tokens as "outputTokens", plan_tokens as "planTokens", balance = 'train' as "isTraining"
    from usage
    where usage.user_id = ${userId} ${older}
    order by usage.at desc, id desc limit ${limit}`.execute(db);
  return rows;
}

function tidy({ db }: Store, days: number): Promise<void> {
  const some = sql`select ctid from prompt_log where at < now() - make_interval(days => ${days}) order by at limit ${pieceRows}`;
  return repeatUntilFewer(sql`delete from prompt_log where ctid = any(array(${some}))`, db, pieceRows);
}
