/** Where a text stops being JSON: line and column count from 1. */
export interface Mistake {
  readonly line: number;
  readonly column: number;
  /** What would have been right there: `a comma or }`. */
  readonly expected: string;
}

/** Bytes. A mistake further behind is not looked for: measured, this many take up to 5 ms, and what people type is shorter. */
const mostLooked = 8192;

/** One word of JSON that is no string: punctuation, or a number, true, false or null. */
const word = /([{}[\],:])|(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/y;

type Next = 'value' | 'first value' | 'name' | 'first name' | 'colon' | 'comma' | 'nothing';

/** Finds the first mistake in a text that is no JSON. @returns undefined where there is none, or where it is too far behind */
export function mistakeIn(bytes: Uint8Array): Mistake | undefined {
  const looked = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, mostLooked)).toString();
  const isCut = bytes.length > mostLooked;
  const open: ('{' | '[')[] = [];
  let next: Next = 'value';
  let at = 0;
  while (true) {
    const start = behindSpace(looked, at);
    word.lastIndex = start;
    const isString = looked[start] === '"';
    const [whole = '', mark = ''] = isString ? [stringAt(looked, start)] : (word.exec(looked) ?? []);
    const after: Next | undefined = whole === '' ? undefined : followed(next, mark, isString, open);
    if (after === undefined) {
      if (start === looked.length && (isCut || next === 'nothing')) return undefined;
      // A string or a number that is cut off by the end of what is looked at may be whole.
      if (isCut && !looked.slice(start).includes('\n') && /^["\d-]/.test(looked.slice(start))) return undefined;
      return placeOf(looked, start, expectation(next, open.at(-1)));
    }
    next = after;
    at = start + whole.length;
  }
}

function behindSpace(text: string, from: number): number {
  let at = from;
  while (' \t\r\n'.includes(text[at] ?? '-')) at++;
  return at;
}

/** The string that begins here, with its quotes; '' where it is none, or has no end. */
function stringAt(text: string, from: number): string {
  for (let at = from + 1; at < text.length; at++) {
    const sign = text[at]!;
    if (sign === '"') return text.slice(from, at + 1);
    if (sign < ' ') return '';
    if (sign !== '\\') continue;
    const escaped = text[++at] ?? '-';
    if (escaped === 'u') {
      if (!/^[\da-fA-F]{4}$/.test(text.slice(at + 1, at + 5))) return '';
      at += 4;
    } else if (!'"\\/bfnrt'.includes(escaped)) return '';
  }
  return '';
}

/** What comes after a word; undefined where the word may not stand there. */
function followed(next: Next, mark: string, isString: boolean, open: ('{' | '[')[]): Next | undefined {
  const done = (): Next => (open.length === 0 ? 'nothing' : 'comma');
  const closes = open.at(-1) === '{' ? '}' : ']';
  if (mark === '}' || mark === ']') {
    if (mark !== closes || open.length === 0 || (next !== 'comma' && !next.startsWith('first'))) return undefined;
    open.pop();
    return done();
  }
  if (mark === ',') return next === 'comma' ? (open.at(-1) === '{' ? 'name' : 'value') : undefined;
  if (mark === ':') return next === 'colon' ? 'value' : undefined;
  if (next === 'name' || next === 'first name') return isString ? 'colon' : undefined;
  if (next !== 'value' && next !== 'first value') return undefined;
  if (mark === '') return done();
  open.push(mark as '{' | '[');
  return mark === '{' ? 'first name' : 'first value';
}

function expectation(next: Next, open: string | undefined): string {
  const close = open === '{' ? '}' : ']';
  switch (next) {
    case 'value':
      return 'a value';
    case 'first value':
      return 'a value or ]';
    case 'name':
      return 'a name in double quotes';
    case 'first name':
      return 'a name in double quotes or }';
    case 'colon':
      return 'a colon';
    case 'comma':
      return `a comma or ${close}`;
    case 'nothing':
      return 'the end';
    default:
      return next satisfies never;
  }
}

function placeOf(text: string, at: number, expected: string): Mistake {
  const before = text.slice(0, at);
  const line = before.split('\n').length;
  return { line, column: at - before.lastIndexOf('\n'), expected };
}
