import { isIPv6 } from 'node:net';
import { isLowSurrogate } from '../text/surrogates.ts';

/** Kinds of personal data with a recognizable format, by the name of their placeholder. */
export const entities = ['email', 'phone', 'credit-card', 'iban', 'ip-address', 'us-ssn'] as const;
export type Entity = (typeof entities)[number];

/** Common aliases of these names. */
const otherNames: Readonly<Record<string, Entity>> = {
  'e-mail': 'email',
  'email-address': 'email',
  'phone-number': 'phone',
  telephone: 'phone',
  card: 'credit-card',
  creditcard: 'credit-card',
  'credit-card-number': 'credit-card',
  'iban-code': 'iban',
  ip: 'ip-address',
  ipv4: 'ip-address',
  ipv6: 'ip-address',
  ssn: 'us-ssn',
};

/** The kind of a name, in any spelling: `CREDIT_CARD`, `credit card`. */
export function entityOf(name: string): Entity | undefined {
  const plain = name.toLowerCase().replaceAll(/[_ ]/g, '-');
  return entities.find((one) => one === plain) ?? (Object.hasOwn(otherNames, plain) ? otherNames[plain] : undefined);
}

/** A piece of a text, in UTF-16 units. */
export interface Found {
  readonly from: number;
  readonly to: number;
}

/** The placeholder that replaces a match. */
export const placeholder = (name: string): string => `[${name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')}]`;

/** Finds all matches of a kind in a text, in order. Each search takes linear time, even on hostile text. */
export const finders: Readonly<Record<Entity, (text: string) => Iterable<Found>>> = {
  email: emails,
  phone: phones,
  'credit-card': cards,
  iban: ibans,
  'ip-address': addresses,
  'us-ssn': matching(/(?<!\d|\d-)(?!000|666|9\d\d)\d{3}([- ])(?!00)\d{2}\1(?!0000)\d{4}(?!-?\d)/g),
};

function matching(pattern: RegExp): (text: string) => Iterable<Found> {
  return function* (text) {
    for (const found of text.matchAll(pattern)) yield { from: found.index, to: found.index + found[0].length };
  };
}

/** Searched from the @ outwards: at most 64 characters before it and 253 after it (RFC 5321, 4.5.3.1). */
function* emails(text: string): Iterable<Found> {
  let end = 0;
  for (let at = text.indexOf('@'); at >= 0; at = text.indexOf('@', at + 1)) {
    const from = localStart(text, at, Math.max(end, at - 64));
    const domain = from < at && /^[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+/u.exec(text.slice(at + 1, at + 254));
    if (!domain) continue;
    end = at + 1 + domain[0].length;
    yield { from, to: end };
  }
}

const localSign = /[\p{L}\p{N}._%+'-]/u;

/** The start of the local part that ends at a given position. */
function localStart(text: string, to: number, least: number): number {
  let from = to;
  while (from > least) {
    const isPair = from - 1 > least && isLowSurrogate(text.charCodeAt(from - 1));
    const before = isPair ? from - 2 : from - 1;
    if (!localSign.test(text.slice(before, from))) break;
    from = before;
  }
  return from;
}

/** International (E.164, 8 to 15 digits), or national in groups. A plain run of digits is not a phone number. */
const phonePatterns = [
  /(?<![\w+])(?:\+|00)[1-9](?:[ ()./-]{0,2}\d){7,14}(?!\d)/g,
  /(?<![\w+-])(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}(?![\w-])/g,
  /(?<![\w+.-]|\d )\(?0[1-9]\d{1,3}\)?(?: ?[/-] ?| )\d{3,8}(?:[ -]\d{2,5}){0,3}(?![\w-])/g,
];

function* phones(text: string): Iterable<Found> {
  const found = phonePatterns.flatMap((pattern) => [...matching(pattern)(text)]).toSorted((a, b) => a.from - b.from || b.to - a.to);
  let end = 0;
  for (const one of found)
    if (one.from >= end) {
      yield one;
      end = one.to;
    }
}

/** 13 to 19 digits, optionally in groups, with a valid Luhn checksum (ISO/IEC 7812-1) and the prefix of a payment network. */
function* cards(text: string): Iterable<Found> {
  for (const row of text.matchAll(/\d+(?:[ -]\d+)*/g)) {
    if (row[0].length < shortestCard) continue;
    const groups = [...row[0].matchAll(/\d+/g)].map(({ index, 0: digits }) => ({ from: row.index + index, digits }));
    for (let first = 0; first < groups.length; first++) {
      let digits = '';
      for (let last = first; last < Math.min(first + mostGroups, groups.length); last++) {
        digits += groups[last]!.digits;
        if (digits.length > longestCard) break;
        if (!isCard(digits)) continue;
        const { from, digits: end } = groups[last]!;
        yield { from: groups[first]!.from, to: from + end.length };
        first = last;
        break;
      }
    }
  }
}

const shortestCard = 13;
const longestCard = 19;
/** Usual groupings of a card number. */
const mostGroups = 7;

/** Prefixes and lengths of card numbers by network. */
const cardForm = /^(?:4\d{12}(?:\d{3}){0,2}|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}(?:\d\d)?|35\d{14,17}|(?:5[06-9]|6\d)\d{11,17})$/;

function isCard(digits: string): boolean {
  if (!cardForm.test(digits)) return false;
  let sum = 0;
  for (let at = 0; at < digits.length; at++) {
    const digit = digits.charCodeAt(digits.length - 1 - at) - 48;
    const twice = digit * 2;
    sum += at % 2 === 0 ? digit : twice > 9 ? twice - 9 : twice;
  }
  return sum % 10 === 0;
}

/** Length of an IBAN by country (SWIFT's registry, ISO 13616). */
const ibanLengths = new Map(
  `AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22
GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30
NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30`
    .split(/\s/)
    .map((entry) => [entry.slice(0, 2), Number(entry.slice(2))]),
);

/** With or without spaces, of the length of its country, and with a valid checksum (ISO 7064, MOD 97-10). */
function* ibans(text: string): Iterable<Found> {
  let end = 0;
  for (const { index } of text.matchAll(/(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}/g)) {
    if (index < end) continue;
    const length = ibanLengths.get(text.slice(index, index + 2).toUpperCase());
    const to = length === undefined ? undefined : ibanEnd(text, index, length);
    if (to === undefined) continue;
    yield { from: index, to };
    end = to;
  }
}

function ibanEnd(text: string, from: number, length: number): number | undefined {
  let iban = '';
  let at = from;
  for (; iban.length < length; at++) {
    const sign = text.charAt(at);
    if (/[A-Za-z0-9]/.test(sign)) iban += sign.toUpperCase();
    else if ((sign !== ' ' && sign !== '-') || !/[A-Za-z0-9]/.test(text.charAt(at - 1))) return undefined;
  }
  if (/[A-Za-z0-9]/.test(text.charAt(at))) return undefined;
  let rest = 0;
  for (const sign of iban.slice(4) + iban.slice(0, 4)) {
    const value = Number.parseInt(sign, 36);
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
  }
  return rest === 1 ? at : undefined;
}

const ipv4 = /(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?!\.?\w)/g;

function* addresses(text: string): Iterable<Found> {
  yield* matching(ipv4)(text);
  // An IPv6 address has at most 45 characters, at least two colons and a hexadecimal digit. Checking this first skips long runs of colons.
  for (const { index, 0: run } of text.matchAll(/(?<![\w:.])[0-9A-Fa-f:]+(?:\.[0-9]+)*(?![\w:])/g))
    if (run.length <= 45 && /:.*:/.test(run) && /[0-9A-Fa-f]/.test(run) && isIPv6(run)) yield { from: index, to: index + run.length };
}
