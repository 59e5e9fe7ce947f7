import type { Citation, SearchPart } from '#model/conversation';
import type { Json, JsonObject } from '#model/json';

/** What a candidate says of the searches behind it. https://ai.google.dev/gemini-api/docs/google-search */
export class Grounding {
  readonly #queries: string[] = [];
  readonly #urls = new Map<string, { readonly at: number; readonly title: string }>();
  readonly #supports: Json[] = [];
  #text = ''; // of the part that is being said
  #before = 0; // bytes of text in the parts before it

  search({ query, state }: SearchPart): void {
    if (state !== 'searching') this.#queries.push(query);
  }

  /** @param citations are about the part that ends here */
  text(text: string, citations: readonly Citation[] | undefined): void {
    this.#text += text;
    if (!citations) return;
    const characters = Array.from(this.#text);
    for (const { url, title, start, end } of citations) {
      const source = this.#urls.get(url) ?? { at: this.#urls.size, title };
      this.#urls.set(url, source);
      const cited = characters.slice(start, end).join('');
      const from = this.#before + Buffer.byteLength(characters.slice(0, start).join(''));
      this.#supports.push({ segment: { startIndex: from, endIndex: from + Buffer.byteLength(cited), text: cited }, groundingChunkIndices: [source.at] });
    }
    this.#before += Buffer.byteLength(this.#text);
    this.#text = '';
  }

  metadata(): JsonObject {
    return {
      webSearchQueries: this.#queries,
      groundingChunks: Array.from(this.#urls, ([uri, { title }]) => ({ web: { uri, title } })),
      groundingSupports: this.#supports,
    };
  }
}
