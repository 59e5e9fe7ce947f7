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
  const key = program.command('key').description('API keys: makes, lists and revokes them.');

  adminCommand<AdminOptions & { email: string; name: string; scopes?: string; models?: string; expires?: string }>(key, {
    name: 'create',
    description: 'Makes an API key for a user. It is shown this once.',
    needs: { '--email <address>': 'Whose key.', '--name <name>': 'What it is for.' },
    takes: {
      '--scopes <names>': 'What it may be used for, with commas between: query, datasets, passthrough, agent_builder, mcp, plugins, admin; absent: everything.',
      '--models <names>': 'The only models it may ask, with commas between.',
      '--expires <time>': 'ISO 8601, as 2027-01-31T12:00:00Z; absent: never.',
    },
    async does(admin, { json, email, name, scopes, models, expires }) {
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
        `API key "${made.name}" of ${email}${made.scopes ? `, for ${made.scopes.join(', ')} only` : ''}. It is shown this once: keep it.\n\n  ${made.key}\n`,
      );
    },
  });

  adminCommand<AdminOptions & { email: string }>(key, {
    name: 'list',
    description: 'Lists the keys of a user that are not revoked.',
    needs: { '--email <address>': 'Whose.' },
    async does(admin, { json, email }) {
      const { id } = await userOf(admin, email);
      const keys = await Array.fromAsync(allOf<ShownKey>(admin, `/server/admin/users/${id}/keys`));
      if (json) return console.log(JSON.stringify({ items: keys }));
      if (keys.length === 0) return console.log(`${email} has no keys.`);
      const rows = keys.map((one) => [one.id, one.name, one.shown, all(one.scopes), all(one.models), one.createdAt.slice(0, 10), one.expiresAt ?? 'never']);
      console.log(table(['ID', 'NAME', 'KEY', 'SCOPES', 'MODELS', 'MADE', 'EXPIRES'], rows));
    },
  });

  adminCommand<AdminOptions & { email: string; id: string }>(key, {
    name: 'revoke',
    description: 'Revokes a key at once.',
    needs: { '--email <address>': 'Whose key.', '--id <number>': 'Its id, as `key list` shows it.' },
    async does(admin, { json, email, id }) {
      const user = await userOf(admin, email);
      const revoked = (await admin.ask('DELETE', `/server/admin/users/${user.id}/keys/${encodeURIComponent(id)}`)) as ShownKey;
      console.log(json ? JSON.stringify(revoked) : `The key "${revoked.name}" (${revoked.shown}) of ${user.email} is revoked.`);
    },
  });
}

const words = (text: string) => text.split(',').map((word) => word.trim());
const all = (words: readonly string[] | null) => words?.join(', ') ?? 'all';
