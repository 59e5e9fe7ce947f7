import { closeSync, openSync, readSync } from 'node:fs';
import { type ErrorCode, isMap, isNode, isScalar, isSeq, LineCounter, type Pair, type ParsedNode, parseDocument, type YAMLMap } from 'yaml';
import { bare } from './bare.ts';
import { BadSettings, type LocatedProblem } from './bad-settings.ts';
import type { Layer } from './layer.ts';
import { type Rule, ruleAt } from './form.ts';
import { read } from './given.ts';
import { fieldOf, type Path } from './path.ts';
import type { Variables } from './variables.ts';

const largestFile = 1024 * 1024;
const deepest = 32;
const reserved = new Set(['__proto__', 'constructor', 'prototype']);

/** The settings of a file, with what cannot be read in them. */
export interface FileLayer extends Layer {
  /** Values that are not understood. They stand in `value` as they were written, or as undefined. */
  readonly problems: readonly LocatedProblem[];
}

/** @param rule of the file's settings, so that `${NAME}` may stand for a number or a boolean; `name` is the name of the file in messages. @throws BadSettings where it is not YAML */
export function readFile(file: string, name: string, env: Variables, rule?: Rule): FileLayer {
  const lines = new LineCounter();
  const placeAt = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `${name}:${line}:${col}`;
  };
  // The duplicate-key check of the parser is quadratic, and its pretty errors quote the file, including secrets.
  const document = parseDocument(textOf(file, name), {
    schema: 'core',
    merge: false,
    resolveKnownTags: false,
    uniqueKeys: false,
    prettyErrors: false,
    lineCounter: lines,
  });
  const [mistake] = [...document.errors, ...document.warnings];
  if (mistake) throw new BadSettings([{ place: placeAt(mistake.pos[0]), message: sentences[mistake.code] ?? 'This is not YAML.' }]);

  const root = document.contents ?? undefined;
  const problems: LocatedProblem[] = [];
  const value = plain(root, []);
  return {
    problems,
    value: value as Layer['value'],
    place(path, part) {
      const { key, node } = find(root, path);
      return placeAt((part === 'name' ? key : undefined)?.range?.[0] ?? node?.range?.[0] ?? 0);
    },
    written(path) {
      const { node, whole } = find(root, path);
      return whole ? writtenAs(node) : undefined;
    },
  };

  function plain(node: ParsedNode | undefined, path: Path): unknown {
    if (!node) return path.length === 0 ? {} : null;
    const refuse = (message: string, at: ParsedNode = node) =>
      void problems.push({ path, place: placeAt(at.range[0]), message: `${fieldOf(path) || 'The file'} ${message}` });
    if (path.length > deepest) return refuse(`is nested deeper than ${deepest} levels.`);
    if (!isScalar(node) && !isMap(node) && !isSeq(node)) return refuse('is an alias (*); write the value out.');
    if (node.anchor !== undefined) return refuse('has an anchor (&); write each value out.');
    if (node.tag !== undefined) return refuse('has a tag (!); a plain value was expected.');
    if (isSeq(node)) return node.items.map((item, at) => plain(item, [...path, at]));
    if (isMap(node)) return members(node, path, refuse);
    if (typeof node.value !== 'string') return isPlain(node.value) ? node.value : refuse('must be text, a number, true or false.');
    const { text, problem } = substituted(node.value, env);
    if (problem === undefined) return text === node.value ? text : read(rule && ruleAt(rule, path), text);
    refuse(problem);
    return node.value;
  }

  function members(map: YAMLMap.Parsed, path: Path, refuse: (message: string, at: ParsedNode) => void): unknown {
    const value = bare<unknown>([]);
    const seen = new Map<string, number>();
    for (const { key, value: inner } of map.items) {
      const name = nameOf(key);
      if (name === undefined) refuse('has a member whose name is not a plain word.', key ?? map);
      else if (reserved.has(name)) refuse(`has a member with the reserved name ${name}.`, key);
      else if (name.includes('${')) refuse('has ${…} in the name of a member; it is allowed only in values.', key);
      else if (seen.has(name)) refuse(`has the member ${name} twice; the first one is on line ${lines.linePos(seen.get(name)!).line}.`, key);
      else {
        seen.set(name, key.range[0]);
        value[name] = plain(inner ?? undefined, [...path, name]);
      }
    }
    return value;
  }
}

/** Reads at most the allowed size, so that an endless device is rejected too. */
function textOf(file: string, name: string): string {
  const buffer = Buffer.alloc(largestFile + 1);
  let length = 0;
  try {
    const opened = openSync(file, 'r');
    try {
      for (let read = -1; read !== 0 && length < buffer.length; length += read) read = readSync(opened, buffer, length, buffer.length - length, null);
    } finally {
      closeSync(opened);
    }
  } catch (error) {
    const why = { ENOENT: 'There is no such file.', EISDIR: 'This is a folder; a file was expected.', EACCES: 'This file may not be read.' };
    throw new BadSettings([{ place: name, message: why[(error as NodeJS.ErrnoException).code as keyof typeof why] ?? 'This file cannot be read.' }]);
  }
  if (length > largestFile) throw new BadSettings([{ place: name, message: 'This file is larger than 1 MiB.' }]);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(buffer.subarray(0, length));
  } catch {
    throw new BadSettings([{ place: name, message: 'This file is not text in UTF-8.' }]);
  }
}

/** The node at the path, with its key; if it does not exist, the last existing node along the path. */
function find(root: ParsedNode | undefined, path: Path): { readonly key?: ParsedNode; readonly node?: ParsedNode; readonly whole: boolean } {
  let node = root;
  let key: ParsedNode | undefined;
  for (const step of path) {
    if (typeof step === 'number' && isSeq(node)) {
      node = node.items[step] as ParsedNode;
      key = node;
      continue;
    }
    const pair: Pair<ParsedNode, ParsedNode | null> | undefined = isMap(node) ? node.items.find((one) => nameOf(one.key) === step) : undefined;
    if (!pair) return { ...(key ? { key } : {}), ...((key ?? node) ? { node: key ?? node! } : {}), whole: false };
    key = pair.key;
    node = pair.value ?? undefined;
  }
  const end = node ?? key;
  return { ...(key ? { key } : {}), ...(end ? { node: end } : {}), whole: node !== undefined };
}

/** The name of a member as written: `1.0` stays `1.0`. */
function nameOf(key: unknown): string | undefined {
  if (!isScalar(key) || key.anchor !== undefined || key.tag !== undefined) return undefined;
  if (typeof key.value === 'string') return key.value;
  return key.value === null ? undefined : (key.source ?? JSON.stringify(key.value));
}

const isPlain = (value: unknown) => value === null || typeof value === 'boolean' || typeof value === 'number';

const writtenAs = (node: unknown): unknown => (isScalar(node) ? node.value : isNode(node) ? node.toJSON() : undefined);

/** The messages of the parser quote the file, so they may contain an API key. */
const sentences: Partial<Record<ErrorCode, string>> = {
  BAD_INDENT: 'The indentation is wrong, or a bracket is not closed.',
  TAB_AS_INDENT: 'Tabs are not allowed as indentation; spaces were expected.',
  MISSING_CHAR: 'A closing quote or bracket, a comma, a space or a ":" is missing.',
  UNEXPECTED_TOKEN: 'This is not expected here; is a quote, a comma or a ":" missing?',
  BLOCK_AS_IMPLICIT_KEY: 'Two members cannot share a line; a text that contains ": " needs quotes.',
  MULTILINE_IMPLICIT_KEY: 'A name must be followed by ":" on the same line.',
  BAD_SCALAR_START: 'A text that starts with this character needs quotes.',
  BAD_DQ_ESCAPE: 'This is not a valid \\ escape in double quotes; in single quotes, \\ is an ordinary character.',
  MULTIPLE_DOCS: 'A second document starts here; one was expected.',
  TAG_RESOLVE_FAILED: 'A tag (!) was found; a plain value was expected.',
  BAD_ALIAS: 'An alias (*) was found; write the value out.',
  RESOURCE_EXHAUSTION: 'This is nested too deeply.',
};

type Substituted = { readonly text: string; readonly problem?: undefined } | { readonly text?: undefined; readonly problem: string };

/** Replaces each `${NAME}` by the value of the environment variable; `$${` is a literal `${`. Inserted values are not expanded again. */
function substituted(text: string, env: Variables): Substituted {
  const unset: string[] = [];
  let broken = false;
  const result = text.replace(/\$\$\{|\$\{([^}]*)(\}?)/g, (whole, name: string | undefined, end: string) => {
    if (name === undefined) return '${';
    if (end === '' || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) broken = true;
    else if (!env[name]) unset.push(name);
    return env[name] ?? whole;
  });
  if (broken) return { problem: 'has ${ without a variable name and }; expected ${NAME}, or $${ for a literal ${.' };
  if (unset.length === 1) return { problem: `needs the environment variable ${unset[0]}, which is not set.` };
  if (unset.length > 1) return { problem: `needs the environment variables ${unset.join(', ')}, which are not set.` };
  return { text: result };
}
