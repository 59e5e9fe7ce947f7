import { sql } from 'kysely';
import { Fault, invalid } from '#core/fault';
import { unknownThing } from '#http/noun-route';
import type { Access } from '#store/open';

export interface ChatMessage {
  readonly id: number;
  /** The message that it goes on from; null at the beginning. */
  readonly parent: number | null;
  readonly isUser: boolean;
  readonly message: string;
  readonly model: string | null;
  readonly requestId: string | null;
  readonly at: Date;
  /** JSON of further members. */
  readonly more: string | null;
}

export type NewMessage = Pick<ChatMessage, 'isUser' | 'message'> & Partial<Pick<ChatMessage, 'model' | 'requestId' | 'more'>>;

/** Some messages of a chat; `hasMore`: others come behind them. */
export interface MessagePage {
  readonly messages: readonly ChatMessage[];
  readonly hasMore: boolean;
}

/** Most messages of a chat, and bytes of them. */
export const mostMessages = 10_000;
const mostBytes = 16_777_216;
/** Bytes of a page, unless its first message has more. */
const pageBytes = 1_048_576;

const columns = sql`id, parent, is_user as "isUser", message, model, request_id as "requestId", at, more`;

/** All, in the order in which they came. */
export async function messagesOf(id: string, { db }: Pick<Access, 'db'>): Promise<readonly ChatMessage[]> {
  const { rows } = await sql<ChatMessage>`select ${columns} from chat_message where chat_id = ${id} order by id`.execute(db);
  return rows;
}

/** At most this many behind the one with the id `after`, and about a megabyte of them. */
export async function pageOfMessages(
  id: string,
  { after, limit }: { readonly after: number; readonly limit: number },
  { db }: Pick<Access, 'db'>,
): Promise<MessagePage> {
  const { rows } = await sql<ChatMessage & { readonly behind: number }>`
    with next as (
      select id, sum(bytes) over (order by id) - bytes as before, row_number() over (order by id) as place from chat_message where chat_id = ${id} and id > ${after}
    )
    select ${columns}, (select count(*)::int from next) as behind from chat_message
    where id in (select id from next where before < ${pageBytes} and place <= ${limit}) order by id`.execute(db);
  return { messages: rows.map(({ behind: _, ...message }) => message), hasMore: rows.length < (rows[0]?.behind ?? 0) };
}

/** Writes messages in a row, each behind the one before it; the first behind `parent`, or where it is undefined behind the last one that there is. @throws Fault `not-found`, `too-large` */
export async function insert(
  inside: Access,
  userId: number,
  chatId: string,
  messages: readonly NewMessage[],
  parent: number | null | undefined,
): Promise<readonly ChatMessage[]> {
  const behind = parent === undefined ? await lastOf(inside, chatId) : parent;
  if (typeof parent === 'number') await mustHave(inside, chatId, parent);
  if (messages.length === 0) return [];
  if (messages.length > mostMessages) throw tooLarge();
  const column = <Value>(of: (message: NewMessage) => Value) => messages.map(of);
  const size = ({ message, more }: NewMessage) => Buffer.byteLength(message) + Buffer.byteLength(more ?? '');
  if (messages.reduce((sum, one) => sum + size(one), 0) > mostBytes) throw tooLarge();
  const { rows } = await sql<ChatMessage>`
    with given as (
      select *, nextval(pg_get_serial_sequence('chat_message', 'id')) as new_id from (
        select * from unnest(${column(({ isUser }) => isUser)}::boolean[], ${column(({ message }) => message)}::text[], ${column(({ model }) => model ?? null)}::text[],
          ${column(({ requestId }) => requestId ?? null)}::text[], ${column(({ more }) => more ?? null)}::text[], ${column(size)}::int[])
          with ordinality as one (is_user, message, model, request_id, more, bytes, place) order by place) as placed
    )
    insert into chat_message (id, chat_id, user_id, parent, is_user, message, model, request_id, more, bytes) overriding system value
    select new_id, ${chatId}, ${userId}, coalesce(lag(new_id) over (order by place), ${behind}::bigint), is_user, message, model, request_id, more, bytes from given
    returning ${columns}`.execute(inside.db);
  await withinBounds(inside, chatId);
  return rows.toSorted((a, b) => a.id - b.id);
}

/** Another text, speaker or parent; what is left out stays. @throws Fault `not-found`, `too-large`, `invalid` for a parent that goes on from the message */
export async function changedMessage(
  inside: Access,
  chatId: string,
  id: number,
  { message, isUser, parent }: Partial<Pick<ChatMessage, 'isUser' | 'message' | 'parent'>>,
): Promise<ChatMessage> {
  if (typeof parent === 'number') await mustHave(inside, chatId, parent);
  if (typeof parent === 'number' && (await goesOnFrom(inside, parent, id)))
    throw invalid('parent', 'must not be the message itself, or one that goes on from it');
  const { rows } = await sql<ChatMessage>`
    update chat_message set message = coalesce(${message ?? null}, message), is_user = coalesce(${isUser ?? null}::boolean, is_user),
      parent = ${parent === undefined ? sql`parent` : sql`${parent}::bigint`},
      bytes = bytes + coalesce(octet_length(${message ?? null}::text) - octet_length(message), 0)
    where id = ${id} and chat_id = ${chatId} returning ${columns}`.execute(inside.db);
  if (!rows[0]) throw unknownThing('message');
  await withinBounds(inside, chatId);
  return rows[0];
}

/** With all that goes on from it. @throws Fault `not-found` */
export async function removedMessage({ db }: Access, chatId: string, id: number): Promise<ChatMessage> {
  const { rows } = await sql<ChatMessage>`delete from chat_message where id = ${id} and chat_id = ${chatId} returning ${columns}`.execute(db);
  if (!rows[0]) throw unknownThing('message');
  return rows[0];
}

/** With their branches. */
export async function copyMessages(
  inside: Access,
  messages: readonly ChatMessage[],
  { id, owner }: { readonly id: string; readonly owner: number },
): Promise<void> {
  await insert(inside, owner, id, messages, null);
  const copies = (await sql<{ id: number }>`select id from chat_message where chat_id = ${id} order by id`.execute(inside.db)).rows;
  const ids = new Map(messages.map((message, at) => [message.id, copies[at]!.id]));
  const parents = messages.map(({ parent }) => (parent === null ? null : (ids.get(parent) ?? null)));
  await sql`update chat_message set parent = given.parent from unnest(${copies.map((copy) => copy.id)}::bigint[], ${parents}::bigint[]) as given (id, parent)
    where chat_message.id = given.id`.execute(inside.db);
}

const tooLarge = () => new Fault('too-large', `A chat has at most ${mostMessages} messages and ${mostBytes} bytes.`);

async function withinBounds({ db }: Access, chatId: string): Promise<void> {
  const { rows } = await sql<{ messages: number; bytes: number }>`
    select count(*)::int as messages, coalesce(sum(bytes), 0)::bigint as bytes from chat_message where chat_id = ${chatId}`.execute(db);
  if (rows[0]!.messages > mostMessages || Number(rows[0]!.bytes) > mostBytes) throw tooLarge();
}

async function lastOf({ db }: Access, chatId: string): Promise<number | null> {
  const { rows } = await sql<{ id: number }>`select id from chat_message where chat_id = ${chatId} order by id desc limit 1`.execute(db);
  return rows[0]?.id ?? null;
}

async function mustHave({ db }: Access, chatId: string, id: number): Promise<void> {
  const { rows } = await sql`select from chat_message where chat_id = ${chatId} and id = ${id}`.execute(db);
  if (rows.length === 0) throw new Fault('not-found', 'parent: there is no such message in the chat.', { field: 'parent' });
}

/** Is one message the other, or behind it? */
async function goesOnFrom({ db }: Access, id: number, from: number): Promise<boolean> {
  const { rows } = await sql`
    with recursive line as (
      select id, parent from chat_message where id = ${id} union select above.id, above.parent from chat_message above join line on above.id = line.parent
    ) select from line where id = ${from}`.execute(db);
  return rows.length > 0;
}
