/** Values found in a message in one pass; each is returned once. */
export interface Findings {
  /** The value with this label: `city: Paris`, `"city": "Paris"`, `city=Paris`, `the city is Paris`, `city Paris`. */
  labelled(name: string): string | undefined;
  /** Whether the message contains exactly these words. */
  mentions(words: string): boolean;
  number(accept: (value: number) => boolean): number | undefined;
  /** The items with this label: `tags: red, green and blue`. */
  listed(name: string): string[];
  /** The next unused text: quoted, else a name, else the object of `in`, `for`, `at`; for a place such an object first. */
  text(isPlace: boolean, accept: (value: string) => boolean): string | undefined;
  /** The first text in a well-known format. */
  formed(format: string): string | undefined;
}

/** Most UTF-16 units that are searched, at the end of the message. */
const most = 1 << 14;
const longestValue = 300;
/** Most values of a kind: a schema may request the next one thousands of times. */
const mostFound = 200;

/** @param names labels, which are never returned as texts */
export function findingsIn(message: string, names: readonly string[] = []): Findings {
  const text = message.slice(-most);
  const words = [...text.matchAll(/[\p{L}\p{N}_]+(?:[-'.@/][\p{L}\p{N}_]+)*|[^\s\p{L}\p{N}_]/gu)].map((match) => ({
    text: match[0],
    from: match.index,
    to: match.index + match[0].length,
  }));
  const labels = labelsIn(text, words, new Set(names.map((name) => flattened(name.slice(0, longestValue)))));
  let numbers = [...text.matchAll(/(?<![\p{L}\p{N}_.:-])[-+]?(?:\d{1,3}(?:,\d{3}){1,5}|\d{1,15})(?:\.\d{1,15})?(?![\p{L}\p{N}_:]|[-.]\d)/gu)].map((match) => ({
    value: Number(match[0].replaceAll(',', '')),
    labelled: /(?:[:=]|\b(?:is|are|equals|was))\s{0,4}$/i.test(text.slice(Math.max(0, match.index - 12), match.index)),
  }));
  numbers = [...numbers.filter((one) => !one.labelled), ...numbers.filter((one) => one.labelled)].slice(0, mostFound);
  const [quotations, objects] = [quotationsIn(text).slice(0, mostFound), objectsIn(words).slice(0, mostFound)];
  const people = namesIn(words)
    .filter((name) => !objects.includes(name))
    .slice(0, mostFound);
  const formed = new Map<string, string | undefined>();
  const taken = new Set(names);
  const flat = ` ${flattened(text)} `;
  return {
    labelled(name) {
      const value = labels.get(flattened(name))?.value;
      if (value !== undefined) taken.add(value);
      return value;
    },
    listed(name) {
      const label = labels.get(flattened(name));
      return label ? itemsIn(text.slice(label.from, label.to)) : [];
    },
    mentions: (name) => flat.includes(` ${flattened(name)} `),
    number(accept) {
      const at = numbers.findIndex((one) => accept(one.value));
      return at < 0 ? undefined : numbers.splice(at, 1)[0]!.value;
    },
    text(isPlace, accept) {
      const found = (isPlace ? [objects, people, quotations] : [quotations, people, objects]).flat().find((one) => !taken.has(one) && accept(one));
      if (found !== undefined) taken.add(found);
      return found;
    },
    formed(format) {
      if (!formed.has(format)) formed.set(format, forms.get(format)?.exec(text)?.[0]);
      return formed.get(format);
    },
  };
}

/** Normalizes a name: `userName`, `user_name`, `user-name` and `User name` are the same. */
export function flattened(name: string): string {
  return name
    .slice(0, most)
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}

const forms: ReadonlyMap<string, RegExp> = new Map(
  Object.entries({
    email: /(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}/,
    uri: /https?:\/\/[^\s"'<>)\]]{1,500}/,
    url: /https?:\/\/[^\s"'<>)\]]{1,500}/,
    'date-time': /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)/,
    date: /\d{4}-\d\d-\d\d/,
    time: /\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)/,
    uuid: /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i,
    ipv4: /\d{1,3}(?:\.\d{1,3}){3}/,
  }),
);

interface Word {
  readonly text: string;
  readonly from: number;
  readonly to: number;
}

const isWord = (word: Word | undefined) => word !== undefined && /^[\p{L}\p{N}_]/u.test(word.text);
const separators = new Set([':', '=', 'is', 'are', 'equals', 'was']);
const isSeparator = (word: Word | undefined) => word !== undefined && separators.has(word.text.toLowerCase());

interface Label {
  readonly value: string;
  /** Where its list of values is looked for. */
  readonly from: number;
  readonly to: number;
}

/**
 * Of two values with one label the later one wins; a value that merely follows a word counts only if there is no other. A value ends where one of `names` is the
 * next label; one that begins with `=` also at any other label with `=`.
 */
function labelsIn(text: string, words: readonly Word[], names: ReadonlySet<string>): Map<string, Label> {
  const labels = new Map<string, Label>();
  const beside = new Map<string, Label>();
  let nextName = words.length;
  let nextEquation = words.length;
  for (let at = words.length - 1; at >= 0; at--) {
    const word = words[at]!;
    if (isSeparator(word)) {
      const found = labelsBefore(text, words, at);
      const next = word.text === '=' && nextEquation > at + 1 ? Math.min(nextName, nextEquation) : nextName;
      const value = valueAfter(text, words, at, next);
      const label = { value, from: word.to, to: Math.min(word.to + longestValue, words[next]?.from ?? text.length) };
      for (const { name } of value === '' ? [] : found) if (!labels.has(name)) labels.set(name, label);
      nextName = found.findLast(({ name }) => names.has(name))?.at ?? nextName;
      if (word.text === '=') nextEquation = found[0]?.at ?? nextEquation;
    } else if (isWord(word)) {
      const value = valueBeside(text, words, at);
      const name = flattened(word.text);
      if (value && !beside.has(name)) beside.set(name, { value, from: word.to, to: word.to + longestValue });
    }
  }
  for (const [name, label] of beside) if (!labels.has(name)) labels.set(name, label);
  return labels;
}

/** What stands before the separator at `at`, as the label of one to three words that it may be. */
function labelsBefore(text: string, words: readonly Word[], at: number): { readonly name: string; readonly at: number }[] {
  const quote = /["'`]/.test(words[at - 1]?.text ?? '') ? 1 : 0;
  const found = [];
  for (let count = 1; count <= 3; count++) {
    const first = words[at - quote - count];
    if (!isWord(first) || isSeparator(first)) break;
    found.push({ name: flattened(text.slice(first!.from, words[at - quote - 1]!.to)), at: at - quote - count });
  }
  return found;
}

/** The value that follows a word without a separator: in quotation marks, of which one that is joined to the word ends a quotation, or a name or number. */
function valueBeside(text: string, words: readonly Word[], at: number): string {
  const next = words[at + 1];
  if (next === undefined) return '';
  if (/["'“`]/.test(next.text)) return next.from > words[at]!.to ? valueAfter(text, words, at, words.length) : '';
  return /^[\p{Lu}\p{N}]/u.test(next.text) ? phraseFrom(words, at + 1) : '';
}

const closing: ReadonlyMap<string, string> = new Map(Object.entries({ '"': '"', "'": "'", '`': '`', '“': '”', '[': ']', '(': ')' }));

/** The value after the word at `at`: the quoted or bracketed text, else the words up to the next punctuation mark, or to the label at `next`. */
function valueAfter(text: string, words: readonly Word[], at: number, next: number): string {
  const first = words[at + 1];
  if (!first) return '';
  const rest = text.slice(first.from, first.from + longestValue);
  const close = closing.get(first.text);
  const closed = close === undefined ? -1 : rest.indexOf(close, 1);
  if (closed > 0) return rest.slice(1, closed).trim();
  const end = Math.min(next > at + 1 ? next : words.length, at + 41);
  let last = at;
  while (last + 1 < end && !stops(text, words, last + 1)) last++;
  return last === at ? '' : text.slice(first.from, words[last]!.to).replace(/(?:,| (?:and|then))$/i, '');
}

function stops(text: string, words: readonly Word[], at: number): boolean {
  const word = words[at]!;
  const next = words[at + 1];
  if (/^[;!?(){}[\]"]$/.test(word.text) || text.slice(words[at - 1]!.to, word.from).includes('\n')) return true;
  if (/^[.,:]$/.test(word.text)) return !next || next.from > word.to;
  return word.text.toLowerCase() === 'and' && opensAnother(words.slice(at + 1, at + 5));
}

/** Whether the words after an `and` have a label or a speaker of their own. */
function opensAnother(next: readonly Word[]): boolean {
  return (
    next.some(isSeparator) ||
    /^(?:i|he|she|it|we|they|the|my|his|her|our|their|then|call|use)$/i.test(next[0]?.text ?? '') ||
    /^[\p{Lu}\p{N}"]/u.test(next[1]?.text ?? '')
  );
}

/** Adjacent capitalised words, or a number. */
function phraseFrom(words: readonly Word[], at: number): string {
  let end = at + 1;
  if (/^\p{Lu}/u.test(words[at]!.text)) while (end < words.length && end < at + 5 && /^\p{Lu}/u.test(words[end]!.text)) end++;
  return words
    .slice(at, end)
    .map((word) => word.text)
    .join(' ');
}

/** Splits `red, green and blue`, up to the end of the sentence or to an item with a label of its own; also `["red", "green"]`. */
function itemsIn(text: string): string[] {
  const list = text.trimStart();
  const end = list.startsWith('[') ? list.indexOf(']') : list.search(/[;\n!?]|\.(?:\s|$)/);
  const parts = list
    .slice(list.startsWith('[') ? 1 : 0, end < 0 ? undefined : end)
    .split(/,(?:\s?and\s)?|\sand\s/)
    .map((part) => part.trim().replace(/^["'`]|["'`]$/g, ''));
  const other = parts.findIndex((part) => /[:=]|\s(?:is|are)\s/.test(part));
  return parts.slice(0, other < 0 ? undefined : other).filter((part) => part !== '');
}

function quotationsIn(text: string): string[] {
  return [...text.matchAll(/"([^"\n]{1,300})"|“([^“”\n]{1,300})”|`([^`\n]{1,300})`|(?<![\p{L}\p{N}])'([^'\n]{1,300})'(?![\p{L}\p{N}])/gu)].map(
    (match) => match[1] ?? match[2] ?? match[3] ?? match[4]!,
  );
}

const openers =
  /^(?:i|a|an|the|my|it|is|are|what|what's|who|where|when|why|how|which|can|could|would|will|do|does|did|please|call|use|get|give|find|show|tell|say|return|answer|extract|make|create|write|list|json|then|and|or|if|in|on|at|for|to|from|of|with|hi|hello|yes|no|ok|this|that|these|those|there|here|you|your|he|she|we|they|let|let's|look|search|set|send|check|run|ask|weather)$/i;

/** Names: capitalised words; those that start a sentence come last. */
function namesIn(words: readonly Word[]): string[] {
  const inside: string[] = [];
  const opening: string[] = [];
  for (let at = 0; at < words.length; at++) {
    if (!/^\p{Lu}/u.test(words[at]!.text) || openers.test(words[at]!.text)) continue;
    const name = phraseFrom(words, at);
    const opens = at === 0 || /^[.!?:]$/.test(words[at - 1]!.text);
    (opens ? opening : inside).push(name);
    at += name.split(' ').length - 1;
  }
  return [...inside, ...opening];
}

/** The object of a preposition: `the weather in paris`. */
function objectsIn(words: readonly Word[]): string[] {
  return words.flatMap((word, at) => {
    const next = words[at + 1];
    return /^(?:in|for|at|near|about)$/i.test(word.text) && isWord(next) && !openers.test(next!.text) ? [phraseFrom(words, at + 1)] : [];
  });
}
