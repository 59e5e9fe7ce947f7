import { Type, type Static } from 'typebox';
import { Fault, invalid, missing } from '#core/fault';
import { writeLargeJson } from '#kit/json/large';
import { nounRoute, type NounRoute } from '#http/noun-route';
import { optionalOrNull } from '#http/schemas';
import { cutText, multiline } from '../text-fields.ts';
import { mostMessages, type ChatMessage, type NewMessage } from './messages.ts';
import { isTaken, mostChats, type ChatStore } from './store.ts';

const isUuid = /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/;
const uuid = { pattern: isUuid.source, maxLength: 36, expected: 'must be a UUID' };
const sessionId = Type.String(uuid);
/** Clients make titles of the beginnings of messages: with line breaks, and with half a character where they cut one. */
const titleText = { maxLength: 50, pattern: cutText, expected: 'must be a title, without control characters in it' };
const title = Type.Optional(Type.String(titleText));

const ofUser = ['me', 'user', 'human'];
const ofModel = ['gpt', 'ai', 'assistant', 'model'];

const Message = Type.Object({
  user: Type.Enum([...ofUser, ...ofModel], { description: '`me` or `gpt`; the others mean the same.' }),
  message: Type.String({ ...multiline }),
});
const Messages = Type.Array(Message, { maxItems: mostMessages });
const jsonData = optionalOrNull(Messages);

const Encoded = (what: string) => Type.Object({ response: Type.String({ description: `JSON of \`data\`, as a text: ${what}.` }), data: Type.Unknown() });
const said = Type.Object({ response: Type.String(), session_id: Type.Optional(Type.String()) });

export const nativeChatRoutes = (chats: ChatStore): readonly NounRoute[] => [...readingRoutes(chats), ...writingRoutes(chats)];

const common = { scope: 'query', owner: 'caller' } as const;

function readingRoutes(chats: ChatStore): readonly NounRoute[] {
  return [
    nounRoute('POST', '/user/get-chats', {
      ...common,
      summary: 'Your chats.',
      output: Encoded('the chats and the buttons that open them'),
      async answer({ caller }) {
        const found = await chats.list(caller, { ownOnly: true, limit: mostChats });
        return encoded({
          chats: found.map(({ id }) => ({ id, content: -1 })),
          buttons: found.map(({ id, title: content, mode }) => ({ key: id, content, mode_type: mode })),
        });
      },
    }),
    nounRoute('POST', '/user/get-chat-session', {
      ...common,
      summary: 'One of your chats, with its messages.',
      input: Type.Object({ session_id: sessionId }),
      output: Encoded('the session and its messages'),
      async answer({ caller, input: { session_id: id } }) {
        const messages = await chats.messages(caller, id.toLowerCase());
        const data = { session_id: id.toLowerCase(), content: messages.map(shown) };
        return { response: Buffer.from(await writeLargeJson(data)).toString('utf8'), data };
      },
    }),
  ];
}

function writingRoutes(chats: ChatStore): readonly NounRoute[] {
  return [
    nounRoute('POST', '/user/delete-chat-session', {
      ...common,
      summary: 'Deletes one of your chats.',
      input: Type.Object({ session_id: sessionId }),
      answer: async ({ caller, input }) => void (await chats.remove(caller, input.session_id.toLowerCase())),
    }),
    nounRoute('POST', '/user/create-chat-session', {
      ...common,
      summary: 'Makes a chat.',
      input: Type.Object({ title, json_data: jsonData, session_id: Type.Optional(Type.Unknown()) }),
      output: said,
      async answer({ caller, input: { title: name, json_data: messages, session_id: id } }) {
        const own = typeof id === 'string' && isUuid.test(id.slice(0, 40)) ? { id: id.toLowerCase() } : {};
        const add = (its: { readonly id?: string }) => chats.add(caller.userId, { ...its, ...titled(name) }, (messages ?? []).map(kept));
        const chat = await add(own).catch((error: unknown) => (isTaken(error) ? add({}) : Promise.reject(error)));
        return { response: 'Chat session created', session_id: chat.id };
      },
    }),
    nounRoute('POST', '/user/append-chat', {
      ...common,
      summary: 'Adds messages to a chat, or makes one of them.',
      input: Type.Object({
        chat_title: title,
        chats: Type.Optional(Type.Union([Type.Object({ chats: Messages }), Messages], { description: 'Messages, or an object that has them as `chats`.' })),
        session_id: optionalOrNull(sessionId, { description: 'Absent: a new chat is made.' }),
        message: Type.Optional(Type.Union([Message.properties.message, Message], { description: 'A single message.' })),
      }),
      output: said,
      async answer({ caller, input: { chat_title: name, chats: given, session_id: id, message } }) {
        if (given === undefined && message === undefined) throw missing('chats');
        const messages = [...messagesIn(given), ...(message === undefined ? [] : [typeof message === 'string' ? { user: 'me', message } : message])];
        if (typeof id === 'string') {
          await chats.append(caller, id.toLowerCase(), messages.map(kept));
          return { response: 'Chats updated', session_id: id.toLowerCase() };
        }
        const made = titled(name);
        if (!made.title) throw missing('chat_title');
        return { response: 'Chats updated', session_id: (await chats.add(caller.userId, made, messages.map(kept))).id };
      },
    }),
    nounRoute('POST', '/user/update-chat-session-json', {
      ...common,
      summary: 'Puts messages in the place of those of a chat, or makes it.',
      input: Type.Object({ session_id: sessionId, title, json_data: jsonData }),
      async answer({ caller, input: { session_id: id, title: name, json_data: messages } }) {
        await chats.put(caller, { id: id.toLowerCase(), ...titled(name) }, (messages ?? []).map(kept));
      },
    }),
    nounRoute('POST', '/user/update-chat-session-title', {
      ...common,
      summary: 'Gives a chat another title.',
      input: Type.Object({ session_id: sessionId, new_title: Type.String(titleText) }),
      async answer({ caller, input }) {
        const { title } = titled(input.new_title);
        if (title === undefined) throw invalid('new_title', 'must not be blank');
        await chats.change(caller, input.session_id.toLowerCase(), { title });
      },
    }),
    nounRoute('POST', '/user/copy-chat', {
      ...common,
      summary: 'Gives another user a copy of one of your chats.',
      input: Type.Object({ chat_id: sessionId, email: Type.String({ maxLength: 254, pattern: '^.{3}', expected: 'must be an e-mail address' }) }),
      answer: async ({ caller, input }) => void (await chats.copy(caller, input.chat_id.toLowerCase(), input.email)),
    }),
  ];
}

/** A title as one line. A blank one is as good as none. */
function titled(text = ''): { readonly title?: string } {
  const line = text
    .replaceAll(/\p{Cs}/gu, '')
    .replaceAll(/[\t\n\r\u2028\u2029]+/g, ' ')
    .trim();
  return line === '' ? {} : { title: line };
}

const encoded = (data: object) => ({ response: JSON.stringify(data), data });

const messagesIn = (given: Static<typeof Messages> | { readonly chats: Static<typeof Messages> } | undefined): Static<typeof Messages> =>
  given === undefined ? [] : Array.isArray(given) ? given : given.chats;

/** Bytes of what a client keeps with a message. */
const mostMore = 65_536;

/** What a message has beside its text comes back as it went in. */
function kept({ user, message, ...rest }: Static<typeof Message> & Readonly<Record<string, unknown>>): NewMessage {
  const more = Object.keys(rest).length > 0 ? JSON.stringify(rest) : null;
  if (more !== null && more.length > mostMore)
    throw new Fault('too-large', `A message has at most ${mostMore} characters beside its text.`, { field: 'message' });
  return { isUser: ofUser.includes(user), message, more };
}

function shown({ id, isUser, message, more }: ChatMessage) {
  const rest = more === null ? {} : (JSON.parse(more) as object);
  return { id, ...rest, user: isUser ? 'me' : 'gpt', message };
}
