import { nothingBefore, turnsOf } from '#dialects/openai/responses/decode-input';
import { itemFinder, listedItems, outputOf, referredResponses } from '#dialects/openai/responses/listed-items';
import { itemPlace } from '#dialects/openai/responses/encode-items';
import { withItemIds } from '#dialects/openai/responses/server-steps';
import { isReasoning } from '#dialects/openai/responses/thoughts';
import type { ResponsesRequest, WireItem } from '#dialects/openai/responses/wire';
import { isGiven } from '#dialects/shared/read-fields';
import { withoutTrailingThoughts } from '#dialects/shared/trailing-thoughts';
import type { Asked } from '#http/route';
import type { NeededMemory } from '#kit/memory/byte-budget';
import type { Part, Turn } from '#core/conversation';
import { Fault } from '#core/fault';
import { textOf, type JsonObject } from '#core/json';
import { itemsOnly, type Entry, type KeepingDeps } from './stored-body.ts';

/** The stored conversation that a request continues. */
export interface Continuation {
  /** The conversation before it, oldest first. */
  readonly before: readonly Turn[];
  /** Items of the entries before it. */
  readonly itemsBefore: number;
  /** Its own input. */
  readonly said: readonly Turn[];
  /** Is something of it stored, and not in the body of the request? */
  readonly hasStored: boolean;
  /** Does the input repeat items of the conversation before it? */
  readonly isRepeating: boolean;
  readonly previousId?: string;
  readonly conversationId?: string;
}

/** Looks up what a request continues, and the stored items that it names, each once. @throws Fault `not-found` with the field, `invalid` */
export async function continuationOf(deps: KeepingDeps, { exchange, caller: { userId } }: Asked, request: ResponsesRequest): Promise<Continuation> {
  const { input, previous_response_id: previous, conversation } = request;
  if (typeof input === 'string' && !isGiven(previous) && !isGiven(conversation)) return alone(turnsOf(input, nothingBefore));
  const { previousId, conversationId, entries } = await entriesBefore(deps, userId, request, exchange);
  const within = conversationId === undefined ? undefined : 'conversation';
  const chain = turnsOfChain(entries, within);
  const has = isItemOf(entries, within);
  const items = await itemsNamed(deps, userId, request, has, exchange);
  const said = turnsOf(request.input, { turns: chain, items, has });
  const before = withoutBrokenEnds(chain, entries, said);
  const itemsBefore = entries.reduce((sum, { items: its }) => sum + its, 0);
  if (conversationId !== undefined) requireRoom(deps, itemsBefore + said.length);
  return {
    before,
    itemsBefore,
    said,
    hasStored: before.length > 0 || items.size > 0,
    isRepeating: typeof request.input !== 'string' && request.input.some(has),
    ...(previousId === undefined ? {} : { previousId }),
    ...(conversationId === undefined ? {} : { conversationId }),
  };
}

/** A request that goes on from nothing. */
const alone = (said: readonly Turn[]): Continuation => ({ before: [], itemsBefore: 0, said, hasStored: false, isRepeating: false });

/** `conversation`: without the items that were removed from it. Absent: with them, since a response keeps its items. */
type Within = 'conversation' | undefined;

/** The turns of a chain. Outputs whose tool call was removed from the conversation are left out: no provider takes them. */
export function turnsOfChain(entries: readonly Entry[], within: Within): readonly Turn[] {
  const turns = entries.flatMap((entry) => (within && entry.body.removed ? turnsLeft(entry) : turnsIn(entry)));
  if (!within || !entries.some(({ body }) => body.removed)) return turns;
  const calls = new Set(turns.flatMap(({ parts }) => idsIn(parts, 'tool-call')));
  return withParts(turns, (part) => part.type !== 'tool-result' || calls.has(part.id));
}

const idsIn = (parts: readonly Part[], type: 'tool-call' | 'tool-result'): readonly string[] => parts.flatMap((part) => (part.type === type ? [part.id] : []));

const withParts = (turns: readonly Turn[], isLeft: (part: Part) => boolean): readonly Turn[] =>
  turns.flatMap((turn): readonly Turn[] => {
    const parts = turn.parts.filter(isLeft);
    return parts.length > 0 ? [{ ...turn, parts }] : [];
  });

/**
 * The chain without what providers refuse after an answer that was cut short: tool calls without a result, and trailing thoughts.
 * @param chain the turns of the entries
 * @param said what the client says behind it
 */
export function withoutBrokenEnds(chain: readonly Turn[], entries: readonly Entry[], said: readonly Turn[]): readonly Turn[] {
  if (chain.length === 0) return chain;
  const broken = new Set(entries.flatMap(({ status, body: { answer = [] } }) => (status === 'completed' ? [] : idsIn(answer, 'tool-call'))));
  if (broken.size > 0) for (const { parts } of [...chain, ...said]) for (const id of idsIn(parts, 'tool-result')) broken.delete(id);
  const left = broken.size === 0 ? chain : withParts(chain, (part) => part.type !== 'tool-call' || !broken.has(part.id));
  return withoutTrailingThoughts(left, isReasoning, said[0]?.role);
}

function turnsIn({ body: { said, answer, response } }: Entry): readonly Turn[] {
  return answer && answer.length > 0 ? [...said, { role: 'model', parts: withItemIds(answer, outputOf(response)) }] : said;
}

/** The turns of an entry some of whose items were removed. */
function turnsLeft(entry: Entry): readonly Turn[] {
  const find = itemFinder(entry.body);
  const turns: { readonly turn: Turn; readonly parts: Part[]; readonly areResults: boolean }[] = [];
  for (const { id } of itemsIn(entry, 'conversation')) {
    const turn = find(textOf(id));
    if (!turn) continue;
    const last = turns.at(-1);
    const areResults = turn.parts.every(({ type }) => type === 'tool-result');
    // Items of the model are one turn, and so are results of its calls.
    if (last?.turn.role === turn.role && (turn.role === 'model' || (areResults && last.areResults))) for (const part of turn.parts) last.parts.push(part);
    else turns.push({ turn, parts: [...turn.parts], areResults });
  }
  return turns.map(({ turn, parts }) => ({ ...turn, parts }));
}

/** The items of an entry, oldest first. */
export function itemsIn({ id, body: { said, response, removed } }: Entry, within: Within): readonly JsonObject[] {
  const items = [...listedItems(id, said), ...outputOf(response)];
  if (!within || !removed) return items;
  const gone = new Set(removed);
  return items.filter((item) => !gone.has(textOf(item['id'])));
}

/** Is an item in one of these entries, by its id? Clients return the output of a response even when they continue it. */
function isItemOf(entries: readonly Entry[], within: Within): (item: WireItem) => boolean {
  const kept = new Map(entries.map((entry) => [entry.id, entry]));
  const idsOf = new Map<Entry, ReadonlySet<unknown>>();
  return (item) => {
    const id = 'id' in item ? item.id : undefined;
    const entry = typeof id === 'string' ? kept.get(itemPlace(id)?.response ?? '') : undefined;
    if (!entry) return false;
    let ids = idsOf.get(entry);
    if (!ids) idsOf.set(entry, (ids = new Set(itemsIn(entry, within).map((one) => one['id']))));
    return ids.has(id);
  };
}

/** A conversation that has grown longer could not be gone on with. @throws Fault `invalid` */
function requireRoom({ responses: { mostItems } }: KeepingDeps, items: number): void {
  if (items <= mostItems) return;
  throw new Fault('invalid', `conversation would have more than ${mostItems} items with this input: begin a new one.`, { field: 'conversation' });
}

async function entriesBefore(
  { responses, conversations }: KeepingDeps,
  userId: number,
  { previous_response_id: previous, conversation }: ResponsesRequest,
  memory: NeededMemory,
) {
  if (typeof previous === 'string') {
    const entries = await responses.chain(userId, previous, 'previous_response_id', memory);
    const last = entries.at(-1)!;
    if (last.status === itemsOnly) throw new Fault('not-found', 'previous_response_id names nothing that is kept for you.', { field: 'previous_response_id' });
    if (isRunning(last.status)) throw new Fault('invalid', 'previous_response_id names a response that is still worked on.', { field: 'previous_response_id' });
    return { previousId: previous, conversationId: undefined, entries };
  }
  if (!conversation) return { previousId: undefined, conversationId: undefined, entries: [] };
  const id = typeof conversation === 'string' ? conversation : conversation.id;
  const found = await conversations.find(userId, id);
  if (!found) throw new Fault('not-found', 'conversation names nothing that is kept for you.', { field: 'conversation' });
  const entries = found.head === null ? [] : await responses.chain(userId, found.head, 'conversation', memory);
  return { previousId: found.head ?? undefined, conversationId: id, entries };
}

/** The statuses of a response that has not ended. */
export const runningStatuses: readonly string[] = ['queued', 'in_progress'];
export const isRunning = (status: string) => runningStatuses.includes(status);

/** Each takes a look into the database. */
const mostReferred = 100;

/** @param has is the item in what the request continues? */
async function itemsNamed(
  { responses }: KeepingDeps,
  userId: number,
  { input }: ResponsesRequest,
  has: (item: WireItem) => boolean,
  memory: NeededMemory,
): Promise<ReadonlyMap<string, Turn>> {
  const items = new Map<string, Turn>();
  if (typeof input === 'string') return items;
  const ids = referredResponses(input.filter((item) => !has(item)));
  if (ids.size > mostReferred) throw new Fault('invalid', `input must not name items of more than ${mostReferred} responses.`, { field: 'input' });
  const finders = new Map<string, ReturnType<typeof itemFinder>>();
  for (const id of ids) {
    const entry = await responses.find(userId, id, memory);
    if (entry) finders.set(id, itemFinder(entry.body));
  }
  for (const [at, item] of input.entries()) {
    if (item.type !== 'item_reference' || !('id' in item) || has(item)) continue;
    if (items.has(item.id)) throw new Fault('invalid', `input[${at}].id names an item that stands in the input already.`, { field: `input[${at}].id` });
    for (const id of referredResponses([item])) {
      const turn = finders.get(id)?.(item.id);
      if (turn) items.set(item.id, turn);
    }
  }
  return items;
}
