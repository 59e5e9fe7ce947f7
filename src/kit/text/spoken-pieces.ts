export interface SpokenPieces {
  /** Most weight of a piece. */
  readonly most: number;
  /** The weight of a character; absent: 1. */
  readonly weight?: (character: string) => number;
  /** Sentences are joined while there is room; absent: each is a piece of its own. */
  readonly joined?: true;
}

/**
 * Cuts a text into pieces that are spoken one after the other: at the ends of sentences and of lines; a longer sentence behind a comma, else between two words, else
 * anywhere. Reads each character once.
 */
export function* spokenPieces(text: string, { most, weight = () => 1, joined }: SpokenPieces): Generator<string> {
  let from = 0;
  let size = 0;
  /** Where the piece may be cut, the best kind of place first, and the weight up to there. */
  let places: Places = {};
  let before = '';
  let at = 0;
  for (const character of text) {
    const end = at + character.length;
    const isSpace = character.trim() === '';
    const isEnd = character === '\n' || (isSpace && sentenceEnds.has(before)) || wideEnds.has(character);
    size += weight(character);
    if (size > most) {
      const place = places.sentence ?? places.clause ?? places.word ?? { at, size: size - weight(character) };
      if (place.at > from) {
        yield text.slice(from, place.at);
        from = place.at;
        size -= place.size;
        places = {};
      }
    }
    if (isEnd && !joined) {
      yield text.slice(from, end);
      from = end;
      size = 0;
      places = {};
    } else if (isEnd) places = { ...places, sentence: { at: end, size } };
    else if (isSpace && clauseEnds.has(before)) places = { ...places, clause: { at: end, size } };
    else if (isSpace) places = { ...places, word: { at: end, size } };
    before = character;
    at = end;
  }
  if (from < text.length) yield text.slice(from);
}

interface Place {
  readonly at: number;
  readonly size: number;
}

type Places = Partial<Record<'sentence' | 'clause' | 'word', Place>>;

const sentenceEnds = new Set('.!?…:');
const wideEnds = new Set('。！？');
const clauseEnds = new Set(',;)–—');
