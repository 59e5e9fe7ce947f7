import { program } from '#config/program';
import { existsSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { stringify } from 'yaml';
import { settingsSchema, theEnvironment } from '#config/index';
import { restartSettings } from '#config/schema/index';
import type { Rule } from '#config/form';
import { providerModules } from '#providers/modules';

const schemaFile = fileURLToPath(new URL('../../dragoman.schema.json', import.meta.url));
const width = 140;

/**
 * `dragoman init`: writes a settings file, readable by its owner alone: `short` of a few lines that work, `full` with every setting as a comment.
 * @returns its path
 * @throws Error if the file exists; it is left unchanged
 */
export function writeSettingsFile(folder: string, kind: 'short' | 'full'): string {
  const file = join(folder, 'dragoman.yaml');
  try {
    const schema = addressFrom(folder);
    writeFileSync(file, kind === 'full' ? settingsText(schema) : shortText(schema, theEnvironment()), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw new Error(`${file} already exists and was left unchanged.`, { cause: error });
    throw error;
  }
  return file;
}

/** A few lines that work: with the provider whose key the environment has, else with the built-in model and a provider to uncomment. */
export function shortText(schema: string, env: Readonly<Record<string, string | undefined>>): string {
  const known = providerModules.flatMap(({ dialect, fromEnvironment }) =>
    fromEnvironment?.key === undefined ? [] : [{ dialect, ...fromEnvironment, key: fromEnvironment.key }],
  );
  const found = known.find(({ key }) => env[key]);
  const { name, dialect, baseUrl, key } = found ?? known[0]!;
  const provider = `  ${name}: ${flow({ dialect, baseUrl, apiKeys: [`\${${key}}`] })}`;
  const model = `  "*": ${flow({ targets: [{ provider: name }] })}`;
  const away = (line: string) => (found ? line : line.replace(/^ {2}/, '  # '));
  return [
    `# yaml-language-server: $schema=${schema}`,
    `# All settings: ${program} init --full. "\${NAME}" is the environment's NAME; a file .env beside this one is read too.`,
    'port: 8080',
    'providers:',
    `${away(provider)}${found ? '' : `   # set ${key}, and remove the "# "`}`,
    'models:',
    '  # built-in: false   # hides the model that answers offline',
    `${away(model)}   # every other name goes to this provider`,
    'plans:',
    '  free: { requestsPerMinute: 60, monthlyTokens: 1000000 }   # of users who are added without --plan',
    '',
  ].join('\n');
}

/** Every setting with its default or an example. Without the `# ` at the start of each line after the first, it is a valid settings file. */
export function settingsText(schema: string): string {
  const { properties } = settingsSchema(providerModules) as Rule;
  const settings = Object.entries(properties!).map(([name, rule]) => setting(name, rule, 0).join('\n'));
  const parts = [introduction, ...settings].map((text) => text.replace(/^#?/gm, (start) => (start ? '##' : '# ')));
  return [`# yaml-language-server: $schema=${schema}`, ...parts].join('\n\n') + '\n';
}

const introduction = `# Dragoman settings. Command-line options override environment variables, which override this file, which overrides the defaults.
# Remove the "# " before the settings you need. \${NAME} in a text is replaced by the environment variable NAME.
# Changes take effect when you save this file,
# except ${restartSettings.slice(0, -1).join(', ')} and ${restartSettings.at(-1)}, which need a restart.`;

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

/** A member and its value, on one line if it fits. */
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

/** The schema's address in the settings file: a relative path where the schema is below the folder, as in a project's node_modules, else a URL. */
function addressFrom(folder: string): string {
  const path = relative(folder, schemaFile);
  const below = !path.startsWith('..') && existsSync(join(folder, path));
  return below ? `./${path.replaceAll('\\', '/')}` : pathToFileURL(schemaFile).href;
}
