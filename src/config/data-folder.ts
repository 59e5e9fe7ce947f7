import { dirname, join, resolve } from 'node:path';
import { variablesBeside, variablesOf } from './variables.ts';
import type { SettingsArgs } from './given.ts';
import { isThere, nameOf, settingsPath } from './settings-file.ts';
import { readFile } from './yaml-file.ts';

/** The sources of the data folder's path. */
interface Origin {
  readonly args: SettingsArgs;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
}

/**
 * The data folder alone, for commands that want to find the server that runs on it: whatever else is wrong with the settings, such as an unset `${NAME}`, does
 * not matter to them.
 * @throws BadSettings where a settings file is named that does not exist
 */
export function readDataFolder({ args, env = process.env, cwd = process.cwd() }: Origin): string {
  const path = settingsPath(args, variablesOf(env), cwd);
  const folder = dirname(path);
  try {
    const variables = variablesOf({ ...variablesBeside(join(folder, '.env')).variables, ...env });
    const given = args.data ?? variables['DRAGOMAN_DATA'];
    if (given !== undefined) return resolve(cwd, given);
    const { data } = isThere(path) ? readFile(path, nameOf(path, cwd), variables).value : {};
    return typeof data === 'string' ? resolve(folder, data) : resolve(cwd, 'data');
  } catch {
    return resolve(cwd, args.data ?? env['DRAGOMAN_DATA'] ?? 'data'); // not YAML: the server may run on
  }
}
