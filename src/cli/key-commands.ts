import { program as command } from '#config/program';
import type { Command } from 'commander';
import { adminCommand, allOf, unknownModels, userOf, type AdminOptions } from './admin-command.ts';
import { CliError } from './cli-error.ts';
import { plain, table } from './table.ts';

interface ShownKey {
  readonly id: number;
  readonly name: string;
  readonly shown: string;
  readonly scopes: readonly string[] | null;
  readonly models: readonly string[] | null;
  readonly createdAt: string;
  readonly expiresAt: string | null;
}

export function keyCommands(program: Command): void {
  const key = program.command('key').description('Create, list, rotate and revoke API keys.');

  adminCommand<AdminOptions & { email: string; name: string; scopes?: string; models?: string; expires?: string }>(key, {
    name: 'create',
    description: 'Create an API key for a user. The key is shown only once.',
    needs: { '--email <address>': "The user's e-mail address.", '--name <name>': 'A name for the key, such as where it is used.' },
    takes: {
      '--scopes <names>':
        'What the key may be used for, separated by commas: query, datasets, passthrough, agent_builder, mcp, plugins, admin. Default: everything.',
      '--models <names>': 'The models that the key may use, separated by commas; "*" is all. Default: all.',
      '--expires <time>': 'When the key expires, in ISO 8601: 2027-01-31T12:00:00Z. Default: never.',
    },
    fields: { expiresAt: '--expires' },
    async run(admin, { json, email, name, scopes, models, expires }) {
      const { id } = await userOf(admin, email);
      const body = {
        name,
        ...(scopes === undefined ? {} : { scopes: words(scopes) }),
        ...(models === undefined ? {} : { models: words(models) }),
        ...(expires === undefined ? {} : { expiresAt: expires }),
      };
      const made = (await admin.ask('POST', `/server/admin/users/${id}/keys`, body)) as Pick<ShownKey, 'id' | 'name' | 'scopes'> & { key: string };
      for (const one of await unknownModels(admin, words(models ?? ''), email))
        console.error(`The server has no model ${plain(one)} now: the key cannot use it until there is one.`);
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

  adminCommand<AdminOptions & { email: string; id: string; grace?: string }>(key, {
    name: 'rotate',
    description: 'Replace the secret of an API key: its ID, limits and usage stay. The new key is shown only once.',
    needs: { '--email <address>': "The user's e-mail address.", '--id <number>': `ID of the key, from ${command} key list.` },
    takes: { '--grace <seconds>': 'How long the old key stays valid: 0 for not at all, at most 2592000 (30 days). Default: 86400, a day.' },
    fields: { graceSeconds: '--grace' },
    async run(admin, { json, email, id, grace }) {
      const user = await userOf(admin, email);
      const body = grace === undefined ? {} : { graceSeconds: secondsIn(grace) };
      const path = `/server/admin/users/${user.id}/keys/${encodeURIComponent(id)}/rotate`;
      const made = (await admin.ask('POST', path, body)) as { name: string; key: string; oldUntil: string };
      if (json) return console.log(JSON.stringify(made));
      console.log(
        `The API key "${made.name}" of ${user.email} was rotated. Save the new key: it is not shown again. The old key is valid until ${made.oldUntil}.\n\n  ${made.key}\n`,
      );
    },
  });

  adminCommand<AdminOptions & { email: string; id: string }>(key, {
    name: 'revoke',
    description: 'Revoke an API key, with immediate effect.',
    needs: { '--email <address>': "The user's e-mail address.", '--id <number>': `ID of the key, from ${command} key list.` },
    async run(admin, { json, email, id }) {
      const user = await userOf(admin, email);
      const revoked = (await admin.ask('DELETE', `/server/admin/users/${user.id}/keys/${encodeURIComponent(id)}`)) as ShownKey;
      console.log(json ? JSON.stringify(revoked) : `The key "${revoked.name}" (${revoked.shown}) of ${user.email} is revoked.`);
    },
  });
}

/** @throws CliError 400 */
function secondsIn(text: string): number {
  if (!/^\d{1,7}$/.test(text)) throw new CliError(`--grace must be a number of seconds such as 3600, not ${plain(text)}.`, 400);
  return Number(text);
}

const words = (text: string) => text.split(',').map((word) => word.trim());
const all = (words: readonly string[] | null) => words?.join(', ') ?? 'all';
