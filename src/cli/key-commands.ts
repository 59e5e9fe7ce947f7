import type { Command } from 'commander';
import { adminCommand, allOf, userOf, type AdminOptions } from './admin-command.ts';
import { table } from './table.ts';

interface ShownKey {
  readonly id: number;
  readonly name: string;
  readonly shown: string;
  readonly scopes: readonly string[] | null;
  readonly models: readonly string[] | null;
  readonly createdAt: string;
  readonly expiresAt: string | null;
}

/** `dragoman key …` */
export function keyCommands(program: Command): void {
  const key = program.command('key').description('Create, list and revoke API keys.');

  adminCommand<AdminOptions & { email: string; name: string; scopes?: string; models?: string; expires?: string }>(key, {
    name: 'create',
    description: 'Create an API key for a user. The key is shown only once.',
    needs: { '--email <address>': "The user's e-mail address.", '--name <name>': 'A name for the key, such as where it is used.' },
    takes: {
      '--scopes <names>':
        'What the key may be used for, separated by commas: query, datasets, passthrough, agent_builder, mcp, plugins, admin. Default: everything.',
      '--models <names>': 'The models that the key may use, separated by commas. Default: all.',
      '--expires <time>': 'When the key expires, in ISO 8601: 2027-01-31T12:00:00Z. Default: never.',
    },
    async run(admin, { json, email, name, scopes, models, expires }) {
      const { id } = await userOf(admin, email);
      const body = {
        name,
        ...(scopes === undefined ? {} : { scopes: words(scopes) }),
        ...(models === undefined ? {} : { models: words(models) }),
        ...(expires === undefined ? {} : { expiresAt: expires }),
      };
      const made = (await admin.ask('POST', `/server/admin/users/${id}/keys`, body)) as Pick<ShownKey, 'id' | 'name' | 'scopes'> & { key: string };
      if (json) return console.log(JSON.stringify(made));
      console.log(
        `Created the API key "${made.name}" for ${email}${made.scopes ? `, limited to ${made.scopes.join(', ')}` : ''}. Save it: it is not shown again.\n\n  ${made.key}\n`,
      );
    },
  });

  adminCommand<AdminOptions & { email: string }>(key, {
    name: 'list',
    description: "List a user's API keys, without those that are revoked.",
    needs: { '--email <address>': "The user's e-mail address." },
    async run(admin, { json, email }) {
      const { id } = await userOf(admin, email);
      const keys = await Array.fromAsync(allOf<ShownKey>(admin, `/server/admin/users/${id}/keys`));
      if (json) return console.log(JSON.stringify({ items: keys }));
      if (keys.length === 0) return console.log(`${email} has no keys.`);
      const rows = keys.map((one) => [one.id, one.name, one.shown, all(one.scopes), all(one.models), one.createdAt.slice(0, 10), one.expiresAt ?? 'never']);
      console.log(table(['ID', 'NAME', 'KEY', 'SCOPES', 'MODELS', 'CREATED', 'EXPIRES'], rows));
    },
  });

  adminCommand<AdminOptions & { email: string; id: string }>(key, {
    name: 'revoke',
    description: 'Revoke an API key, with immediate effect.',
    needs: { '--email <address>': "The user's e-mail address.", '--id <number>': 'ID of the key, from `dragoman key list`.' },
    async run(admin, { json, email, id }) {
      const user = await userOf(admin, email);
      const revoked = (await admin.ask('DELETE', `/server/admin/users/${user.id}/keys/${encodeURIComponent(id)}`)) as ShownKey;
      console.log(json ? JSON.stringify(revoked) : `The key "${revoked.name}" (${revoked.shown}) of ${user.email} is revoked.`);
    },
  });
}

const words = (text: string) => text.split(',').map((word) => word.trim());
const all = (words: readonly string[] | null) => words?.join(', ') ?? 'all';
