import { Type } from 'typebox';
import { listedItems, outputOf } from '#dialects/openai/responses/listed-items';
import { ResponseObject } from '#dialects/openai/responses/wire';
import type { GeneratingDeps } from '../../answer.ts';
import type { Asked, Route } from '#http/route';
import { nullable } from '#http/schemas';
import { Fault } from '#core/fault';
import { isObject, textOf, type JsonObject } from '#core/json';
import { root } from '../root.ts';
import type { Background } from './background.ts';
import { isRunning, itemsIn } from './continuation.ts';
import { itemsOnly, type Entry, type KeepingDeps } from './stored-body.ts';
import { gone, streamEntry } from './replay.ts';

const shared = { scope: 'passthrough', owner: 'caller' } as const;

/** What can be done with a response that is kept: read it, or the items it was made from; end its run; delete it. */
export function keptRoutes(deps: GeneratingDeps & KeepingDeps, background: Background): readonly Route[] {
  const { responses, conversations, runs, clock, limits } = deps;
  const found = async ({ caller, exchange }: Asked): Promise<Entry> => {
    const entry = await responses.find(caller.userId, exchange.params['id'] ?? '', exchange);
    if (!entry || entry.status === itemsOnly) throw gone();
    return entry;
  };
  return [
    {
      ...shared,
      method: 'GET',
      path: `${root}/responses/:id`,
      summary: 'A stored response; with `stream=true` as server-sent events, those after `starting_after` alone.',
      output: ResponseObject,
      sends: ['text/event-stream'],
      async answer(asked) {
        const entry = await found(asked);
        const query = queryOf(asked);
        if (!isStreamed(query)) return entry.body.response;
        const after = wholeNumber(query, 'starting_after', 0, Number.MAX_SAFE_INTEGER) ?? -1;
        const { userId, id } = entry;
        return streamEntry({ clock, limits, find: () => responses.find(userId, id), live: () => background.live(id) }, asked.exchange, after);
      },
    },
    {
      ...shared,
      method: 'DELETE',
      path: `${root}/responses/:id`,
      summary: 'Deletes a stored response. Responses that follow it can no longer be continued; a conversation keeps its items.',
      output: Type.Object({ id: Type.String(), object: Type.Literal('response'), deleted: Type.Literal(true) }),
      async answer(asked) {
        const { userId, id, body, status } = await found(asked);
        const { conversation } = body.response;
        const removed = isObject(conversation) ? conversations.removeEntry(textOf(conversation['id']), userId, id, onlyItems) : responses.remove(userId, id);
        if (!(await removed)) throw gone(); // meanwhile
        if (body.run && isRunning(status)) await runs.cancel(body.run.job);
        return { id, object: 'response', deleted: true };
      },
    },
    {
      ...shared,
      method: 'POST',
      path: `${root}/responses/:id/cancel`,
      summary: 'Ends the run of a response that was made in the background.',
      output: ResponseObject,
      answer: async (asked) => background.cancel(await found(asked)),
    },
    {
      ...shared,
      method: 'GET',
      path: `${root}/responses/:id/input_items`,
      summary: 'The items that a response was made from, those of earlier responses included.',
      output: ItemPage,
      async answer(asked) {
        const { userId, id, body } = await found(asked);
        const within = isObject(body.response['conversation']) ? 'conversation' : undefined;
        const earlier = (await responses.chain(userId, id, 'response_id', asked.exchange, 'read')).slice(0, -1);
        return page([...earlier.flatMap((entry) => itemsIn(entry, within)), ...listedItems(id, body.said)], queryOf(asked));
      },
    },
  ];
}

/** What a conversation keeps of a response that is deleted. */
const onlyItems = ({ body: { response, run: _, ...body }, ...entry }: Entry): Entry | undefined =>
  entry.status === itemsOnly ? undefined : { ...entry, status: itemsOnly, body: { ...body, response: { output: outputOf(response) } } };

export const ItemPage = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(Type.Object({ id: Type.String(), type: Type.String() })),
  has_more: Type.Boolean(),
  first_id: nullable(Type.String()),
  last_id: nullable(Type.String()),
});

function isStreamed(query: URLSearchParams): boolean {
  const stream = query.get('stream') ?? 'false';
  if (stream !== 'true' && stream !== 'false') throw new Fault('invalid', 'stream must be true or false.', { field: 'stream' });
  return stream === 'true';
}

export const queryOf = ({ exchange }: Asked): URLSearchParams => new URL(exchange.url, 'http://here').searchParams;

/** @param items oldest first. @throws Fault `invalid` for a limit, an order or an `after` that cannot be */
export function page(items: readonly JsonObject[], query: URLSearchParams) {
  const limit = wholeNumber(query, 'limit', 1, 100) ?? 20;
  const order = query.get('order') ?? 'desc';
  if (order !== 'asc' && order !== 'desc') throw new Fault('invalid', 'order must be "asc" or "desc".', { field: 'order' });
  const all = order === 'asc' ? items : items.toReversed();
  const cursor = query.get('after');
  const from = cursor === null ? 0 : all.findIndex(({ id }) => id === cursor) + 1;
  if (cursor !== null && from === 0) throw new Fault('invalid', 'after must be the id of an item of the list.', { field: 'after' });
  const data = all.slice(from, from + limit);
  return { object: 'list', data, first_id: data[0]?.['id'] ?? null, last_id: data.at(-1)?.['id'] ?? null, has_more: from + limit < all.length };
}

function wholeNumber(query: URLSearchParams, name: string, least: number, most: number): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const value = Number(text);
  if (!/^\d{1,16}$/.test(text) || value < least || value > most)
    throw new Fault('invalid', `${name} must be a whole number from ${least} to ${most}.`, { field: name });
  return value;
}
