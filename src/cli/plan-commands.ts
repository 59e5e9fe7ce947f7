import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { LineCounter, parse, YAMLParseError } from 'yaml';
import { adminCommand, unknownModels, type AdminOptions } from './admin-command.ts';
import { CliError } from './cli-error.ts';
import { plain, table } from './table.ts';

interface ShownPlan {
  readonly name: string;
  readonly source: string;
  readonly models?: readonly string[];
  readonly modelLimits?: object;
}

export function planCommands(program: Command): void {
  const plan = program.command('plan').description('List, create, replace and delete plans.');

  adminCommand<AdminOptions>(plan, {
    name: 'list',
    description: 'List the plans and their limits, those of the settings file too.',
    async run(admin, { json }) {
      const { items } = (await admin.ask('GET', '/server/admin/plans')) as { items: readonly ShownPlan[] };
      if (json) return console.log(JSON.stringify({ items }));
      const rows = items.map(({ name, source, ...limits }) => [name, source, limitsOf(limits)]);
      console.log(table(['NAME', 'SOURCE', 'LIMITS'], rows));
    },
  });

  adminCommand<AdminOptions & { name: string; file: string }>(plan, {
    name: 'set',
    description: 'Create or replace a plan. Changing a plan of the settings file means editing the file.',
    needs: {
      '--name <name>': 'Name of the plan.',
      '--file <file>': 'Its limits as YAML or JSON, as in the settings: `monthlyTokens: 100000`; - is the standard input.',
    },
    async run(admin, { json, name, file }) {
      const made = (await admin.ask('PUT', `/server/admin/plans/${encodeURIComponent(name)}`, membersIn(file))) as ShownPlan;
      const { name: _, source: __, ...limits } = made;
      const { items: users } = (await admin.ask('GET', '/server/admin/users?limit=1')) as { items: readonly { email: string }[] };
      const named = [...(made.models ?? []), ...Object.keys(made.modelLimits ?? {})];
      for (const one of await unknownModels(admin, named, users[0]?.email))
        console.error(`The server has no model ${plain(one)} now: what the plan says of it has no effect until there is one.`);
      console.log(json ? JSON.stringify(made) : `The plan ${plain(name)} now has ${limitsOf(limits)}.`);
    },
  });

  adminCommand<AdminOptions & { name: string }>(plan, {
    name: 'delete',
    description: 'Delete a plan that nobody has. One of the settings file is deleted there.',
    needs: { '--name <name>': 'Name of the plan.' },
    async run(admin, { json, name }) {
      const gone = (await admin.ask('DELETE', `/server/admin/plans/${encodeURIComponent(name)}`)) as ShownPlan;
      console.log(json ? JSON.stringify(gone) : `The plan ${plain(name)} is deleted.`);
    },
  });
}

const limitsOf = (limits: object): string => {
  const told = Object.entries(limits).map(([name, value]) => `${name} ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`);
  return told.length === 0 ? 'no limits' : told.join(', ');
};

const largestFile = 1_048_576;

/** A YAML or JSON object of a file; `-` is the standard input. @throws CliError 400 */
function membersIn(file: string): object {
  let text: string;
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (error) {
    throw new CliError(`--file: ${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'}).`, 400);
  }
  if (text.length > largestFile) throw new CliError('--file: it is larger than 1 MiB.', 400);
  let value: unknown;
  const lineCounter = new LineCounter();
  try {
    value = parse(text, { schema: 'core', maxAliasCount: 0, prettyErrors: false, lineCounter });
  } catch (error) {
    const at = error instanceof YAMLParseError ? lineCounter.linePos(error.pos[0]) : undefined;
    throw new CliError(`--file: ${file} is neither YAML nor JSON${at ? `: see line ${at.line}, column ${at.col}` : ''}.`, 400);
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw new CliError('--file: it must have members, such as monthlyTokens: 100000.', 400);
  return value;
}
