import { Type } from 'typebox';
import { nothingBefore, turnsOf } from '#dialects/openai/responses/decode-input';
import { checkMetadata, itemsOf } from '#dialects/openai/responses/decode-request';
import { listedItems } from '#dialects/openai/responses/listed-items';
import { bodyFault } from '#dialects/shared/read-fields';
import { Item, Metadata } from '#dialects/openai/responses/wire';
import type { Asked, Route } from '#http/route';
import { nullable, optionalOrNull } from '#http/schemas';
import { checked } from '#kit/json/check';
import { randomText } from '#kit/crypto/ids';
import { Fault } from '#core/fault';
import { isObject, textOf, type JsonObject } from '#core/json';
import type { Conversation } from '#core/stored-responses';
import { root } from '../root.ts';
import { itemsIn, turnsOfChain } from './continuation.ts';
import { itemsOnly, type Entry, type KeepingDeps } from './stored-body.ts';
import { ItemPage, page, queryOf } from './retrieve.ts';

const ConversationObject = Type.Object({
  id: Type.String(),
  object: Type.Literal('conversation'),
  created_at: Type.Integer({ description: 'Unix seconds.' }),
  metadata: Metadata,
});
const ConversationItem = Type.Object({ id: Type.String(), type: Type.String() });
const metadata = optionalOrNull(Metadata);
const items = Type.Array(Item, { maxItems: 20 });
const NewConversation = Type.Object({ items: optionalOrNull(items), metadata });
const ChangedConversation = Type.Object({ metadata: nullable(Metadata) });
const NewItems = Type.Object({ items: Type.Array(Item, { minItems: 1, maxItems: 20 }) });

const checkNew = checked(NewConversation, bodyFault);
const checkChanged = checked(ChangedConversation, bodyFault);
const checkItems = checked(NewItems, bodyFault);

const mostConversations = 10_000;
const tooMany = () => new Fault('rate-limited', `This user has ${mostConversations} conversations: delete some first.`, { retryAfter: 3600 });

/** Items of a type that there is not, before they are taken for messages without one. */
function refuseUnknown(json: unknown): void {
  if (isObject(json) && Array.isArray(json['items'])) itemsOf(json['items']);
}

const shared = { scope: 'passthrough', owner: 'caller' } as const;
const one = `${root}/conversations/:id`;

/** Conversations: kept items that responses are added to, named by `conversation` in a request. */
export function conversationRoutes(deps: KeepingDeps): readonly Route[] {
  const { conversations, responses } = deps;
  const found = (asked: Asked) => conversationOf(deps, asked);
  return [
    {
      ...shared,
      method: 'POST',
      path: `${root}/conversations`,
      summary: 'Makes a conversation, empty or with up to 20 items.',
      input: NewConversation,
      output: ConversationObject,
      async answer(asked) {
        const { caller, json } = asked;
        refuseUnknown(json);
        const { items: first, metadata: labels } = checkNew(json ?? {});
        checkMetadata(labels);
        if (first) turnsOf(itemsOf(first), nothingBefore, 'items'); // refused before there is a conversation
        if ((await conversations.count(caller.userId)) >= mostConversations) throw tooMany();
        await responses.enter(caller.userId);
        const conversation = await conversations.make(caller.userId, labels ?? {});
        if (first && first.length > 0) await addItems(deps, asked, conversation, first);
        return shown(conversation);
      },
    },
    { ...shared, method: 'GET', path: one, summary: 'A conversation.', output: ConversationObject, answer: async (asked) => shown(await found(asked)) },
    {
      ...shared,
      method: 'POST',
      path: one,
      summary: 'Replaces the metadata of a conversation.',
      input: ChangedConversation,
      output: ConversationObject,
      async answer(asked) {
        const labels = checkChanged(asked.json).metadata ?? {};
        checkMetadata(labels);
        const conversation = await found(asked);
        if (!(await conversations.describe(asked.caller.userId, conversation.id, labels))) throw gone(); // meanwhile
        return shown({ ...conversation, metadata: labels });
      },
    },
    {
      ...shared,
      method: 'DELETE',
      path: one,
      summary: 'Deletes a conversation. Responses that were made in it stay until they are deleted or their time is over.',
      output: Type.Object({ id: Type.String(), object: Type.Literal('conversation.deleted'), deleted: Type.Literal(true) }),
      async answer(asked) {
        const { id } = await found(asked);
        if (!(await conversations.remove(asked.caller.userId, id))) throw gone(); // meanwhile
        return { id, object: 'conversation.deleted', deleted: true };
      },
    },
    ...itemRoutes(deps, found),
  ];
}

function itemRoutes(deps: KeepingDeps, found: (asked: Asked) => Promise<Conversation>): readonly Route[] {
  return [
    {
      ...shared,
      method: 'GET',
      path: `${one}/items`,
      summary: 'The items of a conversation.',
      output: ItemPage,
      answer: async (asked) => page((await entriesOf(deps, asked, await found(asked), 'read')).flatMap(itemsLeft), queryOf(asked)),
    },
    {
      ...shared,
      method: 'POST',
      path: `${one}/items`,
      summary: 'Adds up to 20 items to a conversation.',
      input: NewItems,
      output: ItemPage,
      async answer(asked) {
        refuseUnknown(asked.json);
        const { items: given } = checkItems(asked.json);
        const data = await addItems(deps, asked, await found(asked), given);
        return { object: 'list', data, first_id: data[0]?.['id'] ?? null, last_id: data.at(-1)?.['id'] ?? null, has_more: false };
      },
    },
    {
      ...shared,
      method: 'GET',
      path: `${one}/items/:item`,
      summary: 'An item of a conversation.',
      output: ConversationItem,
      answer: async (asked) => (await itemOf(deps, asked, await found(asked))).item,
    },
    {
      ...shared,
      method: 'DELETE',
      path: `${one}/items/:item`,
      summary: 'Takes an item out of a conversation. The response that it belongs to keeps it.',
      output: ConversationObject,
      async answer(asked) {
        const conversation = await found(asked);
        const { item, entry } = await itemOf(deps, asked, conversation);
        const id = textOf(item['id']);
        const without = ({ body, items, ...rest }: Entry): Entry | undefined => {
          const { removed = [] } = body;
          return removed.includes(id) ? undefined : { ...rest, items: Math.max(0, items - 1), body: { ...body, removed: [...removed, id] } };
        };
        if (!(await deps.responses.change(asked.caller.userId, entry.id, without))) throw gone(); // meanwhile
        return shown(conversation);
      },
    },
  ];
}

const gone = () => new Fault('not-found', 'There is no conversation with this id.', { field: 'conversation_id' });

/** @throws Fault `not-found` */
async function conversationOf({ conversations }: KeepingDeps, { caller, exchange }: Asked): Promise<Conversation> {
  const conversation = await conversations.find(caller.userId, exchange.params['id'] ?? '');
  if (!conversation) throw gone();
  return conversation;
}

async function entriesOf({ responses }: KeepingDeps, { exchange, caller }: Asked, { head }: Conversation, isRead?: 'read'): Promise<readonly Entry[]> {
  return head === null ? [] : responses.chain(caller.userId, head, 'conversation_id', exchange, isRead);
}

const itemsLeft = (entry: Entry) => itemsIn(entry, 'conversation');

/** The item that the path names, and its entry. @throws Fault `not-found` */
async function itemOf(deps: KeepingDeps, asked: Asked, conversation: Conversation): Promise<{ readonly item: JsonObject; readonly entry: Entry }> {
  const id = asked.exchange.params['item'];
  for (const entry of await entriesOf(deps, asked, conversation, 'read')) for (const item of itemsLeft(entry)) if (item['id'] === id) return { item, entry };
  throw new Fault('not-found', 'There is no item with this id in the conversation.', { field: 'item_id' });
}

/** Adds items to a conversation, as an entry of their own. @returns them as they are listed */
async function addItems(deps: KeepingDeps, asked: Asked, conversation: Conversation, given: unknown) {
  const { userId } = asked.caller;
  const before = turnsOfChain(await entriesOf(deps, asked, conversation), 'conversation');
  const said = turnsOf(itemsOf(given), { turns: before, items: new Map() }, 'items');
  await deps.responses.enter(userId);
  const id = `resp_${randomText(22)}`;
  const previous = conversation.head === null ? {} : { previousId: conversation.head };
  const entry = { userId, id, ...previous, status: itemsOnly, items: said.length, body: { response: {}, said } };
  await deps.conversations.add(conversation.id, entry, { field: 'items' });
  return listedItems(id, said);
}

function shown({ id, createdAt, metadata: labels }: Conversation) {
  return { id, object: 'conversation', created_at: Math.floor(createdAt.getTime() / 1000), metadata: labels };
}
