import { sql } from 'kysely';
import type { Clock } from '#kit/async/clock';
import { SealBroken, type Sealer } from '#kit/crypto/sealing';
import type { ToldRequest } from '#core/prompt-log';
import { steps } from '#core/steps';
import type { Store } from '#store/open';
import { openQueue } from './queue.ts';

/** The first characters of a prompt and of its answer. */
export interface KeptText {
  readonly prompt: string;
  readonly answer: string;
}

/** A request of a user. */
export interface LoggedRequest {
  readonly requestId: string;
  readonly userId: number;
}

/** A request in the log of a user. */
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
  /** Written in the background, many at once; what is too much, or cannot be written, is dropped. */
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
const pieceRows = 5000;

export function openPromptStore({ store, seal, clock, bodies, days, log }: PromptStoreDeps): PromptStore {
  const queue = openQueue({ write: (some) => insert(store, seal, bodies(), some), clock, log });
  let cancel = () => {};
  const tidyLater = () => {
    cancel = clock.after(tidyMilliseconds, () => {
      tidy(store, days())
        .catch((error: unknown) => log('Old prompts could not be removed: it is tried again in a minute.', error))
        .finally(tidyLater);
    });
  };
  tidyLater();
  return {
    record: queue.add,
    async list(userId, wanted) {
      await queue.written();
      const rows = await logged(store, userId, wanted);
      return rows.map(({ sealed, requestId, ...row }) => ({ ...row, ...opened(seal, { userId, requestId, sealed }) }));
    },
    async find({ userId, requestId }, forAdministrators) {
      await queue.written();
      const { rows } = await sql<{ sealed: Buffer | null }>`
        select sealed from prompt_log
        where user_id = ${userId} and request_id = ${requestId} and sealed is not null and (for_administrators or not ${forAdministrators})`.execute(store.db);
      return rows[0] && opened(seal, { ...rows[0], userId, requestId });
    },
    async close() {
      cancel();
      await queue.written();
    },
  };
}

interface Sealed extends LoggedRequest {
  readonly sealed: Uint8Array | null;
}

const contextOf = ({ userId, requestId }: LoggedRequest) => `prompt/${userId}/${requestId}`;

const nothing: KeptText = { prompt: '', answer: '' };

function opened(seal: Sealer, row: Sealed): KeptText {
  if (!row.sealed) return nothing;
  try {
    const text = seal.open(row.sealed, contextOf(row)).toString('utf8');
    const begin = text.indexOf(':') + 1;
    const middle = begin + Number(text.slice(0, begin - 1));
    return { prompt: text.slice(begin, middle), answer: text.slice(middle) };
  } catch (error) {
    if (error instanceof SealBroken) return nothing;
    throw error;
  }
}

/** Of how many the texts are read in one turn of the event loop. */
const turnRows = 20;

/** The sealed texts go as one value, of which each row takes its part: a list of them would be written out in hexadecimal digits. */
async function insert({ db }: Store, seal: Sealer, bodies: 'own' | 'all' | 'none', some: readonly ToldRequest[]): Promise<void> {
  const lengths: number[] = [];
  const sealed: Buffer[] = [];
  for (let from = 0; from < some.length; from += turnRows) {
    if (from > 0) await new Promise((resolve) => setImmediate(resolve));
    const few = some.slice(from, from + turnRows);
    for (const { answer } of few) lengths.push(answer.length);
    if (bodies === 'none') continue;
    const texts = few.map((told) => ({ plain: Buffer.from(`${told.prompt.length}:${told.prompt}${told.answer.text}`), context: contextOf(told) }));
    sealed.push(...seal.sealAll(texts));
  }
  const column = <Value>(of: (told: ToldRequest) => Value) => some.map(of);
  let end = 0;
  const starts = sealed.map(({ length }) => (end += length) - length + 1);
  await sql`
    insert into prompt_log (request_id, user_id, address, prompt_length, answer_length, for_administrators, sealed)
    select id, user_id, address, prompt, answer, ${bodies === 'all'}, substring(${Buffer.concat(sealed)}::bytea from start for bytes)
    from unnest(${column(({ requestId }) => requestId)}::text[], ${column(({ userId }) => userId)}::bigint[], ${column(({ address }) => address)}::text[],
      ${column(({ promptLength }) => promptLength)}::bigint[], ${lengths}::bigint[], ${starts}::int[], ${sealed.map(({ length }) => length)}::int[])
      as given(id, user_id, address, prompt, answer, start, bytes)
    on conflict do nothing`.execute(db);
}

interface LoggedRow extends Omit<LoggedPrompt, keyof KeptText>, Sealed {}

/**
 * Rows have no numbers. Their id is made of the millisecond and of the request id: it grows with time, and it is hardly ever that of another row of the user.
 */
const id = sql`(extract(epoch from date_trunc('milliseconds', usage.at)) * 1000000)::bigint + (abs(hashtext(usage.request_id || usage.step::text)) % 1000)`;

async function logged({ db }: Store, userId: number, { limit, before, forAdministrators }: PromptsWanted): Promise<readonly LoggedRow[]> {
  const older = before === undefined ? sql`` : sql`and usage.at <= to_timestamp(${before / 1_000_000}::double precision + 0.001) and ${id} < ${before}`;
  const { rows } = await sql<LoggedRow>`
    select ${id} as id, usage.user_id as "userId", usage.request_id as "requestId", usage.at, coalesce(nullif(served_model, ''), model) as model,
      input_tokens as "inputTokens", output_tokens as "outputTokens", plan_tokens as "planTokens", balance = 'train' as "isTraining",
      coalesce(prompt_length, 0) as "promptLength", coalesce(answer_length, 0) as "answerLength", coalesce(address, '') as address,
      case when for_administrators or not ${forAdministrators} then sealed end as sealed
    from usage left join prompt_log on prompt_log.request_id = usage.request_id and prompt_log.user_id = usage.user_id and usage.step < ${steps.own.each}
    where usage.user_id = ${userId} ${older}
    order by usage.at desc, id desc limit ${limit}`.execute(db);
  return rows;
}

async function tidy({ db }: Store, days: number): Promise<void> {
  let gone: bigint;
  do {
    const done = await sql`
      delete from prompt_log where (user_id, request_id) in (select user_id, request_id from prompt_log where at < now() - make_interval(days => ${days}) order by at limit ${pieceRows})`.execute(
      db,
    );
    gone = done.numAffectedRows ?? 0n;
  } while (gone === BigInt(pieceRows));
}
