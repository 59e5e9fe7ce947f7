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
  const found: { readonly source: Source; readonly from: number; readonly to: number }[] = [];
  for (const mark of text.matchAll(
    /\[(\d{1,4}(?:\s{0,3},\s{0,3}\d{1,4}){0,9})\](?!\()|\[[^[\]\n]{1,300}\]\((https?:\/\/[^\s()<>]{1,2000})\)|https?:\/\/[^\s()<>[\]"']{1,2000}/g,
  )) {
    const [whole, numbers, linked] = mark;
    const to = mark.index + whole.length;
    if (numbers !== undefined) {
      for (const number of numbers.split(',')) {
        const source = byNumber.get(Number(number));
        if (source) found.push({ source, from: mark.index, to });
      }
    } else {
      const source = byUrl.get(linked ?? whole) ?? byUrl.get(trimEnd(linked ?? whole, '.,;:!?'));
      if (source) found.push({ source, from: mark.index, to: linked === undefined ? mark.index + source.url.length : to });
    }
    if (found.length >= mostCitations) break;
  }
  const place = inCharacters(text);
  return found.map(({ source: { url, title }, from, to }) => ({ url, title, start: place(from), end: place(to) }));
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
