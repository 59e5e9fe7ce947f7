import { existsSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { stringify } from 'yaml';
import { settingsSchema } from '#config/index';
import type { Rule } from '#config/form';
import { providerModules } from '#providers/modules';

const schemaFile = fileURLToPath(new URL('../../dragoman.schema.json', import.meta.url));
const width = 140;

/**
 * `dragoman init`: a settings file in which everything is a comment, readable by its owner alone.
 * @returns its path
 * @throws if there is one already, which is left as it is.
 */
export function writeSettingsFile(folder: string): string {
  const file = join(folder, 'dragoman.yaml');
  try {
    writeFileSync(file, settingsText(addressFrom(folder)), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw new Error(`${file} is there already; it was left as it is.`, { cause: error });
    throw error;
  }
  return file;
}

/** Every setting with its default, or an example; without the `# ` at the start of the lines behind the first it is a file that can be used. */
export function settingsText(schema: string): string {
  const { properties } = settingsSchema(providerModules) as Rule;
  const settings = Object.entries(properties!).map(([name, rule]) => setting(name, rule, 0).join('\n'));
  const parts = [introduction, ...settings].map((text) => text.replace(/^#?/gm, (start) => (start ? '##' : '# ')));
  return [`# yaml-language-server: $schema=${schema}`, ...parts].join('\n\n') + '\n';
}

const introduction = `# Settings of Dragoman: command line before environment before this file before defaults.
# Take away the "# " before what you need. A text may have \${NAME} in it, the environment variable NAME.
# What is saved here holds at once, but for host, port, data, databaseUrl, workers and outbound: they need a restart.`;

function setting(name: string, rule: Rule, depth: number): string[] {
  const space = '  '.repeat(depth);
  const about = wrapped(rule.description ?? '', width - space.length - 4).map((line) => `${space}# ${line}`);
  const members = Object.entries(rule.properties ?? {});
  if (!rule.examples && members.length > 0) return [...about, `${space}${name}:`, ...members.flatMap(([inner, one]) => setting(inner, one, depth + 1))];
  const value = rule.examples?.[0] ?? rule.default;
  const lines = typeof rule.additionalProperties === 'object' ? block(name, value, depth) : given(name, value, depth);
  const beside = `${lines[0]} ${about[0]?.trim()}`;
  return depth > 0 && lines.length === 1 && about.length === 1 && beside.length <= width ? [beside] : [...about, ...lines];
}

/** A member with its value on one line where that fits. */
function given(name: string, value: unknown, depth: number): string[] {
  const line = `${'  '.repeat(depth)}${flow(name)}: ${flow(value)}`;
  return line.length <= width - 2 || value === null || typeof value !== 'object' || Array.isArray(value) ? [line] : block(name, value, depth);
}

const block = (name: string, value: unknown, depth: number): string[] => [
  `${'  '.repeat(depth)}${flow(name)}:`,
  ...Object.entries(value as object).flatMap(([inner, one]) => given(inner, one, depth + 1)),
];

const flow = (value: unknown) => stringify(value, { collectionStyle: 'flow', lineWidth: 0 }).trimEnd();

function wrapped(text: string, most: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1)!;
    if (line !== '' && line.length + 1 + word.length > most) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines;
}

/** The schema as seen from there: a relative path where it is below, as in a project's own node_modules. */
function addressFrom(folder: string): string {
  const path = relative(folder, schemaFile);
  const below = !path.startsWith('..') && existsSync(join(folder, path));
  return below ? `./${path.replaceAll('\\', '/')}` : pathToFileURL(schemaFile).href;
}
