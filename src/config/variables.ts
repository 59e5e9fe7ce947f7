import { bare } from './bare.ts';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { BadSettings } from './bad-settings.ts';

/** The environment without empty variables, which count as unset. Has no prototype. */
export type Variables = Readonly<Record<string, string>>;

export function variablesOf(env: Readonly<Record<string, string | undefined>>): Variables {
  return bare(Object.entries(env).flatMap(([name, value]): [string, string][] => (value ? [[name, value]] : [])));
}

const largestFile = 1024 * 1024;

interface Beside {
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** The numbers of the lines that set nothing, and are neither empty nor comments. */
  readonly unreadLines: readonly number[];
}

const none: Beside = { variables: {}, unreadLines: [] };

/** The variables of a `.env` file in the folder of the settings; none where there is none. Those of the real environment stand above them. @throws BadSettings */
export function variablesBeside(file: string): Beside {
  const problem = (message: string) => new BadSettings([{ place: file, message }]);
  let opened: number;
  try {
    opened = openSync(file, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || (error as NodeJS.ErrnoException).code === 'ENOTDIR') return none;
    throw problem('This file may not be read.');
  }
  try {
    const stat = fstatSync(opened);
    if (!stat.isFile()) return none;
    if (stat.size > largestFile) throw problem('This file is larger than 1 MiB.');
    const text = readFileSync(opened, 'utf8').replace(/^\uFEFF/, ''); // editors of Windows begin files with it
    return { variables: parseEnv(text), unreadLines: unreadLines(text.split('\n')) };
  } finally {
    closeSync(opened);
  }
}

/** `NAME=value`; a value in quotes may go on in the next lines. Behind `NAME=` and a blank the parser of the runtime takes the next line for the value. */
function unreadLines(lines: readonly string[]): readonly number[] {
  const unread: number[] = [];
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!.trim();
    if (line === '' || line.startsWith('#')) continue;
    const value = /^(?:export )?[\w.-]+ *=(.*)$/.exec(line)?.[1]?.trimStart();
    if (value === undefined || (value === '' && /[ \t]\r?$/.test(lines[at]!))) unread.push(at + 1);
    const quote = /^["'`]/.exec(value ?? '')?.[0];
    if (quote === undefined || value!.includes(quote, 1)) continue;
    let end = at + 1;
    while (end < lines.length && !lines[end]!.includes(quote)) end++;
    if (end < lines.length) at = end; // without an end it is a part of the value
  }
  return unread;
}
