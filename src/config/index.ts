// Merges the settings of all sources into one validated value. config/schema declares every setting once, config/sense has the checks that a schema cannot
// express, and config/found enables providers without a file. Nothing else reads the environment.
import { dirname, join } from 'node:path';
import type { ProviderKind } from '#core/provider-kind';
import { type BadSetting, BadSettings, mayFollowFrom } from './bad-settings.ts';
import { variablesBeside, variablesOf } from './variables.ts';
import { foundProviders } from './found.ts';
import { fromEnvironment, fromOptions, type SettingsArgs } from './given.ts';
import type { Layer } from './layer.ts';
import { depthOf, fieldOf, valueAt } from './path.ts';
import { type Rule, ruleAt } from './form.ts';
import type { Settings } from './schema/index.ts';
import { troubles } from './sense/index.ts';
import type { Trouble } from './sense/trouble.ts';
import { notInEffect } from './not-in-effect.ts';
import type { Reading } from './reading.ts';
import { settled } from './settled.ts';
import { formsFor, shaped } from './shape.ts';
import { shown } from './shown.ts';
import { isThere, nameOf, settingsPath } from './settings-file.ts';
import { sourcesOf } from './sources.ts';
import { unfilledKeys } from './unfilled.ts';
import { unreadVariables } from './unread.ts';
import { missingFiles } from './missing-files.ts';
import { unusedSaid } from './unused.ts';
import { readFile } from './yaml-file.ts';

/** The sources of the settings. */
export interface Origin {
  /** The supported kinds of providers: `providers/modules`. */
  readonly kinds: readonly ProviderKind[];
  /** The command-line options, by their camel-case names. */
  readonly args?: SettingsArgs;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** The URL of a running Ollama on this machine: `runningOllama`. */
  readonly ollama?: string | undefined;
  /** False for commands that ask no provider: what is wrong with providers, such as the unset variable of a key, does not matter to them. */
  readonly asksProviders?: boolean;
}

/** All settings. Precedence: command line, environment, file, defaults. @throws BadSettings, with one line per problem. */
export function readSettings({ kinds, args = {}, env = process.env, cwd = process.cwd(), ollama, asksProviders = true }: Origin): Reading {
  const { file: fileForm, all: form } = formsFor(kinds);
  const path = settingsPath(args, variablesOf(env), cwd);
  const dotEnv = join(dirname(path), '.env');
  const beside = variablesBeside(dotEnv);
  const variables = variablesOf({ ...beside.variables, ...env });
  const file = isThere(path) ? path : undefined;
  const layers = {
    options: fromOptions(args),
    environment: fromEnvironment(variables),
    file: file === undefined ? undefined : readFile(file, nameOf(file, cwd), variables, fileForm),
  };
  const options = shaped(form, layers.options);
  const environment = shaped(form, layers.environment);
  const unread = layers.file?.problems ?? [];
  const written = layers.file && shaped(fileForm, layers.file, unread);
  const problems = [...unread, ...[options, environment, written].flatMap((one) => one?.problems ?? [])];

  const found = foundProviders(variables, ollama, written?.value['models'] !== undefined, kinds);
  const given = { options: options.value, environment: environment.value, file: written?.value ?? {}, found: found.value };
  const settings = settled(given, { cwd, file, kinds });
  const bestFirst = [layers.options, layers.environment, ...(layers.file ? [layers.file] : []), found];
  const senseless = Array.from(troubles(settings, kinds)).filter((trouble) => !mayFollowFrom(trouble, problems));
  const isOfProviders = ({ path: [root], dependsOn = [] }: Pick<Trouble, 'path' | 'dependsOn'>) =>
    root === 'providers' || dependsOn.some(([first, name]) => first === 'models' && name === '*'); // which a variable of a provider may bring
  const matters = (problem: Pick<Trouble, 'path' | 'dependsOn'>) => asksProviders || !isOfProviders(problem);
  refuse([...problems.filter(matters), ...senseless.filter(matters).map((trouble) => told(trouble, bestFirst, settings, form))]);
  const sources = sourcesOf(settings, bestFirst);
  return {
    settings,
    given: Object.values(given),
    ...(file === undefined ? {} : { file }),
    path,
    sources,
    notInEffect: notInEffect(fileForm, written?.value),
    unread: unreadVariables(variables, kinds, settings, written?.value['providers'] ?? {}),
    unfilled: unfilledKeys(settings),
    unreadLines: beside.unreadLines.map((line) => `${nameOf(dotEnv, cwd)}:${line} is not read: a line must be NAME=value.`),
    missing: missingFiles(settings),
    unused: unusedSaid(settings, sources),
  };
}

/** The absolute path of the settings file, if there is one. @throws BadSettings where a file is named that does not exist */
export function settingsFile({ args = {}, env = process.env, cwd = process.cwd() }: Omit<Origin, 'kinds'>): string | undefined {
  const path = settingsPath(args, variablesOf(env), cwd);
  return isThere(path) ? path : undefined;
}

function told({ path, text, name, silent }: Trouble, layers: readonly Layer[], settings: Settings, form: Rule): BadSetting {
  const [layer] = layers.toSorted((a, b) => depthOf(b.value, path) - depthOf(a.value, path)) as [Layer];
  const what = name || silent ? '' : shown(path, ruleAt(form, path), layer.written(path) ?? valueAt(settings, path));
  return { place: layer.place(path, name ? 'name' : 'value'), message: `${layer.given?.(path) ?? fieldOf(path)} ${text}${what}` };
}

function refuse(problems: readonly BadSetting[]): void {
  if (problems.length > 0) throw new BadSettings(problems.map(({ place, message }) => ({ place, message })));
}

export { BadSettings } from './bad-settings.ts';
export { keyInEnvironment, theEnvironment } from './given.ts';
export { readDataFolder } from './data-folder.ts';
export { settingsOptions, type SettingsArgs } from './given.ts';
export { runningOllama } from './ollama.ts';
export type { Settings } from './schema/index.ts';
export type { Reading } from './reading.ts';
export { unreadSaid } from './unread.ts';
export { unusedProviders } from './unused.ts';
export { watchSettings, type Change } from './watch.ts';

/** The JSON Schema of the settings file, for editors. A test holds `dragoman.schema.json` against it. */
export function settingsSchema(kinds: readonly ProviderKind[]): object {
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', ...formsFor(kinds).file };
}
