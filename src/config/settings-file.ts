import { existsSync, lstatSync } from 'node:fs';
import { isAbsolute, relative, resolve } from 'node:path';
import { BadSettings } from './bad-settings.ts';
import type { SettingsArgs } from './given.ts';
import type { Variables } from './variables.ts';

/** The path of the settings file. A file that an option or variable names must exist. */
export function settingsPath({ config }: SettingsArgs, env: Variables, cwd: string): string {
  const named = config ?? env['DRAGOMAN_CONFIG'];
  const path = resolve(cwd, named ?? 'dragoman.yaml');
  if (named !== undefined && !existsSync(path))
    throw new BadSettings([{ place: config === undefined ? 'DRAGOMAN_CONFIG' : '--config', message: `There is no file ${JSON.stringify(named)}.` }]);
  return path;
}

/** True also for a dangling link and for a path without permission: reading the file then reports the problem. */
export function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

export function nameOf(file: string, cwd: string): string {
  const name = relative(cwd, file);
  return name.startsWith('..') || isAbsolute(name) ? file : name;
}
