import { Type } from 'typebox';
import type { Caller } from '#core/context';
import { idIn, nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import { closed, nullable, optionalOrNull, shownAs } from '#http/schemas';
import { lineField, multiline } from '../text-fields.ts';
import { ownerOf, ownerQuery, readerOf } from '../owner.ts';
import { badCursor, cursorOf, idBefore, instantAt, pageOf, pageQuery, pageSchema, placeOf } from '../pagination.ts';
import { grantRoutes, type Sharing } from '../sharing.ts';
import type { ChatMessage } from './messages.ts';
import { longestTitle, type ChatStore } from './store.ts';

const mode = Type.Enum(['chat', 'code', 'prose']);

const ChatText = closed({ title: Type.Optional(lineField(longestTitle, 'a title')), folder: optionalOrNull(lineField(100)), mode: Type.Optional(mode) });

const ChatObject = Type.Object({
  id: Type.String(),
  title: Type.String(),
  folder: nullable(Type.String()),
  mode,
  owner: Type.Integer(),
  right: Type.Enum(['read', 'edit', 'admin', 'owner'], { description: 'What the caller may do with it.' }),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});

const speaker = Type.Enum(['me', 'gpt']);
const text = Type.String({ maxLength: 4_194_304, ...multiline });

const MessageObject = Type.Object({
  id: Type.Integer(),
  parent: nullable(Type.Integer(), { description: 'The message that it goes on from; several with one parent are branches.' }),
  user: speaker,
  message: Type.String(),
  model: nullable(Type.String()),
  requestId: nullable(Type.String()),
  at: Type.String(),
});

const shown = shownAs(ChatObject);
const messageShown = shownAs(MessageObject);
const shownMessage = ({ isUser, ...message }: ChatMessage) => messageShown({ ...message, user: isUser ? 'me' : 'gpt' });

/** The UUID in a path. @throws Fault `not-found` where it is none */
function chatIn({ id = '' }: Readonly<Record<string, string>>): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) throw unknownThing('chat session');
  return id.toLowerCase();
}

/** Chats of a user, and those shared with them. What was said in them administrators do not see. */
export function chatRoutes(chats: ChatStore, sharing: Sharing): readonly NounRoute[] {
  return [
    ...listRoutes(chats),
    ...oneRoutes(chats),
    ...messageRoutes(chats),
    ...grantRoutes({
      sharing,
      scope: 'query',
      path: `${root}/:id`,
      what: 'chat',
      administered: (caller, params, whose) => chats.administered(readerOf(caller, whose), chatIn(params)),
    }),
  ];
}

const root = '/server/mine/chats';
const common = { scope: 'query', owner: 'caller', output: ChatObject } as const;
const OwnerQuery = closed(ownerQuery);
/** Does the caller see the messages, and not only that there are chats? */
const isOwn = (caller: Caller, whose: { readonly owner?: number | undefined }) => ownerOf(caller, whose) === caller.userId;

function listRoutes(chats: ChatStore): readonly NounRoute[] {
  return [
    nounRoute('GET', root, {
      ...common,
      summary: 'Lists your chats and those shared with you, those that changed last first.',
      query: closed({
        ...ownerQuery,
        query: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: 'Only those that have this in their title or in a message.' })),
        folder: Type.Optional(Type.String({ minLength: 1, maxLength: 100, description: 'Only those in this folder.' })),
        ...pageQuery,
      }),
      output: pageSchema(ChatObject),
      async answer({ caller, query: { query: words, folder, limit = 50, cursor, ...whose } }) {
        const wanted = { query: words?.replaceAll('\0', ''), folder: folder?.replaceAll('\0', ''), before: placeBefore(cursor), limit: limit + 1 };
        const found = await chats.list(readerOf(caller, whose), { ...wanted, titlesOnly: !isOwn(caller, whose) });
        return pageOf(found.map(shown), limit, ({ updatedAt, id }) => cursorOf('chats', [updatedAt, id]));
      },
    }),
    nounRoute('POST', root, {
      ...common,
      summary: 'Makes a chat.',
      query: OwnerQuery,
      input: ChatText,
      inputMayBeLeftOut: true,
      makes: true,
      answer: async ({ caller, query: whose, input }) => shown(await chats.add(ownerOf(caller, whose), input, [])),
    }),
  ];
}

const mostShown = 200;

function oneRoutes(chats: ChatStore): readonly NounRoute[] {
  return [
    nounRoute('GET', `${root}/:id`, {
      ...common,
      summary: 'A chat with its messages, page by page: about a megabyte of them.',
      query: closed({
        ...ownerQuery,
        ...pageQuery,
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: mostShown, description: `Most messages, ${mostShown} by default.` })),
      }),
      output: Type.Object({ ...ChatObject.properties, messages: Type.Array(MessageObject), nextCursor: nullable(Type.String()) }),
      async answer({ caller, params, query: { limit = mostShown, cursor, ...whose } }) {
        const reader = readerOf(caller, whose);
        const id = chatIn(params);
        const after = idBefore('messages', cursor);
        const chat = shown(await chats.one(reader, id));
        if (!isOwn(caller, whose)) return { ...chat, messages: [], nextCursor: null };
        const { messages, hasMore } = await chats.page(reader, id, { after, limit });
        return { ...chat, messages: messages.map(shownMessage), nextCursor: hasMore ? cursorOf('messages', [messages.at(-1)!.id]) : null };
      },
    }),
    nounRoute('PUT', `${root}/:id`, {
      ...common,
      summary: 'Changes title, folder and mode of a chat; what is left out stays.',
      query: OwnerQuery,
      input: ChatText,
      answer: async ({ caller, params, query: whose, input }) => shown(await chats.change(readerOf(caller, whose), chatIn(params), input)),
    }),
    nounRoute('DELETE', `${root}/:id`, {
      ...common,
      summary: 'Deletes one of your chats.',
      query: OwnerQuery,
      answer: async ({ caller, params, query: whose }) => shown(await chats.remove(readerOf(caller, whose), chatIn(params))),
    }),
  ];
}

const parent = optionalOrNull(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'null: none, it begins a chat.' }));

function messageRoutes(chats: ChatStore): readonly NounRoute[] {
  const ofMessages = { ...common, query: OwnerQuery, output: MessageObject } as const;
  const path = `${root}/:id/messages`;
  /** An administrator is shown no more of it than they sent. */
  const told = (caller: Caller, whose: { readonly owner?: number | undefined }, message: ChatMessage, sent = '') =>
    shownMessage(isOwn(caller, whose) ? message : { ...message, message: sent });
  return [
    nounRoute('POST', path, {
      ...ofMessages,
      summary: 'Adds a message to a chat, behind the last one or behind `parent`: another one behind the same is a branch.',
      input: closed({ parent, user: speaker, message: text }),
      makes: true,
      async answer({ caller, params, query: whose, input: { parent: behind, user, message } }) {
        const [added] = await chats.append(readerOf(caller, whose), chatIn(params), [{ isUser: user === 'me', message }], behind);
        return shownMessage(added!);
      },
    }),
    nounRoute('PATCH', `${path}/:message`, {
      ...ofMessages,
      summary: 'Changes a message of a chat; with another `parent` it moves there, with all that goes on from it.',
      input: closed({ parent, user: Type.Optional(speaker), message: Type.Optional(text) }),
      async answer({ caller, params, query: whose, input: { parent: behind, user, message } }) {
        const change = {
          ...(behind === undefined ? {} : { parent: behind }),
          ...(user === undefined ? {} : { isUser: user === 'me' }),
          ...(message === undefined ? {} : { message }),
        };
        const changed = await chats.changeMessage(readerOf(caller, whose), chatIn(params), idIn(params, 'message', 'message'), change);
        return told(caller, whose, changed, message);
      },
    }),
    nounRoute('DELETE', `${path}/:message`, {
      ...ofMessages,
      summary: 'Deletes a message of a chat, with all that goes on from it.',
      answer: async ({ caller, params, query: whose }) =>
        told(caller, whose, await chats.removeMessage(readerOf(caller, whose), chatIn(params), idIn(params, 'message', 'message'))),
    }),
  ];
}

function placeBefore(cursor: string | undefined): { readonly at: Date; readonly id: string } | undefined {
  if (cursor === undefined) return undefined;
  const [at, id, ...rest] = placeOf('chats', cursor);
  if (typeof id !== 'string' || rest.length > 0 || !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) throw badCursor();
  return { at: instantAt(at), id };
}
