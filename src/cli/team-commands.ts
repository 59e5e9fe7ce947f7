import type { Command } from 'commander';
import { inUnits } from '#kit/text/in-units';
import type { AdminClient } from './admin-client.ts';
import { adminCommand, allOf, userOf, type AdminOptions, type ShownUser } from './admin-command.ts';
import { CliError } from './cli-error.ts';
import { plain, table } from './table.ts';

interface ShownTeam {
  readonly id: number;
  readonly name: string;
  readonly plan: string;
  readonly members: readonly number[];
}

const byName = { '--name <name>': 'Name of the team.' };
const usersFlags = {
  '--members <addresses>': 'E-mail addresses of all its members, separated by commas; "" for none.',
  '--admins <addresses>': 'E-mail addresses of all who administer it, separated by commas; "" for none.',
};

interface Users {
  readonly members?: string;
  readonly admins?: string;
}

export function teamCommands(program: Command): void {
  const team = program.command('team').description('Add, list, change and delete teams.');

  adminCommand<AdminOptions & Users & { name: string; plan?: string }>(team, {
    name: 'add',
    description: 'Add a team: what its members spend also counts against its plan.',
    needs: byName,
    takes: { '--plan <name>': 'Plan of the team. Default: unlimited.', ...usersFlags },
    async run(admin, { json, name, plan = 'unlimited', ...users }) {
      const made = (await admin.ask('POST', '/server/admin/teams', { name, plan, ...(await idsOf(admin, users)) })) as ShownTeam;
      console.log(
        json ? JSON.stringify(made) : `Added the team ${plain(made.name)} with the plan ${made.plan} and ${inUnits(made.members.length, 'members')}.`,
      );
    },
  });

  adminCommand<AdminOptions>(team, {
    name: 'list',
    description: 'List teams.',
    async run(admin, { json }) {
      const teams = await Array.fromAsync(allOf<ShownTeam>(admin, '/server/admin/teams'));
      if (json) return console.log(JSON.stringify({ items: teams }));
      if (teams.length === 0) return console.log('There are no teams.');
      const users = await Array.fromAsync(allOf<ShownUser>(admin, '/server/admin/users'));
      const emails = new Map(users.map(({ id, email }) => [id, email]));
      const rows = teams.map(({ id, name, plan, members }) => [id, name, plan, members.map((one) => emails.get(one) ?? one).join(', ')]);
      console.log(table(['ID', 'NAME', 'PLAN', 'MEMBERS'], rows));
    },
  });

  adminCommand<AdminOptions & Users & { name: string; plan?: string }>(team, {
    name: 'change',
    description: 'Change the plan, the members or the administrators of a team.',
    needs: byName,
    takes: { '--plan <name>': 'The new plan.', ...usersFlags },
    async run(admin, { json, name, plan, ...users }) {
      const change = { ...(plan === undefined ? {} : { plan }), ...(await idsOf(admin, users)) };
      if (Object.keys(change).length === 0) throw new CliError('Nothing is to be changed: add --plan, --members or --admins.', 400);
      const { id } = await teamOf(admin, name);
      const changed = (await admin.ask('PATCH', `/server/admin/teams/${id}`, change)) as ShownTeam;
      console.log(
        json ? JSON.stringify(changed) : `The team ${plain(changed.name)} has the plan ${changed.plan} and ${inUnits(changed.members.length, 'members')}.`,
      );
    },
  });

  adminCommand<AdminOptions & { name: string }>(team, {
    name: 'delete',
    description: 'Delete a team. Its members stay.',
    needs: byName,
    async run(admin, { json, name }) {
      const { id } = await teamOf(admin, name);
      const gone = (await admin.ask('DELETE', `/server/admin/teams/${id}`)) as ShownTeam;
      console.log(json ? JSON.stringify(gone) : `The team ${plain(gone.name)} is deleted.`);
    },
  });
}

/** @throws CliError where no team has this name, or several have it */
async function teamOf(admin: AdminClient, name: string): Promise<ShownTeam> {
  const found: ShownTeam[] = [];
  for await (const team of allOf<ShownTeam>(admin, '/server/admin/teams')) if (team.name === name) found.push(team);
  const [team, ...others] = found;
  if (!team) throw new CliError(`There is no team ${plain(name)}.`, 404);
  if (others.length > 0)
    throw new CliError(`${inUnits(found.length, 'teams')} are called ${plain(name)}: rename them over HTTP (PATCH /server/admin/teams/{id}).`, 409);
  return team;
}

/** The ids of the members and administrators that are named. @throws CliError for an address that is no user's */
async function idsOf(admin: AdminClient, { members, admins }: Users): Promise<{ readonly members?: readonly number[]; readonly admins?: readonly number[] }> {
  const ids = async (emails: string) => {
    const found: number[] = [];
    for (const email of emails.split(',').map((one) => one.trim())) if (email !== '') found.push((await userOf(admin, email)).id);
    return found;
  };
  return { ...(members === undefined ? {} : { members: await ids(members) }), ...(admins === undefined ? {} : { admins: await ids(admins) }) };
}
