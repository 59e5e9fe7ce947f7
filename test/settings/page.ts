import { variables } from '#config/given';
import type { Rule } from '#config/form';
import { settingsSchema } from '#config/index';
import { restartSettings } from '#config/schema/index';
import { providerModules } from '#providers/modules';

/** The page docs/settings.md: every setting of the schema and every variable, with its default. */
export function settingsPage(): string {
  const schema = settingsSchema(providerModules) as Rule;
  return `${introduction}
## Settings of the file

| setting | default | what |
|---|---|---|
${rowsOf(schema, '').join('\n')}

## Environment variables

A variable overrides the setting of the file, and an option of the command line overrides the variable. Empty variables count as unset.

| variable | setting | default | what |
|---|---|---|---|
${[...own, ...fromSettings(schema), ...fromProviders(), ...ofTheRuntime].map((cells) => `| ${cells.join(' | ')} |`).join('\n')}

Variables of vendors' SDKs that are not read, and what to use in their place. The start warns of those that are set:

| variable | use |
|---|---|
${notRead()
  .map((cells) => `| ${cells.map(code).join(' | ')} |`)
  .join('\n')}
`;
}

const notRead = () => providerModules.flatMap(({ unread = {} }) => Object.entries(unread));

const introduction = `# Settings

Settings come from the command line (\`node bin/dragoman.js serve --help\`), the environment, \`dragoman.yaml\` and the defaults, in that order. This page is written from the schema of the settings by \`node bin/run.js test/settings/write.ts\`. The same schema, \`dragoman.schema.json\`, completes the file in your editor.

- \`NAME\` in a setting is a name that you choose; \`[]\` is an entry of a list.
- \`\${NAME}\` in a string of the file is replaced by the environment variable.
- A file \`.env\` in the folder of the settings file, with lines \`NAME=value\`, is read for variables that the environment does not set. It holds keys: make it readable for you alone (\`chmod 600 .env\`), and keep it out of your repository.
- Changes of the file take effect when it is saved, or on \`SIGHUP\`. Settings marked ↻ take effect after a restart.
- A default of – means that the setting is absent unless you give it.
`;

/** Not settings, but read before the settings or only here. */
const own = [
  ['`DRAGOMAN_CONFIG`', '–', '`./dragoman.yaml`, if it exists', 'Path of the settings file.'],
  ['`DRAGOMAN_KEY`', '–', '–', 'Your API key, in the examples on the page at `/`.'],
];

const ofTheRuntime = [
  ['`NODE_EXTRA_CA_CERTS`', '–', '–', 'PEM file with further certificate authorities that are trusted, read by Node.'],
  ['`NODE_COMPILE_CACHE`', '–', 'a folder in the cache of the user', 'Folder for compiled code, read by Node.'],
  ['`UV_THREADPOOL_SIZE`', '–', '`16`', 'Threads for host names, files and compression, read by Node.'],
];

const fromSettings = (schema: Rule) =>
  variables.map(({ name, path }) => {
    const rule = path.reduce<Rule | undefined>((at, member) => at?.properties?.[String(member)], schema);
    return [code(name), rule ? code(path.join('.')) : '–', rule ? defaultOf(rule) : '–', rule ? said(rule) : onlyHere[name]!];
  });

/** What the file may not have: secrets, and what is only of use on the first start. */
const onlyHere: Readonly<Record<string, string>> = {
  DRAGOMAN_MASTER_KEY: 'Key that encrypts what is stored: 32 random bytes in base64. Without it, a key is made in `data/master.key`.',
  DRAGOMAN_ADMIN_EMAIL: 'E-mail address of the first user, on the first start. Without it: `admin@localhost`.',
  DRAGOMAN_ADMIN_API_KEY: 'API key of the first user, on the first start: 64 characters of `[A-Za-z0-9_-]`. Without it, a key is made and printed.',
  GOOGLE_APPLICATION_CREDENTIALS: "Key file for providers of kind `vertex` that have no credentials of their own. Without it, the machine's own identity.",
};

const fromProviders = () => [
  ...providerModules.flatMap(({ fromEnvironment: found }) =>
    found
      ? [
          ...(found.key ? [[code(found.key), code(`providers.${found.name}.apiKeys`), '–', `Adds the provider \`${found.name}\` with this key.`]] : []),
          ...(found.address
            ? [[code(found.address), code(`providers.${found.name}.baseUrl`), code(found.baseUrl), `Address of the provider \`${found.name}\`.`]]
            : []),
        ]
      : [],
  ),
  ['`OLLAMA_HOST`', '`providers.ollama.baseUrl`', 'found on this machine', 'Adds the provider `ollama` at this address.'],
];

function rowsOf(rule: Rule, prefix: string): string[] {
  return Object.entries(rule.properties ?? {}).flatMap(([name, member]) => {
    const path = `${prefix}${name}`;
    const named = typeof member.additionalProperties === 'object' ? member.additionalProperties : undefined;
    const below = [
      ...rowsOf(member, `${path}.`),
      ...(named ? rowsOf(named, `${path}.NAME.`) : []),
      ...(member.items ? rowsOf(member.items, `${path}[].`) : []),
    ];
    const isGroup = member.properties !== undefined && Object.keys(member.properties).length > 0 && !named;
    const mark = (restartSettings as readonly string[]).includes(path.split('.')[0]!) ? ' ↻' : '';
    return [...(isGroup ? [] : [`| ${code(path)}${mark} | ${defaultOf(member)} | ${said(member)} |`]), ...below];
  });
}

interface Bounded extends Rule {
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
}

const code = (text: string) => `\`${text}\``;

/** ` 0 to 65535.`, ` At least 1.`, ` More than 0, at most 60.` */
function rangeOf({ minimum, exclusiveMinimum, maximum = Infinity }: Pick<Bounded, 'minimum' | 'exclusiveMinimum' | 'maximum'>): string {
  const most = maximum < 1e15 ? maximum : undefined;
  if (minimum !== undefined) return most === undefined ? ` At least ${minimum}.` : ` ${minimum} to ${most}.`;
  const parts = [exclusiveMinimum === undefined ? [] : `more than ${exclusiveMinimum}`, most === undefined ? [] : `at most ${most}`].flat();
  const text = parts.join(', ');
  return text === '' ? '' : ` ${text[0]!.toUpperCase()}${text.slice(1)}.`;
}

function defaultOf({ default: value }: Rule): string {
  if (value === undefined) return '–';
  return value === '' ? 'empty' : code(typeof value === 'string' ? value : JSON.stringify(value));
}

function said({ description = '', enum: values, ...bounds }: Bounded): string {
  const words = values ? ` One of: ${values.join(', ')}.` : '';
  return `${description}${words}${rangeOf(bounds)}`.replaceAll('|', '\\|').replaceAll('<', '&lt;');
}
