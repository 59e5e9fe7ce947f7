import { Type } from 'typebox';
import type { Caller } from '#core/context';
import { idIn, nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import { ownerOf, ownerQuery } from '../owner.ts';
import { badCursor, cursorOf, pageOf, placeOf } from '../pagination.ts';
import { longestTitle, type Chat, type ChatMessage, type ChatStore } from './store.ts';

const name = (maxLength: number) =>
  Type.String({ minLength: 1, maxLength, pattern: '^[^\\p{C}]*$', expected: 'must be a name, without control characters in it' });
const orNull = <Schema extends ReturnType<typeof Type.String> | ReturnType<typeof Type.Integer>>(schema: Schema) => Type.Union([schema, Type.Null()]);
const mode = Type.Enum(['chat', 'code', 'prose']);

const ChatText = Type.Object(
  { title: Type.Optional(name(longestTitle)), folder: Type.Optional(orNull(name(100))), mode: Type.Optional(mode) },
  { additionalProperties: false },
);

const ChatObject = Type.Object({
  id: Type.String(),
  title: Type.String(),
  folder: orNull(Type.String()),
  mode,
  owner: Type.Integer(),
  right: Type.Literal('owner'),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});

const speaker = Type.Enum(['me', 'gpt']);
const text = Type.String({ maxLength: 4_194_304, pattern: '^[^\\u0000]*$', expected: 'must be a text without the character U+0000' });

const MessageObject = Type.Object({
  id: Type.Integer(),
  parent: Type.Union([Type.Integer(), Type.Null()], { description: 'The message that it goes on from; several with one parent are branches.' }),
  user: speaker,
  message: Type.String(),
  model: orNull(Type.String()),
  requestId: orNull(Type.String()),
  at: Type.String(),
});

const shown = ({ createdAt, updatedAt, ...chat }: Chat) => ({
  ...chat,
  right: 'owner' as const,
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
});
const shownMessage = ({ id, parent, isUser, message, model, requestId, at }: ChatMessage) => ({
  id,
  parent,
  user: isUser ? ('me' as const) : ('gpt' as const),
  message,
  model,
  requestId,
  at: at.toISOString(),
});

/** The UUID in a path. @throws Fault `not-found` where it is none */
function chatIn({ id = '' }: Readonly<Record<string, string>>): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) throw unknownThing('chat session');
  return id.toLowerCase();
}

/** A user's own chats. What was said in them administrators do not see. */
export function chatRoutes(chats: ChatStore): readonly NounRoute[] {
  const root = '/server/mine/chats';
  const common = { scope: 'query', owner: 'caller', output: ChatObject } as const;
  const query = Type.Object(ownerQuery, { additionalProperties: false });
  const isOwn = (caller: Caller, owner: number) => caller.userId === owner;
  return [
    nounRoute({
      ...common,
      method: 'GET',
      path: root,
      summary: 'Lists your chats, those that changed last first.',
      query: Type.Object(
        {
          ...ownerQuery,
          query: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: 'Only those that have this in their title or in a message.' })),
          folder: Type.Optional(Type.String({ minLength: 1, maxLength: 100, description: 'Only those in this folder.' })),
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: 'At most so many, 50 by default.' })),
          cursor: Type.Optional(Type.String({ maxLength: 500, description: 'nextCursor of the page before.' })),
        },
        { additionalProperties: false },
      ),
      output: Type.Object({ items: Type.Array(ChatObject), nextCursor: orNull(Type.String()) }),
      async answer({ caller, query: { query: words, folder, limit = 50, cursor, ...whose } }) {
        const owner = ownerOf(caller, whose);
        const wanted = { query: words?.replaceAll('\0', ''), folder: folder?.replaceAll('\0', ''), before: placeBefore(cursor), limit: limit + 1 };
        const found = await chats.list(owner, { ...wanted, titlesOnly: !isOwn(caller, owner) });
        return pageOf(found.map(shown), limit, ({ updatedAt, id }) => cursorOf('chats', [updatedAt, id]));
      },
    }),
    nounRoute({
      ...common,
      method: 'POST',
      path: root,
      summary: 'Makes a chat.',
      query,
      input: ChatText,
      inputMayBeLeftOut: true,
      makes: true,
      answer: async ({ caller, query: whose, input }) => shown(await chats.add(ownerOf(caller, whose), input, [])),
    }),
    nounRoute({
      ...common,
      method: 'GET',
      path: `${root}/:id`,
      summary: 'One of your chats, with its messages.',
      query,
      output: Type.Object({ ...ChatObject.properties, messages: Type.Array(MessageObject) }),
      async answer({ caller, params, query: whose }) {
        const owner = ownerOf(caller, whose);
        const chat = shown(await chats.one(owner, chatIn(params)));
        return { ...chat, messages: isOwn(caller, owner) ? (await chats.messages(owner, chat.id)).map(shownMessage) : [] };
      },
    }),
    nounRoute({
      ...common,
      method: 'PUT',
      path: `${root}/:id`,
      summary: 'Changes title, folder and mode of a chat; what is left out stays.',
      query,
      input: ChatText,
      answer: async ({ caller, params, query: whose, input }) => shown(await chats.change(ownerOf(caller, whose), chatIn(params), input)),
    }),
    nounRoute({
      ...common,
      method: 'DELETE',
      path: `${root}/:id`,
      summary: 'Deletes one of your chats.',
      query,
      answer: async ({ caller, params, query: whose }) => shown(await chats.remove(ownerOf(caller, whose), chatIn(params))),
    }),
    ...messageRoutes(chats, `${root}/:id/messages`),
  ];
}

function messageRoutes(chats: ChatStore, root: string): readonly NounRoute[] {
  const common = { scope: 'query', owner: 'caller', output: MessageObject } as const;
  return [
    nounRoute({
      ...common,
      method: 'POST',
      path: root,
      summary: 'Adds a message to a chat, behind the last one or behind `parent`: another one behind the same is a branch.',
      input: Type.Object(
        { parent: Type.Optional(orNull(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }))), user: speaker, message: text },
        { additionalProperties: false },
      ),
      makes: true,
      async answer({ caller, params, input: { parent, user, message } }) {
        const [added] = await chats.append(caller.userId, chatIn(params), [{ isUser: user === 'me', message }], parent);
        return shownMessage(added!);
      },
    }),
    nounRoute({
      ...common,
      method: 'PATCH',
      path: `${root}/:message`,
      summary: 'Changes a message of a chat.',
      input: Type.Object({ user: Type.Optional(speaker), message: Type.Optional(text) }, { additionalProperties: false }),
      async answer({ caller, params, input: { user, message } }) {
        const change = { ...(user === undefined ? {} : { isUser: user === 'me' }), ...(message === undefined ? {} : { message }) };
        return shownMessage(await chats.changeMessage(caller.userId, chatIn(params), idIn(params, 'message', 'message'), change));
      },
    }),
    nounRoute({
      ...common,
      method: 'DELETE',
      path: `${root}/:message`,
      summary: 'Deletes a message of a chat, with all that goes on from it.',
      answer: async ({ caller, params }) => shownMessage(await chats.removeMessage(caller.userId, chatIn(params), idIn(params, 'message', 'message'))),
    }),
  ];
}

function placeBefore(cursor: string | undefined): { readonly at: Date; readonly id: string } | undefined {
  if (cursor === undefined) return undefined;
  const [at, id, ...rest] = placeOf('chats', cursor);
  const time = new Date(String(at));
  if (typeof at !== 'string' || typeof id !== 'string' || rest.length > 0 || !Number.isFinite(time.getTime()) || !/^[0-9a-f-]{36}$/.test(id)) throw badCursor();
  return { at: time, id };
}
