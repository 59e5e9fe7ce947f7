// The settings, from every place they come from to one value that is true. All settings are said once, in config/schema; what has their form
// and still cannot be meant, in config/sense; who is found without a file, in config/found. Nothing else reads the environment.
import { existsSync, lstatSync } from 'node:fs';
import { isAbsolute, relative, resolve } from 'node:path';
import type { ProviderKind } from '#core/provider-kind';
import { BadSettings, type BadSetting } from './bad-settings.ts';
import { foundProviders } from './found.ts';
import { fromEnvironment, fromOptions, type SettingsArgs } from './given.ts';
import type { Layer } from './layer.ts';
import { depthOf, fieldOf, valueAt } from './path.ts';
import { ruleAt, type Rule } from './form.ts';
import type { Settings } from './schema/index.ts';
import { troubles } from './sense/index.ts';
import type { Trouble } from './sense/trouble.ts';
import { notInEffect } from './not-in-effect.ts';
import type { Reading } from './reading.ts';
import { settled } from './settled.ts';
import { formsFor, shaped } from './shape.ts';
import { shown } from './shown.ts';
import { sourcesOf } from './sources.ts';
import { variablesOf, type Variables } from './variables.ts';
import { readFile } from './yaml-file.ts';

/** Where settings come from. */
export interface Origin {
  /** The kinds of providers that there are: `providers/modules`. */
  readonly kinds: readonly ProviderKind[];
  /** The options of the command line, by their camel-case names. */
  readonly args?: SettingsArgs;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** The address of an Ollama that was found running: `runningOllama`. */
  readonly ollama?: string | undefined;
}

/**
 * All settings: command line before environment before file before defaults.
 * @throws BadSettings, with a line for each thing that is wrong.
 */
export function readSettings({ kinds, args = {}, env = process.env, cwd = process.cwd(), ollama }: Origin): Reading {
  const { file: fileForm, all: form } = formsFor(kinds);
  const variables = variablesOf(env);
  const path = settingsPath(args, variables, cwd);
  const file = isThere(path) ? path : undefined;
  const layers = {
    options: fromOptions(args),
    environment: fromEnvironment(variables),
    file: file === undefined ? undefined : readFile(file, nameOf(file, cwd), variables),
  };
  const options = shaped(form, layers.options);
  const environment = shaped(form, layers.environment);
  const written = layers.file && shaped(fileForm, layers.file);
  refuse([options, environment, written].flatMap((one) => one?.problem ?? []));

  const found = foundProviders(variables, ollama, written?.value['models'] !== undefined, kinds);
  const settings = settled({ options: options.value, environment: environment.value, file: written?.value ?? {}, found: found.value }, { cwd, file, kinds });
  const bestFirst = [layers.options, layers.environment, ...(layers.file ? [layers.file] : []), found];
  refuse(Array.from(troubles(settings, kinds), (trouble) => told(trouble, bestFirst, settings, form)));
  return {
    settings,
    ...(file === undefined ? {} : { file }),
    path,
    sources: sourcesOf(settings, bestFirst),
    notInEffect: notInEffect(fileForm, written?.value),
  };
}

/** Where the file is looked for; one that was named must be there. */
function settingsPath({ config }: SettingsArgs, env: Variables, cwd: string): string {
  const named = config ?? env['DRAGOMAN_CONFIG'];
  const path = resolve(cwd, named ?? 'dragoman.yaml');
  if (named !== undefined && !existsSync(path))
    refuse([{ place: config === undefined ? 'DRAGOMAN_CONFIG' : '--config', message: `This must name a file. Found ${JSON.stringify(named)}.` }]);
  return path;
}

/** A link that leads nowhere is there, and so is what may not be looked at: reading it says what is wrong. */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

function nameOf(file: string, cwd: string): string {
  const name = relative(cwd, file);
  return name.startsWith('..') || isAbsolute(name) ? file : name;
}

function told({ path, text, name, silent }: Trouble, layers: readonly Layer[], settings: Settings, form: Rule): BadSetting {
  const [layer] = layers.toSorted((a, b) => depthOf(b.value, path) - depthOf(a.value, path)) as [Layer];
  const what = name || silent ? '' : shown(path, ruleAt(form, path), layer.written(path) ?? valueAt(settings, path));
  return { place: layer.place(path, name ? 'name' : 'value'), message: `${fieldOf(path)} ${text}${what}` };
}

function refuse(problems: readonly BadSetting[]): void {
  if (problems.length > 0) throw new BadSettings(problems);
}

export { BadSettings } from './bad-settings.ts';
export { settingsOptions, type SettingsArgs } from './given.ts';
export { settingsSchema } from './json-schema.ts';
export { runningOllama } from './ollama.ts';
export type { Settings } from './schema/index.ts';
export type { Reading } from './reading.ts';
export { watchSettings, type Change } from './watch.ts';
