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

/** The variables of a `.env` file in the folder of the settings; none where there is none. Those of the real environment stand above them. @throws BadSettings */
export function variablesBeside(file: string): Readonly<Record<string, string | undefined>> {
  const problem = (message: string) => new BadSettings([{ place: file, message }]);
  let opened: number;
  try {
    opened = openSync(file, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || (error as NodeJS.ErrnoException).code === 'ENOTDIR') return {};
    throw problem('This file may not be read.');
  }
  try {
    const stat = fstatSync(opened);
    if (!stat.isFile()) return {};
    if (stat.size > largestFile) throw problem('This file is larger than 1 MiB.');
    return parseEnv(readFileSync(opened, 'utf8'));
  } finally {
    closeSync(opened);
  }
}
