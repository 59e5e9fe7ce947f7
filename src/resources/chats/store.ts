import { randomUUID } from 'node:crypto';
import { sql, type RawBuilder } from 'kysely';
import { Fault } from '#core/fault';
import { allows, forgetGrants, includes, isGivenByName, levelOf, rightOf, type Reader, type Right } from '#store/grants';
import type { Access, Store } from '#store/open';
import {
  changedMessage,
  copyMessages,
  insert,
  messagesOf,
  pageOfMessages,
  removedMessage,
  type ChatMessage,
  type MessagePage,
  type NewMessage,
} from './messages.ts';

export interface Chat {
  readonly id: string;
  readonly owner: number;
  readonly title: string;
  readonly folder: string | null;
  readonly mode: 'chat' | 'code' | 'prose';
  readonly right: Right | 'owner';
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export type ChatText = Partial<Pick<Chat, 'title' | 'folder' | 'mode'>>;

export interface ChatStore {
  /** Those of a user and, unless only the user's own are wanted, those shared with them; the newest first, those behind `before`. */
  list(reader: Reader, wanted: ChatsWanted): Promise<readonly Chat[]>;
  /** @throws Fault `not-found` for one that the reader may not read, and for one that is not there */
  one(reader: Reader, id: string): Promise<Chat>;
  /** All, in the order in which they came. @throws Fault `not-found` */
  messages(reader: Reader, id: string): Promise<readonly ChatMessage[]>;
  /** Some of them, in that order: those behind the one with the id `after`. @throws Fault `not-found` */
  page(reader: Reader, id: string, asked: { readonly after: number; readonly limit: number }): Promise<MessagePage>;
  /** @throws Fault `conflict` for an id that is taken, `too-large` */
  add(userId: number, chat: ChatText & { readonly id?: string }, messages: readonly NewMessage[]): Promise<Chat>;
  /** The same; but a chat with this id that the reader may change gets the messages in place of its own. */
  put(reader: Reader, chat: ChatText & { readonly id: string }, messages: readonly NewMessage[]): Promise<Chat>;
  /** @throws Fault `not-found`; `forbidden` where the reader may only read it */
  change(reader: Reader, id: string, text: ChatText): Promise<Chat>;
  /** @throws Fault `not-found`; `forbidden` where it is another's */
  remove(reader: Reader, id: string): Promise<Chat>;
  /** A copy of a chat, for a user with this address. @throws Fault `not-found`, `conflict` where that user has as many as a user may have, or may be given */
  copy(reader: Reader, id: string, email: string): Promise<Chat>;
  /** Adds messages, each behind the one before it; the first one behind `parent`, or behind the last one that there is. @throws Fault as `change`, `too-large` */
  append(reader: Reader, id: string, messages: readonly NewMessage[], parent?: number | null): Promise<readonly ChatMessage[]>;
  /** @throws Fault as `change`; `invalid` for a parent that goes on from the message */
  changeMessage(reader: Reader, id: string, messageId: number, change: MessageChange): Promise<ChatMessage>;
  /** A message with all that goes on from it. @throws Fault as `change` */
  removeMessage(reader: Reader, id: string, messageId: number): Promise<ChatMessage>;
  /** The number by which grants know it, for who may say who else reads it. @throws Fault `not-found`, `forbidden` */
  administered(reader: Reader, id: string): Promise<number>;
  /** Locks it, within a transaction. @returns its owner, undefined where it is not there */
  lock(inside: Access, number: number): Promise<number | undefined>;
  idOf(inside: Access, number: number): Promise<string>;
}

export type MessageChange = Partial<Pick<ChatMessage, 'isUser' | 'message' | 'parent'>>;

export interface ChatsWanted {
  /** In the title, or in a message of a chat of the user's own or one that was given to them by name. */
  readonly query?: string | undefined;
  readonly folder?: string | undefined;
  /** Messages are not looked through. */
  readonly titlesOnly?: boolean;
  readonly ownOnly?: boolean;
  readonly before?: { readonly at: Date; readonly id: string } | undefined;
  readonly limit: number;
}

/** As `grants.kind`. */
export const kind = 'chat';

/** Most chats of a user. */
export const mostChats = 10_000;
/** Of those, most that others have given, and bytes of their messages: nobody fills another's account. */
const [mostGiven, mostGivenBytes] = [1000, 67_108_864];

type Row = Omit<Chat, 'right'> & { readonly level: number };

const thing = { id: sql.ref('chat.number'), owner: sql.ref('chat.user_id') };
const columnsFor = (reader: Reader) => sql`chat.id, chat.user_id as owner, title, folder, mode, ${levelOf(kind, reader, thing)} as level,
  date_trunc('milliseconds', chat.created_at) as "createdAt", date_trunc('milliseconds', chat.updated_at) as "updatedAt"`;
const readable = (reader: Reader) => allows(kind, 'read', reader, thing);

export function openChats(store: Store): ChatStore {
  const found = async (reader: Reader, id: string, { db }: Pick<Access, 'db'> = store, lock = sql``): Promise<Chat | undefined> => {
    const { rows } = await sql<Row>`select ${columnsFor(reader)} from chat where id = ${id} and ${readable(reader)} ${lock}`.execute(db);
    return rows.map(seen)[0];
  };
  const one = async (reader: Reader, id: string, right: Right = 'read', inside?: Access): Promise<Chat> => {
    const chat = await found(reader, id, inside, inside && right !== 'read' ? sql`for update` : sql``);
    if (!chat) throw unknownSession();
    if (!includes(chat.right, right)) throw new Fault('forbidden', denied[right]);
    return chat;
  };
  /** Changes a chat that is locked, for a reader who may. */
  const changing = <Made>(reader: Reader, id: string, work: (inside: Access, chat: Chat) => Promise<Made>): Promise<Made> =>
    store.transaction(async (inside) => {
      const chat = await one(reader, id, 'edit', inside);
      const made = await work(inside, chat);
      await changed(inside, reader, id, {});
      return made;
    });
  return {
    list: (reader, wanted) => listed(store, reader, wanted),
    one: (reader, id) => one(reader, id),
    async messages(reader, id) {
      await one(reader, id);
      return messagesOf(id, store);
    },
    async page(reader, id, asked) {
      await one(reader, id);
      return pageOfMessages(id, asked, store);
    },
    add: (userId, chat, messages) => store.transaction((inside) => added(inside, userId, chat, messages)),
    put: (reader, { id, ...text }, messages) =>
      store.transaction(async (inside) => {
        const isNew = !(await found(reader, id, inside));
        const chat = isNew ? await added(inside, reader.userId, { id, ...text }, messages).catch(unlessTaken) : undefined;
        if (chat) return chat; // else it was there, or another request has made it meanwhile
        const { owner } = await one(reader, id, 'edit', inside);
        await sql`delete from chat_message where chat_id = ${id}`.execute(inside.db);
        await insert(inside, owner, id, messages, null);
        return changed(inside, reader, id, text);
      }),
    change: (reader, id, text) =>
      store.transaction(async (inside) => {
        await one(reader, id, 'edit', inside);
        return changed(inside, reader, id, text);
      }),
    remove: (reader, id) =>
      store.transaction(async (inside) => {
        const chat = await one(reader, id, 'read', inside);
        if (chat.right !== 'owner') throw new Fault('forbidden', 'Only its owner deletes a chat.');
        const { rows } = await sql<{ number: number }>`delete from chat where id = ${id} returning number`.execute(inside.db);
        if (rows.length === 0) throw unknownSession(); // deleted meanwhile
        await forgetGrants(inside, kind, rows.map(({ number }) => number)); // prettier-ignore
        return chat;
      }),
    copy: (reader, id, email) =>
      store.transaction(async (inside) => {
        const { title, mode } = await one(reader, id, 'read', inside);
        const { rows } = await sql<{ id: number }>`
          select id from users where lower(email) = lower(${email}) and removed_at is null`.execute(inside.db);
        if (!rows[0]) throw new Fault('not-found', 'email: there is no such user.', { field: 'email' });
        const given = rows[0].id === reader.userId ? {} : { givenBy: reader.userId };
        const copy = await made(inside, rows[0].id, { title: Array.from(`Copy of ${title}`).slice(0, longestCopiedTitle).join(''), mode, ...given });
        await copyMessages(inside, await messagesOf(id, inside), copy);
        await withinGiven(inside, rows[0].id);
        return copy;
      }),
    append: (reader, id, messages, parent) => changing(reader, id, (inside, { owner }) => insert(inside, owner, id, messages, parent)),
    changeMessage: (reader, id, messageId, change) => changing(reader, id, (inside) => changedMessage(inside, id, messageId, change)),
    removeMessage: (reader, id, messageId) => changing(reader, id, (inside) => removedMessage(inside, id, messageId)),
    ...numbered(store, one),
  };
}

/** Chats by the numbers that grants know. */
function numbered(
  store: Store,
  one: (reader: Reader, id: string, right: Right, inside: Access) => Promise<Chat>,
): Pick<ChatStore, 'administered' | 'lock' | 'idOf'> {
  return {
    administered: (reader, id) =>
      store.transaction(async (inside) => {
        await one(reader, id, 'admin', inside);
        const { rows } = await sql<{ number: number }>`select number from chat where id = ${id}`.execute(inside.db);
        return rows[0]!.number;
      }),
    async lock({ db }, number) {
      const { rows } = await sql<{ owner: number }>`select user_id as owner from chat where number = ${number} for update`.execute(db);
      return rows[0]?.owner;
    },
    async idOf({ db }, number) {
      const { rows } = await sql<{ id: string }>`select id from chat where number = ${number}`.execute(db);
      return rows[0]!.id;
    },
  };
}

async function listed(
  { db }: Store,
  reader: Reader,
  { query, folder, titlesOnly = false, ownOnly = false, before, limit }: ChatsWanted,
): Promise<readonly Chat[]> {
  const pattern = query === undefined ? null : `%${query.replaceAll(/[\\%_]/g, '\\$&')}%`;
  const isOwn = sql<boolean>`chat.user_id = ${reader.userId}::bigint`;
  const whose: RawBuilder<boolean> = ownOnly ? isOwn : readable(reader);
  const { rows } = await sql<Row>`
    select ${columnsFor(reader)} from chat where ${whose} and (${folder ?? null}::text is null or folder = ${folder ?? null}::text)
      and (${pattern}::text is null or title ilike ${pattern}::text
        or (not ${titlesOnly}::boolean and (${isOwn} or ${isGivenByName(kind, reader, thing)}) and exists (select from chat_message where chat_id = chat.id and message ilike ${pattern}::text)))
      and (${before?.at ?? null}::timestamptz is null
        or (date_trunc('milliseconds', updated_at), id) < (${before?.at ?? null}::timestamptz, ${before?.id ?? null}::uuid))
    order by date_trunc('milliseconds', updated_at) desc, id desc limit ${limit}`.execute(db);
  return rows.map(seen);
}

const seen = ({ level, ...row }: Row): Chat => ({ ...row, right: rightOf(level) });

const denied: Readonly<Record<Right, string>> = {
  read: 'You may not read this chat.',
  edit: 'This chat is shared with you to be read, not to be changed.',
  admin: 'You may use this chat, and not say who else may.',
};

const unknownSession = () => new Fault('not-found', 'Session not found');

function unlessTaken(error: unknown): undefined {
  if (!isTaken(error)) throw error;
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
  { id = randomUUID(), title = 'New Chat', folder = null, mode = 'chat', givenBy }: ChatText & { readonly id?: string; readonly givenBy?: number },
): Promise<Chat> {
  await sql`select from users where id = ${userId} for no key update`.execute(inside.db); // two requests at once make no more than one may
  const { rows: count } = await sql<{ chats: number }>`select count(*)::int as chats from chat where user_id = ${userId}`.execute(inside.db);
  if (count[0]!.chats >= mostChats) throw givenBy === undefined ? new Fault('conflict', `A user has at most ${mostChats} chats: delete one first.`) : isFull();
  const { rows } = await sql<Row>`
    insert into chat (id, user_id, title, folder, mode, given_by)
    select ${id}, id, ${title}, ${folder}, ${mode}, ${givenBy ?? null}::bigint from users where id = ${userId} and removed_at is null
    on conflict (id) do nothing returning ${columnsFor({ userId, teamIds: [] })}`.execute(inside.db);
  if (!rows[0]) throw new Fault('conflict', 'session_id is that of another chat.', { field: 'session_id' });
  return seen(rows[0]);
}

/** May a user be given what they have now of others? @throws Fault `conflict` */
async function withinGiven({ db }: Access, userId: number): Promise<void> {
  const { rows } = await sql<{ chats: number; bytes: number }>`
    select count(distinct chat.id)::int as chats, coalesce(sum(bytes), 0)::float8 as bytes from chat left join chat_message on chat_id = chat.id
    where chat.user_id = ${userId} and given_by is not null`.execute(db);
  if (rows[0]!.chats > mostGiven || rows[0]!.bytes > mostGivenBytes) throw isFull();
}

const isFull = () => new Fault('conflict', 'email: this user cannot be given more chats.', { field: 'email' });

/** Characters. */
export const longestTitle = 200;
/** Copies are made by the native interface, which has no longer ones. */
const longestCopiedTitle = 50;

async function changed({ db }: Access, reader: Reader, id: string, { title, folder, mode }: ChatText): Promise<Chat> {
  const moved = folder === undefined ? sql`folder` : sql`${folder}::text`;
  const { rows } = await sql<Row>`
    update chat set title = coalesce(${title ?? null}, title), folder = ${moved}, mode = coalesce(${mode ?? null}, mode), updated_at = clock_timestamp()
    where id = ${id} returning ${columnsFor(reader)}`.execute(db);
  return seen(rows[0]!);
}
