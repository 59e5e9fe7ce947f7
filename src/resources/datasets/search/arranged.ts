import type { Passage } from '#core/passages';
import { keyOf, type Place } from './postings.ts';

/** A passage with its place in its file. */
export interface PlacedPassage extends Place {
  readonly passage: Passage;
  readonly context: string;
  /** The quote with the white space around it, as it is kept. */
  readonly whole: string;
  /** Where `whole` begins and ends. */
  readonly span: readonly [number, number];
}

/** Passages that become one. */
const mostMerged = 3;

interface Group {
  readonly best: PlacedPassage;
  readonly members: PlacedPassage[];
}

/**
 * Merges passages that follow each other on a page, so that no model reads half a paragraph, and cuts what is beyond the limit. A merged passage has the place,
 * id and score of its best part.
 * @param found best first
 * @returns those that are kept, then those that are left out, with the reason; each best first
 */
export function arranged(found: readonly PlacedPassage[], limit: number): { readonly kept: readonly Passage[]; readonly cut: readonly Passage[] } {
  const groups: Group[] = [];
  const places = new Map<string, Group>();
  const cut: Passage[] = [];
  for (const one of found) {
    const near = [one.ordinal - 1, one.ordinal + 1]
      .map((ordinal) => places.get(keyOf({ edition: one.edition, ordinal })))
      .find((group) => group && joins(group, one));
    if (near) {
      near.members.push(one);
      places.set(keyOf(one), near);
      cut.push({ ...one.passage, cut: 'merged' });
    } else if (groups.length < limit) {
      const group = { best: one, members: [one] };
      groups.push(group);
      places.set(keyOf(one), group);
    } else cut.push({ ...one.passage, cut: 'limit' });
  }
  return { kept: groups.map(merged), cut };
}

/** Does it follow the group, or come before it, without a gap and on the same page? */
function joins({ best, members }: Group, one: PlacedPassage): boolean {
  if (members.length >= mostMerged || best.passage.page !== one.passage.page) return false;
  return members.some(({ span }) => span[1] === one.span[0] || span[0] === one.span[1]);
}

function merged({ best, members }: Group): Passage {
  if (members.length === 1) return best.passage;
  const inOrder = members.toSorted((one, other) => one.ordinal - other.ordinal);
  const whole = inOrder.map((member) => member.whole).join('');
  return withoutSpace(best.passage, { context: inOrder[0]!.context, whole, start: inOrder[0]!.span[0] });
}

/** The passage with what is left of a quote without the white space around it. */
export function withoutSpace(
  passage: Passage,
  { context, whole, start }: { readonly context: string; readonly whole: string; readonly start: number },
): Passage {
  const quote = whole.trim();
  const from = start + whole.length - whole.trimStart().length; // white space has one unit a character
  return { ...passage, quote, range: [from, from + Array.from(quote).length], text: context === '' ? quote : `${context}\n\n${quote}` };
}
