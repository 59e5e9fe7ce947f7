import type { Command } from 'commander';
import { adminCommand, allOf, userOf, type AdminOptions, type ShownUser } from './admin-command.ts';
import { plain, table } from './table.ts';

/** `dragoman user …` */
export function userCommands(program: Command): void {
  const user = program.command('user').description('Users: adds, lists, changes and suspends them.');

  adminCommand<AdminOptions & { email: string; plan?: string; role?: string }>(user, {
    name: 'add',
    description: 'Adds a user.',
    begins: true,
    needs: { '--email <address>': 'E-mail address.' },
    takes: {
      '--plan <name>': 'Plan; absent: newUsers.plan of the settings, which is free if there is a plan of that name, else unlimited.',
      '--role <role>': 'user or admin; absent: user.',
    },
    async does(admin, { json, email, plan, role }) {
      const made = (await admin.ask('POST', '/server/admin/users', {
        email,
        ...(plan === undefined ? {} : { plan }),
        ...(role === undefined ? {} : { role }),
      })) as ShownUser;
      if (json) return printJson({ id: made.id, email: made.email, plan: made.plan, role: made.role });
      console.log(`Added ${made.email}: ${made.role}, plan ${made.plan}.\nA key for them: dragoman key create --email ${made.email} --name NAME`);
    },
  });

  adminCommand<AdminOptions & { query?: string }>(user, {
    name: 'list',
    description: 'Lists the users.',
    takes: { '--query <text>': 'Only those with this in their e-mail address.' },
    async does(admin, { json, query }) {
      const users = await Array.fromAsync(allOf<ShownUser>(admin, '/server/admin/users', query === undefined ? {} : { query }));
      if (json) return printJson({ items: users });
      if (users.length === 0) return console.log('There is no such user.');
      console.log(
        table(
          ['ID', 'EMAIL', 'ROLE', 'PLAN', 'STATUS', 'OWN LIMITS'],
          users.map((one) => [one.id, one.email, one.role, one.plan, one.status, ownLimits(one)]),
        ),
      );
    },
  });

  adminCommand<AdminOptions & { email: string; plan: string }>(user, {
    name: 'set-plan',
    description: 'Gives a user another plan.',
    needs: { '--email <address>': 'Whose.', '--plan <name>': 'The plan.' },
    async does(admin, { json, email, plan }) {
      const { id } = await userOf(admin, email);
      const changed = (await admin.ask('PATCH', `/server/admin/users/${id}`, { plan })) as ShownUser;
      if (json) return printJson(changed);
      console.log(`${changed.email} has the plan ${changed.plan} now.`);
    },
  });

  adminCommand<AdminOptions & { email: string; undo?: true }>(user, {
    name: 'suspend',
    description: 'Suspends a user: no key of theirs is good any more, until --undo.',
    needs: { '--email <address>': 'Whom.' },
    takes: { '--undo': 'Lets them in again.' },
    async does(admin, { json, email, undo }) {
      const { id } = await userOf(admin, email);
      const changed = (await admin.ask('PATCH', `/server/admin/users/${id}`, { status: undo ? 'active' : 'suspended' })) as ShownUser;
      if (json) return printJson(changed);
      console.log(undo ? `${changed.email} is active again.` : `${changed.email} is suspended: their keys are refused from now on.`);
    },
  });
}

const known = new Set(['id', 'email', 'role', 'plan', 'status']);

function ownLimits(user: ShownUser): string {
  const own = Object.entries(user).filter(([name]) => !known.has(name));
  return own.map(([name, value]) => `${name} ${plain(String(value))}`).join(', ');
}

const printJson = (value: object) => console.log(JSON.stringify(value));
