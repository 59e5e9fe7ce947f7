/**
 * Numbers as they were written. `JSON.parse` makes 12345678901234567890 into 12345678901234567000 and 1.10 into 1.1; here what was written is kept beside the
 * parsed value, for those who write it out again.
 */

declare global {
  interface JSON {
    /** https://tc39.es/proposal-json-parse-with-source/#sec-json.rawjson */
    rawJSON(text: string): { readonly rawJSON: string };
  }
}

/** Members of an object, or items of an array: the text of a number that would be written differently; null for one that contains some. */
type Written = Map<string | number, string | null>;
const written = new WeakMap<object, Written>();

/** A text with this many of them is read as JavaScript reads it: it is a table of measurements, or meant to keep the server busy. */
const mostNumbers = 5000;

/** `JSON.parse` that keeps how numbers were written, for `asWritten` and `textAsWritten`. A text without such numbers costs one search more. @throws SyntaxError */
export function parseAsWritten(text: string): unknown {
  const places = suspicious.test(text) ? inexactNumbers(text) : [];
  if (!areKept(places)) return JSON.parse(text);
  const { marked, numbers } = withMarks(text, places);
  try {
    return noteNumbers(JSON.parse(marked), numbers);
  } catch {
    return JSON.parse(text); // it is not JSON, or says something twice
  }
}

/** A parsed value for `JSON.stringify`, which writes its numbers as they were written: for nothing else, since objects stand in their places. */
export function asWritten(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value;
  const numbers = written.get(value);
  if (!numbers) return value;
  const copy = (Array.isArray(value) ? [...(value as readonly unknown[])] : { ...value }) as Container;
  for (const [name, text] of numbers) copy[name] = text === null ? asWritten(copy[name]) : JSON.rawJSON(text);
  return copy;
}

/** The JSON text of a parsed value, with its numbers as they were written. */
export const textAsWritten = (value: unknown): string => JSON.stringify(asWritten(value));

/** Gives a shallow copy the original's record of how its numbers were written. @returns the copy */
export function withNumbersOf<Copy extends object>(original: object, copy: Copy): Copy {
  const numbers: Written = written.get(original) ?? new Map();
  const kept = Object.keys(copy).filter((name) => numbers.has(name) && (copy as Container)[name] === (original as Container)[name]);
  if (kept.length > 0) written.set(copy, new Map(kept.map((name) => [name, numbers.get(name) ?? null])));
  return copy;
}

/** A number that JavaScript parses as another one, since it has too many digits or is too large. */
export interface Rounded {
  /** What it is parsed as. */
  readonly number: number;
  /** Was an integer written? */
  readonly isWhole: boolean;
}

/** The numbers of a parsed value that were written as others than it has: what was found out about the value need not be true of what `asWritten` writes. */
export function roundedIn(value: unknown): readonly Rounded[] {
  const rounded: Rounded[] = [];
  const open = [value];
  for (let one = open.pop(); typeof one === 'object' && one !== null; one = open.pop())
    for (const [name, text] of written.get(one) ?? []) {
      if (text === null) open.push((one as Container)[name]);
      else rounded.push(...roundedFrom(text));
    }
  return rounded;
}

function roundedFrom(text: string): readonly Rounded[] {
  const number = Number(text);
  const [own, parsed] = [digitsOf(text), digitsOf(String(number))];
  return own.digits === parsed.digits && own.exponent === parsed.exponent ? [] : [{ number, isWhole: own.exponent >= 0 }];
}

/** The digits of a number without zeros around them, and the power of ten of the last of them; its sign is left out. */
function digitsOf(number: string): { readonly digits: string; readonly exponent: number } {
  const [mantissa = '', power = '0'] = number.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const digits = (whole + fraction).replace(/^0+/, '');
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  return { digits: digits.slice(0, end), exponent: end === 0 ? 0 : Number(power) - fraction.length + digits.length - end };
}

/** What may be a number that JavaScript would write differently; also found in strings. */
const suspicious = /\d{16}|\d[\d.]{16}|\.\d*0(?!\d)|\d[eE][-+\d]|-0|\.0{6}/;

/** The places of the numbers that JavaScript would write differently: the offset of the first character of each and the offset after its last. */
function inexactNumbers(json: string): readonly number[] {
  const places: number[] = [];
  for (let at = 0; at < json.length && places.length < mostPlaces;) {
    const sign = json.charCodeAt(at);
    if (sign === quote) {
      at = stringEnd(json, at);
      continue;
    }
    const start = at++;
    if (sign !== minus && !isDigit(sign)) continue;
    while (isNumeric(json.charCodeAt(at))) at++;
    if (isInexact(json.slice(start, at))) places.push(start, at);
  }
  return places;
}

/** Offsets that are noted at most, two for each number. */
export const mostPlaces = 2 * mostNumbers;

/** Are the numbers at these places kept as they were written? */
export const areKept = (places: readonly number[]): boolean => places.length > 0 && places.length < mostPlaces;

/** Would JavaScript write this number differently? Short ones without an exponent or a zero at the end, and not tiny, it would not. */
export function isInexact(number: string): boolean {
  if (number.length < 16 && !number.includes('e') && !number.includes('E')) {
    if (!number.includes('.')) return number === '-0';
    if (!number.endsWith('0') && !number.includes('0.00000')) return false;
  }
  return String(Number(number)) !== number && isNumber.test(number);
}

const isNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

function stringEnd(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); end >= 0; end = json.indexOf('"', end + 1)) {
    let before = end - 1;
    while (json.charCodeAt(before) === backslash) before--;
    if ((end - before) % 2 === 1) return end + 1;
  }
  return json.length; // it is not JSON
}

const [quote, minus, backslash] = [0x22, 0x2d, 0x5c];
const isDigit = (sign: number): boolean => sign >= 0x30 && sign <= 0x39;
const isNumeric = (sign: number): boolean => isDigit(sign) || sign === minus || sign === 0x2b || sign === 0x2e || (sign | 0x20) === 0x65;

/** A text with a string in the place of each of these numbers, and the numbers by those strings, which nobody can know. */
function withMarks(text: string, places: readonly number[]): { readonly marked: string; readonly numbers: ReadonlyMap<string, string> } {
  const name = crypto.randomUUID();
  const numbers = new Map<string, string>();
  let marked = '';
  let from = 0;
  for (let at = 0; at < places.length; at += 2) {
    const mark = `${name} ${at}`;
    numbers.set(mark, text.slice(places[at], places[at + 1]));
    marked += `${text.slice(from, places[at])}"${mark}"`;
    from = places[at + 1]!;
  }
  return { marked: marked + text.slice(from), numbers };
}

/**
 * Puts numbers in the places of their marks, and notes how they were written.
 * @param numbers the text of each number by its mark
 * @returns the value
 * @throws SyntaxError where one of them is no value in it: it stood where none may stand
 */
export function noteNumbers(value: unknown, numbers: ReadonlyMap<string, string>): unknown {
  const root: Container = { value };
  const left = new Map(numbers);
  noteIn(root, left);
  if (left.size > 0) throw new SyntaxError('A number stands where none may stand.');
  return root['value'];
}

type Container = Record<string | number, unknown>;

/** @param numbers those that are found are taken out. @returns does it contain one of them? */
function noteIn(container: Container, numbers: Map<string, string>): boolean {
  let own: Written | undefined;
  const note = (name: string | number) => {
    const member = container[name];
    if (typeof member === 'string') {
      const text = member.length < longestMark ? numbers.get(member) : undefined;
      if (text === undefined) return;
      numbers.delete(member);
      container[name] = Number(text);
      (own ??= new Map()).set(name, text);
    } else if (member !== null && typeof member === 'object' && noteIn(member as Container, numbers)) (own ??= new Map()).set(name, null);
  };
  if (Array.isArray(container)) for (let at = 0; at < container.length && numbers.size > 0; at++) note(at);
  else
    for (const name in container) {
      if (numbers.size === 0) break;
      note(name);
    }
  if (own) written.set(container, own);
  return own !== undefined;
}

/** Characters. */
const longestMark = 64;
