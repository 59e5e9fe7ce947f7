import { ruleAt, type Rule } from './form.ts';
import { singles, type Layer, type Single } from './layer.ts';
import type { Path } from './path.ts';
import { formsFor } from './shape.ts';
import type { Variables } from './variables.ts';

/** No setting of a provider has a variable or an option of its own. */
const form = formsFor([]).all;

interface Row {
  readonly path: Path;
  readonly name: string;
}

/** The environment variables that are settings. `found.ts` reads those of providers; the runtime itself reads NODE_EXTRA_CA_CERTS. */
export const variables: readonly Row[] = [
  { name: 'PORT', path: ['port'] },
  { name: 'HOST', path: ['host'] },
  { name: 'DRAGOMAN_DATA', path: ['data'] },
  { name: 'DATABASE_URL', path: ['databaseUrl'] },
  { name: 'DRAGOMAN_WORKERS', path: ['workers'] },
  { name: 'DRAGOMAN_MASTER_KEY', path: ['masterKey'] },
  { name: 'DRAGOMAN_ADMIN_EMAIL', path: ['adminEmail'] },
  { name: 'DRAGOMAN_ADMIN_API_KEY', path: ['adminApiKey'] },
  { name: 'GOOGLE_APPLICATION_CREDENTIALS', path: ['googleCredentials'] },
  { name: 'HTTPS_PROXY', path: ['outbound', 'proxy'] },
  { name: 'NO_PROXY', path: ['outbound', 'noProxy'] },
];

/** A command-line option in the form that the parser expects. */
export interface SettingsOption {
  readonly flags: string;
  readonly description: string;
}

/** The settings that are also command-line options. */
const optionFlags = {
  port: '--port <number>',
  host: '--host <address>',
  data: '--data <folder>',
  databaseUrl: '--database-url <url>',
  logLevel: '--log-level <level>',
  logFormat: '--log-format <format>',
} as const;

type OptionName = keyof typeof optionFlags;

const optionNames = Object.keys(optionFlags) as OptionName[];

/** The parsed command-line options; other members are ignored. */
export type SettingsArgs = { readonly [Name in OptionName | 'config']?: string | undefined };

/** The command-line options that are settings. */
export const settingsOptions: readonly SettingsOption[] = [
  { flags: '--config <file>', description: 'Settings file. Default: ./dragoman.yaml, if it exists.' },
  ...optionNames.map((name) => ({ flags: optionFlags[name], description: descriptionOf(ruleAt(form, [name])!) })),
];

/** The text of a setting in `--help`. */
function descriptionOf({ description, enum: values, default: initial }: Rule): string {
  return `${description!}${values ? ` One of: ${values.join(', ')}.` : ''}${typeof initial === 'string' || typeof initial === 'number' ? ` Default: ${initial}.` : ''}`;
}

export const theEnvironment = (): Readonly<Record<string, string | undefined>> => process.env;

/** The key with which commands sign in at a server. */
export const keyInEnvironment = (): string | undefined => theEnvironment()['DRAGOMAN_KEY'] || undefined;

export const fromEnvironment = (env: Variables): Layer =>
  singles(variables.flatMap(({ name, path }): Single[] => (env[name] === undefined ? [] : [{ name, path, value: read(ruleAt(form, path), env[name]) }])));

export const fromOptions = (args: SettingsArgs): Layer =>
  singles(
    optionNames.flatMap((name): Single[] => {
      const value = args[name];
      return value === undefined ? [] : [{ name: optionFlags[name].split(' ')[0]!, path: [name], value: read(ruleAt(form, [name]), value) }];
    }),
  );

/** Converts a text to the type of its setting. A text that cannot be converted stays text, and validation rejects it. */
export function read(rule: Rule | undefined, text: string): unknown {
  if (rule?.type === 'boolean' && /^(?:true|false)$/.test(text)) return text === 'true';
  if (rule?.type === 'number' && /^-?\d{1,15}(?:\.\d{1,15})?$/.test(text)) return Number(text);
  return rule?.type === 'integer' && /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}
