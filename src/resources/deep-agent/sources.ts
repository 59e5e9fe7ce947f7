import type { JsonObject } from '#core/json';
import { placeOf, type Passage } from '#core/passages';
import { citedPassage } from '../cited-passage.ts';

/** What was found: a passage of a dataset, or a page of the web. Stored as it is, so that it can be shown when the run has ended. */
export type Source = PassageSource | PageSource;

export type PassageSource = Pick<Passage, 'id' | 'dataset' | 'filename' | 'page' | 'range' | 'quote' | 'text' | 'score'> & { readonly type: 'passage' };

/** `text`: the excerpt of the search engine, or the page where it was read. */
export type PageSource = { readonly type: 'page'; readonly url: string; readonly title: string; readonly text: string };

export const passageSource = ({ id, dataset, filename, page, range, quote, text, score }: Passage): PassageSource => ({
  type: 'passage',
  id,
  dataset,
  filename,
  page,
  range,
  quote,
  text,
  score,
});

const keyOf = (source: Source): string => (source.type === 'passage' ? `passage ${source.id}` : `page ${source.url}`);

/** Sources under numbers from 1, each once, however often it was found. */
export class Sources {
  readonly #found: Source[] = [];
  readonly #numbers = new Map<string, number>();

  /** @returns its number; what was read of a page since replaces what the search engine showed of it */
  add(source: Source): number {
    const key = keyOf(source);
    const known = this.#numbers.get(key);
    if (known === undefined) {
      this.#numbers.set(key, this.#found.push(source));
      return this.#found.length;
    }
    if (source.text.length > this.#found[known - 1]!.text.length) this.#found[known - 1] = source;
    return known;
  }

  at(number: number): Source | undefined {
    return this.#found[number - 1];
  }

  get all(): readonly Source[] {
    return this.#found;
  }

  /** A page that a search found: only those are opened. */
  page(url: string): PageSource | undefined {
    const source = this.at(this.#numbers.get(`page ${url}`) ?? 0);
    return source?.type === 'page' ? source : undefined;
  }
}

/** As a model is shown it. */
export function entryOf(source: Source, number: number, most = Infinity): string {
  const head = source.type === 'passage' ? placeOf(source) : `${source.title}\n${source.url}`;
  const text = source.text.length > most ? `${source.text.slice(0, most).toWellFormed()}…` : source.text;
  return `[${number}] ${head}\n${text}`;
}

/** A source that a report cites, as clients read it. @param at where it is cited: from, to before, in code points */
export function citedOf(source: Source, index: number, at: readonly (readonly [number, number])[]): JsonObject {
  if (source.type === 'page') return { index, title: source.title, url: source.url, at };
  return { index, ...citedPassage(source), at };
}
