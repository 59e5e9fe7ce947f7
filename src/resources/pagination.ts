import { Type, type TSchema } from 'typebox';
import { nullable } from '#http/schemas';
import { valueIn } from '#kit/json/value-in';
import { instantOf } from '#kit/text/instant';
import { invalid } from '#core/fault';

/** What a request for a page of a list may say. */
export const pageQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: 'Page size; 50 by default.' })),
  cursor: Type.Optional(Type.String({ maxLength: 500, description: 'nextCursor of the page before.' })),
};

export const pageSchema = <Item extends TSchema>(item: Item) => Type.Object({ items: Type.Array(item), nextCursor: nullable(Type.String()) });

/** Where a list goes on, as clients carry it: a list's name and what its last item is found by. Opaque to them, and good for that list only. */
export const cursorOf = (list: string, place: readonly (string | number)[]): string => Buffer.from(JSON.stringify([list, ...place])).toString('base64url');

/** The id of the last item seen; 0 at the start. @throws Fault `invalid` where the cursor is not one that this list gave */
export function idBefore(list: string, cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  const [id, ...rest] = placeOf(list, cursor);
  if (typeof id !== 'number' || rest.length > 0) throw badCursor();
  return id;
}

/** What `cursorOf` was given: texts and safe integers. @throws Fault `invalid` where the cursor is of another list, or none */
export function placeOf(list: string, cursor: string): readonly (string | number)[] {
  const [name, ...place] = wordsIn(cursor);
  if (name !== list || !place.every(isWord)) throw badCursor();
  return place;
}

/** The instant of an item, as `placeOf` gives it. @throws Fault `invalid` where it is none */
export function instantAt(word: string | number | undefined): Date {
  const instant = typeof word === 'string' ? instantOf(word) : undefined;
  if (instant === undefined) throw badCursor();
  return new Date(instant);
}

export const badCursor = () => invalid('cursor', 'must be a nextCursor of this list');

const isWord = (word: unknown): word is string | number => typeof word === 'string' || Number.isSafeInteger(word);

function wordsIn(cursor: string): readonly unknown[] {
  const words = valueIn(Buffer.from(cursor, 'base64url').toString());
  return Array.isArray(words) ? words : [];
}

/** A page out of rows that were read with one more than wanted. */
export function pageOf<Item>(items: readonly Item[], limit: number, cursor: (last: Item) => string): { items: readonly Item[]; nextCursor: string | null } {
  if (items.length <= limit) return { items, nextCursor: null };
  const shown = items.slice(0, limit);
  return { items: shown, nextCursor: cursor(shown.at(-1)!) };
}

interface PageAsked {
  readonly limit?: number;
  readonly cursor?: string;
}

/**
 * A page of a list whose items are found by their ids.
 * @param read reads that many items behind an id; 0: from the start
 * @throws Fault `invalid` where the cursor is not one that this list gave
 */
export async function pageById<Item extends { readonly id: number }, Shown>(
  list: string,
  { limit = 50, cursor }: PageAsked,
  read: (id: number, limit: number) => Promise<readonly Item[]>,
  shown: (item: Item) => Shown,
): Promise<{ items: readonly Shown[]; nextCursor: string | null }> {
  const { items, nextCursor } = pageOf(await read(idBefore(list, cursor), limit + 1), limit, ({ id }) => cursorOf(list, [id]));
  return { items: items.map(shown), nextCursor };
}
