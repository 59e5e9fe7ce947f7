import type { Citation, Part, SearchPart } from '#core/conversation';
import { isObject, textOf, type Json, type JsonObject } from '#core/json';
import { isCount } from '../shared/read-fields.ts';
import { dialect } from './wire.ts';

/** A search of the gateway, or of a provider of another wire. */
export const searchOf = (part: Part): Omit<SearchPart, 'type'> | undefined =>
  part.type === 'search' ? part : part.type === 'foreign' && part.dialect !== dialect ? part.search : undefined;

/** Builds the grounding metadata of a candidate: its searches and their sources. https://ai.google.dev/gemini-api/docs/google-search */
export class Grounding {
  readonly #queries: string[] = [];
  readonly #urls = new Map<string, { readonly at: number; readonly title: string }>();
  readonly #supports: Json[] = [];
  #text = ''; // of the open part
  #unkept = 0; // bytes of it behind that
  #before = 0; // bytes of text in the parts before it
  readonly #room: { left: number };

  /** @param room characters of text that are kept, of all candidates together */
  constructor(room: { left: number }) {
    this.#room = room;
  }

  search({ query, state }: Pick<SearchPart, 'query' | 'state'>): void {
    if (state !== 'searching') this.#queries.push(query);
  }

  /** @param citations are about the part that ends here */
  text(text: string, citations: readonly Citation[] | undefined): void {
    if (this.#unkept === 0 && text.length <= this.#room.left) {
      this.#room.left -= text.length;
      this.#text += text;
    } else this.#unkept += Buffer.byteLength(text);
    if (!citations) return;
    if (citations.length > 0) this.#support(citations);
    this.#room.left += this.#text.length;
    this.#before += Buffer.byteLength(this.#text) + this.#unkept;
    this.#text = '';
    this.#unkept = 0;
  }

  #support(citations: readonly Citation[]): void {
    const characters = Array.from(this.#text);
    const bytes = [0];
    for (const one of characters) bytes.push(bytes.at(-1)! + Buffer.byteLength(one));
    for (const { url, title, start, end } of citations.slice(0, mostCitations)) {
      if (this.#unkept > 0 && end > characters.length) continue;
      const source = this.#urls.get(url) ?? { at: this.#urls.size, title };
      this.#urls.set(url, source);
      const [startIndex, endIndex] = [start, end].map((place) => this.#before + bytes[Math.min(place, characters.length)]!);
      const text = characters.slice(start, Math.min(end, start + longestSegment)).join('');
      this.#supports.push({ segment: { startIndex: startIndex!, endIndex: endIndex!, text }, groundingChunkIndices: [source.at] });
    }
  }

  /** Empty where there were no searches, and no citations but those that a provider of this wire has given with the candidate. @param carried its members */
  metadata({ citationMetadata }: JsonObject): { readonly groundingMetadata?: JsonObject } {
    if (this.#queries.length === 0 && (this.#supports.length === 0 || citationMetadata !== undefined)) return {};
    const groundingMetadata = {
      webSearchQueries: this.#queries,
      groundingChunks: Array.from(this.#urls, ([uri, { title }]) => ({ web: { uri, title } })),
      groundingSupports: this.#supports,
    };
    return { groundingMetadata };
  }
}

/** Far more than any text has. */
const mostCitations = 1000;
/** Characters of a segment's text. */
const longestSegment = 2000;

/** The citations of a part of a candidate's text. The wire's indexes are in bytes. @param before bytes of text in front of the part */
export function citationsFrom({ groundingMetadata: grounding, citationMetadata: cited }: JsonObject, text: string, before: number): readonly Citation[] {
  if (grounding === undefined && cited === undefined) return [];
  const bytes = Buffer.from(text);
  const places = new Uint32Array(bytes.length + 1); // the number of characters before each byte
  for (const [at, byte] of bytes.entries()) places[at + 1] = places[at]! + ((byte & 0xc0) === 0x80 ? 0 : 1);
  const found: Citation[] = [];
  const add = (source: unknown, url: unknown, segment: Json | undefined) => {
    if (found.length >= mostCitations || !isObject(source) || textOf(url) === '' || !isObject(segment)) return;
    const { startIndex = 0, endIndex } = segment;
    if (!isCount(startIndex) || !isCount(endIndex)) return;
    const [from, to] = [startIndex - before, endIndex - before];
    if (from < 0 || from >= to || to > bytes.length) return;
    found.push({ url: textOf(url), title: textOf(source['title']) || textOf(url), start: places[from]!, end: places[to]! });
  };
  const list = (of: Json | undefined, name: string): readonly Json[] => (isObject(of) && Array.isArray(of[name]) ? (of[name] as readonly Json[]) : []);
  const chunks = list(grounding, 'groundingChunks');
  for (const support of list(grounding, 'groundingSupports')) {
    for (const at of list(support, 'groundingChunkIndices')) {
      const chunk = typeof at === 'number' ? chunks[at] : undefined;
      const source: unknown = isObject(chunk) ? (chunk['web'] ?? chunk['retrievedContext'] ?? chunk['maps']) : undefined;
      if (isObject(source) && isObject(support)) add(source, source['uri'], support['segment']);
    }
  }
  for (const one of citedSources(cited).list) if (isObject(one)) add(one, one['uri'], one);
  return found;
}

/** The sources of recited text: `citationSources` in the Gemini API, `citations` in that of Vertex AI. */
export function citedSources(cited: Json | undefined): { readonly name: string; readonly list: readonly Json[] } {
  const name = isObject(cited) && Array.isArray(cited['citationSources']) ? 'citationSources' : 'citations';
  const list = isObject(cited) ? cited[name] : undefined;
  return { name, list: Array.isArray(list) ? (list as readonly Json[]) : [] };
}

/** Searches of one candidate. */
const mostSearches = 50;

/** The searches that a provider reports with a candidate. The sources are those of all of them: the last one has them. */
export function searchesIn({ groundingMetadata: grounding }: JsonObject): readonly SearchPart[] {
  if (!isObject(grounding) || !Array.isArray(grounding['webSearchQueries'])) return [];
  const queries = grounding['webSearchQueries'].filter((one: unknown) => textOf(one) !== '').slice(0, mostSearches);
  const chunks: readonly unknown[] = Array.isArray(grounding['groundingChunks']) ? grounding['groundingChunks'].slice(0, mostCitations) : [];
  const sources = chunks.flatMap((chunk) => {
    const web = isObject(chunk) ? chunk['web'] : undefined;
    return isObject(web) && textOf(web['uri']) !== '' ? [{ url: textOf(web['uri']), title: textOf(web['title']) || textOf(web['uri']) }] : [];
  });
  return queries.map((query, at) => ({
    type: 'search',
    id: `grounding_${at}`,
    query: textOf(query),
    state: 'completed',
    sources: at === queries.length - 1 ? sources : [],
  }));
}
