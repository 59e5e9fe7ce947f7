import { readPattern } from '../../../src/providers/built-in/schema/pattern.ts';

/** A text that may keep an expression busy: a beginning, one thing over and over, and an end that does not fit. */
export interface Hostile {
  readonly before: string;
  readonly unit: string;
  readonly after: string;
}

export const textOf = ({ before, unit, after }: Hostile, length: number): string => before + unit.repeat(Math.ceil(length / unit.length)) + after;

const mostSigns = 12;
const mostWords = 6;
const mostPieces = 60;

/**
 * Texts made of what the expression is made of: its signs, its words and the pieces of what it matches, each repeated behind nothing and behind its own words, and
 * every two signs in turn. What it means by a class (`\s`, `[^x]`) is stood for by a sign or two.
 */
export function hostileTo(source: string): Hostile[] {
  const plain = plainOf(source);
  const signs = [...new Set([...meant(source), ...plain.replaceAll(/[()*+?|^$]/g, '')])].slice(0, mostSigns);
  const words = [...new Set(plain.split(/[^\p{L}\p{N}_"':/<`!&-]+/u).filter((word) => word.length > 1))].slice(0, mostWords);
  const pieces = piecesOf(matched(source));
  const pairs = signs.flatMap((one) => signs.filter((other) => other !== one).map((other) => one + other));
  const behind = [...words, ...words.map((word) => `${word}1`), ...words.map((word) => `1${word}`), ...words.map((word) => `${word} `)];
  const ends = ['\u0000', '!', '', '\n\u0000'];
  return [
    ...[...signs, ...words].flatMap((unit) => ['', ...behind, ...signs].flatMap((before) => ends.map((after) => ({ before, unit, after })))),
    ...[...pieces, ...pairs, ...behind].flatMap((unit) => [
      { before: '', unit, after: '\n\u0000' },
      { before: signs[0] ?? '', unit, after: '!' },
    ]),
    ...pieces.flatMap((before) => signs.slice(0, 6).map((unit) => ({ before, unit, after: '\n\u0000' }))),
  ];
}

/** A few texts that the expression matches, but for what it looks around for. */
function matched(source: string): string[] {
  const pattern = readPattern(source.replaceAll(/\(\?<?[=!](?:[^()\\]|\\.|\([^()]*\))*\)|\\[bB]/g, ''));
  if (!pattern) return [];
  return [0, 1, 2].flatMap((variant) => [pattern.sample(0, variant), pattern.sample(1, variant)]).filter((text) => text.length <= 200);
}

/** Beginnings and stretches of texts. */
function piecesOf(texts: readonly string[]): string[] {
  const pieces = new Set<string>();
  for (const text of texts) {
    for (let to = text.length; to > 1; to--) pieces.add(text.slice(0, to));
    for (let from = 1; from < text.length - 1; from++) pieces.add(text.slice(from));
  }
  return [...pieces].toSorted((a, b) => a.length - b.length).slice(0, mostPieces);
}

/** The signs of an expression as they are meant: `\n` is a line feed, `\.` a dot, and a class is nothing. */
function plainOf(source: string): string {
  const escapes: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };
  return source
    .replaceAll(/\\[pP]\{[^}]*\}|\\[dDwWsSbB]|\\x[0-9a-f]{2}|\\u(?:[0-9a-f]{4}|\{[0-9a-f]+\})|\{\d+(?:,\d*)?\}|\(\?(?:<?[=!]|:)/gi, ' ')
    .replaceAll(/\\(.)/g, (_, sign: string) => escapes[sign] ?? sign)
    .replaceAll(/[[\]]/g, (sign) => (source.includes(`\\${sign}`) ? sign : ' '));
}

function meant(source: string): string[] {
  const classes: readonly (readonly [RegExp, string])[] = [
    [/\\s|\\S|\[\^|\./, ' \n'],
    [/\\d|0-9|\\p\{N|\\w/, '1'],
    [/\\w|a-z|\\p\{L|\[\^|\./, 'a'],
    [/A-Z|\\p\{Lu/, 'A'],
    [/\[\^|\\S|\./, '.'],
  ];
  return classes.flatMap(([form, signs]) => (form.test(source) ? [...signs] : []));
}
