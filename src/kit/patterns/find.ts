import { writtenPattern } from './written-pattern.ts';
import { finders, placeholder, type Entity, type Found } from './entities.ts';

export type Sought =
  | { readonly type: 'pattern'; readonly pattern: string; /** What stands in the place of what was found. */ readonly mask: string }
  | { readonly type: 'entities'; readonly entities: readonly Entity[] };

/** @returns the text with its matches masked; undefined without a match */
export function masked(text: string, sought: Sought): string | undefined {
  if (sought.type === 'pattern') return without(text, matches(text, patternOf(sought.pattern)), () => sought.mask);
  let left: string | undefined;
  for (const entity of inOrder(sought.entities)) left = without(left ?? text, finders[entity](plain(left ?? text)), () => placeholder(entity)) ?? left;
  return left;
}

/** The narrow formats first, so that a card number is not taken for a phone number. */
const order: readonly Entity[] = ['email', 'iban', 'credit-card', 'us-ssn', 'ip-address', 'phone'];
const inOrder = (wanted: readonly Entity[]) => order.filter((entity) => wanted.includes(entity));

/** Replaces characters by their plain form without moving any: full-width forms, spaces and hyphens that do not break a line, dashes, Arabic and Persian digits. */
const plain = (text: string): string =>
  text.replaceAll(/[\u00a0\u0660-\u0669\u06f0-\u06f9\u2000-\u200a\u2010-\u2015\u202f\u205f\u2212\u3000\uff01-\uff5e]/g, (sign) => {
    const code = sign.charCodeAt(0);
    if (code > 0xff00) return String.fromCharCode(code - 0xfee0);
    if (code >= 0x660 && code <= 0x6f9) return String(code & 0xf);
    return code === 0x2212 || (code >= 0x2010 && code <= 0x2015) ? '-' : ' ';
  });

function* matches(text: string, pattern: RegExp): Iterable<Found> {
  for (const found of text.matchAll(pattern)) if (found[0] !== '') yield { from: found.index, to: found.index + found[0].length };
}

function without(text: string, found: Iterable<Found>, mask: () => string): string | undefined {
  let left = '';
  let at = 0;
  for (const { from, to } of [...found].toSorted((a, b) => a.from - b.from)) {
    if (from < at) continue;
    left += text.slice(at, from) + mask();
    at = to;
  }
  return at === 0 ? undefined : (left + text.slice(at)).toWellFormed();
}

const patterns = new Map<string, RegExp>();
/** Most compiled patterns in the cache; enough for the settings in effect. */
const mostPatterns = 1000;

function patternOf(source: string): RegExp {
  let pattern = patterns.get(source);
  if (!pattern) {
    if (patterns.size >= mostPatterns) patterns.clear();
    patterns.set(source, (pattern = writtenPattern(source)));
  }
  return pattern;
}
