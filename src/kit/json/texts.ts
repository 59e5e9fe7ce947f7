import { valueIn } from './value-in.ts';

type Each = (text: string) => string;

/**
 * JSON text with its texts replaced: strings and names of members, and numbers too (a card number may be written as one; it becomes a string if it is
 * replaced). Everything else stays the same, byte for byte, and the result is valid JSON.
 * @returns undefined if the text is not JSON
 */
export function withJsonTexts(json: string, each: Each): string | undefined {
  if (valueIn(json) === undefined) return undefined;
  let made = '';
  let copied = 0;
  // No regular expression finds the end of a string: V8's run out of stack in one of some megabytes.
  for (let at = 0; at < json.length;) {
    const sign = json.charCodeAt(at);
    const end = sign === quote ? stringEnd(json, at) : isNumeric(sign) ? numberEnd(json, at) : at + 1;
    if (end > at + 1 || isNumeric(sign)) {
      const token = json.slice(at, end);
      const text = sign === quote ? (JSON.parse(token) as string) : token;
      const replaced = each(text);
      if (replaced !== text) {
        made += json.slice(copied, at) + JSON.stringify(replaced);
        copied = end;
      }
    }
    at = end;
  }
  return copied === 0 ? json : made + json.slice(copied);
}

const quote = 0x22;
const backslash = 0x5c;

const isNumeric = (sign: number) => (sign >= 0x30 && sign <= 0x39) || sign === 0x2d;

function stringEnd(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); ; end = json.indexOf('"', end + 1)) {
    let before = end - 1;
    while (json.charCodeAt(before) === backslash) before--;
    if ((end - before) % 2 === 1) return end + 1;
  }
}

function numberEnd(json: string, start: number): number {
  let end = start + 1;
  while (end < json.length && /[\d.eE+-]/.test(json.charAt(end))) end++;
  return end;
}

/** A value of JSON with its strings replaced; names and numbers stay. Returns the same value if no string was replaced. */
export const withStrings = <Value>(value: Value, each: Each): Value => replaced(value, each) as Value;

function replaced(value: unknown, each: Each): unknown {
  if (typeof value === 'string') return isOpaque(value) ? value : each(value);
  if (value === null || typeof value !== 'object') return value;
  let changed = false;
  const one = (inner: unknown) => {
    const made = replaced(inner, each);
    changed ||= made !== inner;
    return made;
  };
  const copy = Array.isArray(value) ? value.map(one) : Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, one(inner)]));
  return changed ? copy : value;
}

/** Signatures, encrypted thoughts and pictures: they are not readable text, and one changed character makes them invalid. */
const isOpaque = (text: string) => text.length >= 40 && /^(?:data:[\w/+.-]+;base64,)?[\w+/=-]+$/.test(text);
