import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { Fault } from '#core/fault';
import { unknownThing } from '#http/noun-route';
import type { Access, Store } from '#store/open';

export interface Chat {
  readonly id: string;
  readonly owner: number;
  readonly title: string;
  readonly folder: string | null;
  readonly mode: 'chat' | 'code' | 'prose';
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

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
export type ChatText = Partial<Pick<Chat, 'title' | 'folder' | 'mode'>>;

export interface ChatStore {
  /** The newest first, those behind `before`. */
  list(userId: number, wanted: ChatsWanted): Promise<readonly Chat[]>;
  /** @throws Fault `not-found` for another's and for one that is not there */
  one(userId: number, id: string): Promise<Chat>;
  /** In the order in which they came. @throws Fault `not-found` */
  messages(userId: number, id: string): Promise<readonly ChatMessage[]>;
  /** @throws Fault `conflict` for an id that is taken, `too-large` */
  add(userId: number, chat: ChatText & { readonly id?: string }, messages: readonly NewMessage[]): Promise<Chat>;
  /** The same; but a chat of the user with this id gets the messages in place of its own. */
  put(userId: number, chat: ChatText & { readonly id: string }, messages: readonly NewMessage[]): Promise<Chat>;
  /** @throws Fault `not-found` */
  change(userId: number, id: string, text: ChatText): Promise<Chat>;
  /** @throws Fault `not-found` */
  remove(userId: number, id: string): Promise<Chat>;
  /** A copy of a chat, for a user with this address. @throws Fault `not-found` */
  copy(userId: number, id: string, email: string): Promise<Chat>;
  /** Adds messages, each behind the one before it; the first one behind `parent`, or behind the last one that there is. @throws Fault `not-found`, `too-large` */
  append(userId: number, id: string, messages: readonly NewMessage[], parent?: number | null): Promise<readonly ChatMessage[]>;
  /** @throws Fault `not-found` */
  changeMessage(userId: number, id: string, messageId: number, change: Partial<NewMessage>): Promise<ChatMessage>;
  /** A message with all that goes on from it. @throws Fault `not-found` */
  removeMessage(userId: number, id: string, messageId: number): Promise<ChatMessage>;
}

export interface ChatsWanted {
  /** In the title or in a message. */
  readonly query?: string | undefined;
  readonly folder?: string | undefined;
  /** Messages are not looked through. */
  readonly titlesOnly?: boolean;
  readonly before?: { readonly at: Date; readonly id: string } | undefined;
  readonly limit: number;
}

/** Most chats of a user, messages of a chat, and bytes of its messages. */
export const [mostChats, mostMessages] = [10_000, 10_000];
const mostBytes = 16_777_216;

const chatColumns = sql`id, user_id as owner, title, folder, mode, date_trunc('milliseconds', created_at) as "createdAt", date_trunc('milliseconds', updated_at) as "updatedAt"`;
const messageColumns = sql`id, parent, is_user as "isUser", message, model, request_id as "requestId", at, more`;

export function openChats(store: Store): ChatStore {
  const one = async (userId: number, id: string, { db }: Pick<Access, 'db'> = store, lock = sql``): Promise<Chat> => {
    const { rows } = await sql<Chat>`select ${chatColumns} from chat where id = ${id} and user_id = ${userId} ${lock}`.execute(db);
    return known(rows);
  };
  const locked = (userId: number, id: string, inside: Access) => one(userId, id, inside, sql`for update`);
  return {
    async list(userId, { query, folder = null, titlesOnly = false, before, limit }) {
      const pattern = query === undefined ? null : `%${query.replaceAll(/[\\%_]/g, '\\$&')}%`;
      const { rows } = await sql<Chat>`
        select ${chatColumns} from chat where user_id = ${userId} and (${folder}::text is null or folder = ${folder}::text)
          and (${pattern}::text is null or title ilike ${pattern}::text
            or (not ${titlesOnly}::boolean and exists (select from chat_message where chat_id = chat.id and message ilike ${pattern}::text)))
          and (${before?.at ?? null}::timestamptz is null
            or (date_trunc('milliseconds', updated_at), id) < (${before?.at ?? null}::timestamptz, ${before?.id ?? null}::uuid))
        order by date_trunc('milliseconds', updated_at) desc, id desc limit ${limit}`.execute(store.db);
      return rows;
    },
    one,
    async messages(userId, id) {
      await one(userId, id);
      return messagesOf(id, store);
    },
    add: (userId, chat, messages) => store.transaction((inside) => added(inside, userId, chat, messages)),
    put: (userId, { id, ...text }, messages) =>
      store.transaction(async (inside) => {
        const { rows } = await sql<Chat>`select ${chatColumns} from chat where id = ${id} and user_id = ${userId} for update`.execute(inside.db);
        if (!rows[0]) return added(inside, userId, { id, ...text }, messages).catch(asUnknown);
        await sql`delete from chat_message where chat_id = ${rows[0].id}`.execute(inside.db);
        await insert(inside, userId, rows[0].id, messages, null);
        return changed(inside, rows[0], text);
      }),
    change: (userId, id, text) => store.transaction(async (inside) => changed(inside, await locked(userId, id, inside), text)),
    async remove(userId, id) {
      const { rows } = await sql<Chat>`delete from chat where id = ${id} and user_id = ${userId} returning ${chatColumns}`.execute(store.db);
      return known(rows);
    },
    copy: (userId, id, email) =>
      store.transaction(async (inside) => {
        const chat = await one(userId, id, inside);
        const { rows } = await sql<{ id: number }>`
          select id from users where lower(email) = lower(${email}) and removed_at is null`.execute(inside.db);
        const [reader] = rows;
        if (!reader) throw new Fault('not-found', 'email: there is no such user.', { field: 'email' });
        const copy = await made(inside, reader.id, { title: `Copy of ${chat.title}`.slice(0, longestTitle), mode: chat.mode });
        await copyMessages(inside, await messagesOf(id, inside), copy);
        return copy;
      }),
    append: (userId, id, messages, parent) =>
      store.transaction(async (inside) => {
        const chat = await locked(userId, id, inside);
        const behind = parent === undefined ? await lastOf(inside, id) : parent;
        if (behind !== null && parent !== undefined) await hasMessage(inside, id, behind);
        const rows = await insert(inside, userId, id, messages, behind);
        await changed(inside, chat, {});
        return rows;
      }),
    changeMessage: (userId, id, messageId, { message = null, isUser = null }) =>
      store.transaction(async (inside) => {
        const chat = await locked(userId, id, inside);
        const { rows } = await sql<ChatMessage>`
          update chat_message set message = coalesce(${message}, message), is_user = coalesce(${isUser}::boolean, is_user),
            bytes = bytes + coalesce(octet_length(${message}::text) - octet_length(message), 0)
          where id = ${messageId} and chat_id = ${id} returning ${messageColumns}`.execute(inside.db);
        await withinBounds(inside, id);
        await changed(inside, chat, {});
        return known(rows, 'message');
      }),
    removeMessage: (userId, id, messageId) =>
      store.transaction(async (inside) => {
        const chat = await locked(userId, id, inside);
        const { rows } = await sql<ChatMessage>`delete from chat_message where id = ${messageId} and chat_id = ${id} returning ${messageColumns}`.execute(
          inside.db,
        );
        await changed(inside, chat, {});
        return known(rows, 'message');
      }),
  };
}

async function messagesOf(id: string, { db }: Pick<Access, 'db'>): Promise<readonly ChatMessage[]> {
  const { rows } = await sql<ChatMessage>`select ${messageColumns} from chat_message where chat_id = ${id} order by id`.execute(db);
  return rows;
}

/** An id that another user's chat has is not there. */
function asUnknown(error: unknown): never {
  throw isTaken(error) ? new Fault('not-found', 'Session not found') : error;
}

/** Is it that another chat has the id? */
export const isTaken = (error: unknown): boolean => error instanceof Fault && error.code === 'conflict' && error.details.field === 'session_id';

async function added(inside: Access, userId: number, chat: ChatText & { readonly id?: string }, messages: readonly NewMessage[]): Promise<Chat> {
  const one = await made(inside, userId, chat);
  await insert(inside, userId, one.id, messages, null);
  return one;
}

async function made(
  inside: Access,
  userId: number,
  { id = randomUUID(), title = 'New Chat', folder = null, mode = 'chat' }: ChatText & { id?: string },
): Promise<Chat> {
  await sql`select from users where id = ${userId} for update`.execute(inside.db); // two requests at once make no more than one may
  const { rows: count } = await sql<{ chats: number }>`select count(*)::int as chats from chat where user_id = ${userId}`.execute(inside.db);
  if (count[0]!.chats >= mostChats) throw new Fault('conflict', `A user has at most ${mostChats} chats: delete one first.`);
  const { rows } = await sql<Chat>`
    insert into chat (id, user_id, title, folder, mode) select ${id}, id, ${title}, ${folder}, ${mode} from users where id = ${userId} and removed_at is null
    on conflict (id) do nothing returning ${chatColumns}`.execute(inside.db);
  if (!rows[0]) throw new Fault('conflict', 'session_id is that of another chat.', { field: 'session_id' });
  return rows[0];
}

/** Characters. */
export const longestTitle = 200;

const session = 'chat session';

function known<Row>([row]: readonly Row[], what = session): Row {
  if (!row) throw what === session ? new Fault('not-found', 'Session not found') : unknownThing(what);
  return row;
}

async function changed({ db }: Access, { id }: Chat, { title, folder, mode }: ChatText): Promise<Chat> {
  const moved = folder === undefined ? sql`folder` : sql`${folder}::text`;
  const { rows } = await sql<Chat>`
    update chat set title = coalesce(${title ?? null}, title), folder = ${moved}, mode = coalesce(${mode ?? null}, mode), updated_at = clock_timestamp()
    where id = ${id} returning ${chatColumns}`.execute(db);
  return known(rows);
}

/** Writes messages in a row, each behind the one before it. */
async function insert(inside: Access, userId: number, chatId: string, messages: readonly NewMessage[], parent: number | null): Promise<readonly ChatMessage[]> {
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
    select new_id, ${chatId}, ${userId}, coalesce(lag(new_id) over (order by place), ${parent}::bigint), is_user, message, model, request_id, more, bytes from given
    returning ${messageColumns}`.execute(inside.db);
  await withinBounds(inside, chatId);
  return rows.toSorted((a, b) => a.id - b.id);
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

async function hasMessage({ db }: Access, chatId: string, messageId: number): Promise<void> {
  const { rows } = await sql`select from chat_message where chat_id = ${chatId} and id = ${messageId}`.execute(db);
  if (rows.length === 0) throw new Fault('not-found', 'parent: there is no such message in the chat.', { field: 'parent' });
}

/** With their branches. */
async function copyMessages(inside: Access, messages: readonly ChatMessage[], { id, owner }: Chat): Promise<void> {
  await insert(inside, owner, id, messages, null);
  const copies = (await sql<{ id: number }>`select id from chat_message where chat_id = ${id} order by id`.execute(inside.db)).rows;
  const ids = new Map(messages.map((message, at) => [message.id, copies[at]!.id]));
  const parents = messages.map(({ parent }) => (parent === null ? null : (ids.get(parent) ?? null)));
  await sql`update chat_message set parent = given.parent from unnest(${copies.map((copy) => copy.id)}::bigint[], ${parents}::bigint[]) as given (id, parent)
    where chat_message.id = given.id`.execute(inside.db);
}
