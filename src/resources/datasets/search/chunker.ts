import type { DocumentText } from '#core/document';
import { openTokens } from '#kit/tokens/index';
import { isHighSurrogate, isLowSurrogate } from '#kit/text/surrogates';
import { blocksOf, type Block } from './blocks.ts';
import { endOfPiece, startOfWords } from './cutting.ts';
import { headingText, pathWith, type Heading } from './headings.ts';
import { languageOf } from './language.ts';
import { slices } from './slices.ts';
import type { Chunk, Chunked } from './types.ts';

/** Tokens of a chunk, with its context. */
const mostTokens = 512;
/** Tokens of the context; what is longer is cut. */
const mostContext = 160;
/** A heading begins a new chunk, unless the chunk before it would be shorter than this. */
const leastTokens = 48;
/** Characters of a chunk's quote. Words take fewer; white space and the like may have very few tokens. */
const mostCharacters = 6000;
/** White space between two chunks that belongs to the first of them, so that chunks joined are the text again. */
const mostSpace = 64;
const mostTableHeader = 600;

export interface ChunkOptions {
  /** Where the document has none of its own. */
  readonly title?: string;
  readonly signal?: AbortSignal;
  /** Of work of which this text is a part, by `slices`; absent: of this text alone. */
  readonly pause?: () => Promise<void> | undefined;
}

/**
 * Cuts a document into chunks of up to 512 tokens (o200k) that do not overlap, at headings, paragraphs, list items, rows and lines, never across pages or sheets.
 * 16 MB of text take some seconds, in which the event loop is never held for long.
 */
export async function chunked(document: DocumentText, { title, signal, pause = slices(signal) }: ChunkOptions = {}): Promise<Chunked> {
  const tokens = await openTokens();
  const language = await languageOf(document.text, pause);
  const chunker = new Chunker(document, document.title ?? title ?? '', (text) => tokens.count(text));
  for (const block of blocksOf(document)) {
    if (typeof block === 'number') chunker.skip(block);
    else
      for (const piece of chunker.pieces(block)) {
        chunker.add(piece);
        await pause();
      }
    await pause();
  }
  return { chunks: chunker.end(), language };
}

/** A block, or a piece of one that was too long. */
interface Piece extends Block {
  readonly tokens: number;
}

interface Table {
  readonly of: number;
  /** Of the rows so far. */
  rows: number;
  /** The first row, and the line below it; empty where they are no header. */
  header: string;
}

class Chunker {
  readonly #text: string;
  readonly #places: DocumentText['places'];
  readonly #title: string;
  readonly #count: (text: string) => number;
  readonly #chunks: Chunk[] = [];
  #path: readonly Heading[] = [];
  #table: Table | undefined;
  #pieces: Piece[] = [];
  #tokens = 0;
  #context = { text: '', tokens: 0 };
  /** The same position in UTF-16 units and in code points. */
  #units = 0;
  #points = 0;

  constructor({ text, places }: DocumentText, title: string, count: (text: string) => number) {
    this.#text = text;
    this.#places = places;
    this.#title = headingText(title);
    this.#count = count;
  }

  /** A block as pieces that fit a chunk. */
  *pieces(block: Block): Generator<Piece> {
    const room = mostTokens - mostContext;
    const whole = block.end - block.start <= mostCharacters ? this.#count(this.#text.slice(block.start, block.end)) : Infinity;
    if (whole <= room) {
      yield { ...block, tokens: whole + 1 };
      return;
    }
    for (let start = startOfWords(this.#text, block.start, block.end); start < block.end;) {
      const { end, tokens } = endOfPiece(this.#text, start, block.end, room, this.#count);
      yield { ...block, start, end, tokens: tokens + 1 };
      start = startOfWords(this.#text, end, block.end);
    }
  }

  add(piece: Piece): void {
    const last = this.#pieces.at(-1);
    if (last && (this.#isElsewhere(last, piece) || (piece.kind === 'heading' && this.#tokens >= leastTokens && last.kind !== 'heading'))) this.#flush();
    else if (last && this.#isFull(piece)) {
      this.#flushWithoutHeadings();
      if (this.#pieces.length > 0 && this.#isFull(piece)) this.#flush();
    }
    if (this.#pieces.length === 0) this.#begin(piece);
    if (piece.kind === 'heading') this.#path = pathWith(this.#path, piece.level, this.#text.slice(piece.start, piece.end));
    this.#follow(piece);
    this.#pieces.push(piece);
    this.#tokens += piece.tokens;
  }

  /** Counts the white space up to a position, where the next chunk begins behind it. */
  skip(units: number): void {
    const last = this.#pieces.at(-1);
    if (last && units - last.end <= mostSpace) return;
    if (last) this.#flush();
    this.#pointsAt(units);
  }

  end(): readonly Chunk[] {
    if (this.#pieces.length > 0) this.#flush();
    return this.#chunks;
  }

  /** On another page or sheet, or so far away that only white space is between them. */
  #isElsewhere(last: Piece, piece: Piece): boolean {
    const [from, to] = [this.#places[last.place], this.#places[piece.place]];
    return from?.page !== to?.page || from?.sheet !== to?.sheet || piece.start - last.end > mostSpace;
  }

  #isFull(piece: Piece): boolean {
    const first = this.#pieces[0]!;
    return this.#context.tokens + this.#tokens + piece.tokens > mostTokens || piece.end - first.start > mostCharacters;
  }

  /** A heading at the end goes with what follows it. */
  #flushWithoutHeadings(): void {
    const count = this.#pieces.findLastIndex(({ kind }) => kind !== 'heading') + 1;
    if (count === 0 || count === this.#pieces.length) return this.#flush();
    const headings = this.#pieces.splice(count);
    this.#flush();
    const [first] = headings;
    this.#begin(first!, first!.level);
    this.#pieces = headings;
    this.#tokens = headings.reduce((sum, { tokens }) => sum + tokens, 0);
  }

  /** @param below only headings above this level are over the chunk */
  #begin(piece: Piece, below = piece.kind === 'heading' ? piece.level : 7): void {
    const path = this.#path.filter(({ level }) => level < below).map(({ text }) => text);
    const { of = 0, header = '', rows = 0 } = this.#table ?? {};
    const repeated = piece.kind === 'row' && piece.of === of && rows >= 2 ? header : '';
    const lines = [this.#title, path.join(' › '), repeated].filter((line) => line !== '');
    this.#context = this.#fitting(lines);
  }

  /** A context that leaves room: without its longest line where it is too long. */
  #fitting(lines: readonly string[]): { text: string; tokens: number } {
    if (lines.length === 0) return { text: '', tokens: 0 };
    const text = lines.join('\n');
    const tokens = this.#count(text) + 2;
    if (tokens <= mostContext) return { text, tokens };
    const longest = lines.reduce((most, line) => (line.length > most.length ? line : most), '');
    return this.#fitting(lines.filter((line) => line !== longest));
  }

  /** Keeps the header of the table that is under way. */
  #follow({ kind, of, start, end }: Piece): void {
    if (kind !== 'row') return;
    if (this.#table?.of !== of) this.#table = { of, rows: 0, header: '' };
    const row = this.#text.slice(start, Math.min(end, start + mostTableHeader));
    const table = this.#table;
    table.rows++;
    if (table.rows === 1 && end - start < mostTableHeader) table.header = row;
    if (table.rows === 2) table.header = table.header !== '' && /^[\s|:-]+$/.test(row) ? `${table.header}\n${row}` : '';
  }

  #flush(): void {
    const start = this.#pieces[0]!.start;
    const { end: last, place } = this.#pieces.at(-1)!;
    const page = this.#places[this.#pieces[0]!.place]?.page ?? this.#places[place]?.page ?? null;
    const next = startOfWords(this.#text, last, Math.min(this.#text.length, last + mostSpace));
    const end = next - last < mostSpace ? next : last;
    const { text: context } = this.#context;
    const quote = this.#text.slice(start, end);
    const text = context === '' ? quote.trim() : `${context}\n\n${quote.trim()}`;
    const tokens = this.#count(text);
    const from = this.#pointsAt(start);
    this.#chunks.push({ ordinal: this.#chunks.length, start: from, end: this.#pointsAt(end), page, context, quote, text, tokens });
    this.#pieces = [];
    this.#tokens = 0;
  }

  #pointsAt(units: number): number {
    for (let at = this.#units; at < units; at++) {
      const isSecond = isLowSurrogate(this.#text.charCodeAt(at)) && isHighSurrogate(this.#text.charCodeAt(at - 1));
      if (!isSecond) this.#points++;
    }
    this.#units = units;
    return this.#points;
  }
}
