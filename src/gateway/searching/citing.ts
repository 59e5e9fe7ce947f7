import { citationMarksIn } from '#kit/text/citation-marks';
import { trimEnd } from '#kit/text/trim-end';
import type { Citation } from '#core/conversation';

/** The sources given to the model, by number. */
export interface Source {
  readonly number: number;
  readonly url: string;
  readonly title: string;
}

/** Of one text. */
const mostCitations = 500;

/**
 * The citations in a text: by the numbers of sources in square brackets, as the model is instructed to write them, or by their URLs. Only sources that were
 * found are cited.
 */
export function citationsIn(text: string, sources: readonly Source[]): readonly Citation[] {
  const byNumber = new Map(sources.map((one) => [one.number, one]));
  const byUrl = new Map(sources.map((one) => [one.url, one]));
  const found: Citation[] = citationMarksIn(text).flatMap(({ numbers, start, end }) =>
    numbers.flatMap((number) => {
      const source = byNumber.get(number);
      return source ? [{ url: source.url, title: source.title, start, end }] : [];
    }),
  );
  const place = inCharacters(text);
  for (const { 0: whole, 1: linked, index } of text.matchAll(/\[[^[\]\n]{1,300}\]\((https?:\/\/[^\s()<>]{1,2000})\)|https?:\/\/[^\s()<>[\]"']{1,2000}/g)) {
    if (found.length >= mostCitations) break;
    const source = byUrl.get(linked ?? whole) ?? byUrl.get(trimEnd(linked ?? whole, '.,;:!?'));
    const end = index + (linked === undefined ? (source?.url.length ?? 0) : whole.length);
    if (source) found.push({ url: source.url, title: source.title, start: place(index), end: place(end) });
  }
  return found.toSorted((a, b) => a.start - b.start).slice(0, mostCitations);
}

/** Converts UTF-16 offsets, queried in ascending order of their start, to characters. */
function inCharacters(text: string): (place: number) => number {
  const pairs: number[] = [];
  for (const pair of text.matchAll(/[\u{10000}-\u{10ffff}]/gu)) pairs.push(pair.index);
  return (place) => {
    let low = 0;
    let high = pairs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[middle]! < place) low = middle + 1;
      else high = middle;
    }
    return place - low;
  };
}
