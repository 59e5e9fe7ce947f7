import { program as command } from '#config/program';
import type { Command } from 'commander';
import { adminCommand, allOf, userOf, type AdminOptions, type ShownUser } from './admin-command.ts';
import { plain, table } from './table.ts';

export function userCommands(program: Command): void {
  const user = program.command('user').description('Add, list, change and suspend users.');

  adminCommand<AdminOptions & { email: string; plan?: string; role?: string }>(user, {
    name: 'add',
    description: 'Add a user.',
    creates: true,
    needs: { '--email <address>': 'E-mail address.' },
    takes: {
      '--plan <name>': 'Plan. Default: newUsers.plan in the settings; if that is not set, the plan "free" if there is one, otherwise "unlimited".',
      '--role <role>': 'user, auditor or admin. Default: user.',
    },
    async run(admin, { json, email, plan, role }) {
      const made = (await admin.ask('POST', '/server/admin/users', {
        email,
        ...(plan === undefined ? {} : { plan }),
        ...(role === undefined ? {} : { role }),
      })) as ShownUser;
      if (json) return printJson({ id: made.id, email: made.email, plan: made.plan, role: made.role });
      console.log(
        `Added ${made.email} with the role ${made.role} and the plan ${made.plan}.\nTo create a key: ${command} key create --email ${made.email} --name NAME`,
      );
    },
  });

  adminCommand<AdminOptions & { query?: string }>(user, {
    name: 'list',
    description: 'List users.',
    takes: { '--query <text>': 'Only users whose e-mail address contains this text.' },
    async run(admin, { json, query }) {
      const users = await Array.fromAsync(allOf<ShownUser>(admin, '/server/admin/users', query === undefined ? {} : { query }));
      if (json) return printJson({ items: users });
      if (users.length === 0) return console.log(query === undefined ? 'There are no users.' : 'No user matches.');
      console.log(
        table(
          ['ID', 'EMAIL', 'ROLE', 'PLAN', 'STATUS', 'OWN LIMITS'],
          users.map((one) => [one.id, one.email, one.role, one.plan, one.status, ownLimits(one)]),
        ),
      );
    },
  });

  changeCommands(user);
}

/** What changes or removes a user. */
function changeCommands(user: Command): void {
  adminCommand<AdminOptions & { email: string; plan: string }>(user, {
    name: 'set-plan',
    description: "Change a user's plan.",
    needs: { '--email <address>': "The user's e-mail address.", '--plan <name>': 'The new plan.' },
    async run(admin, { json, email, plan }) {
      const { id } = await userOf(admin, email);
      const changed = (await admin.ask('PATCH', `/server/admin/users/${id}`, { plan })) as ShownUser;
      if (json) return printJson(changed);
      console.log(`${changed.email} is now on the plan ${changed.plan}.`);
    },
  });

  adminCommand<AdminOptions & { email: string; role: string }>(user, {
    name: 'set-role',
    description: "Change a user's role.",
    needs: { '--email <address>': "The user's e-mail address.", '--role <role>': 'user, auditor or admin.' },
    async run(admin, { json, email, role }) {
      const { id } = await userOf(admin, email);
      const changed = (await admin.ask('PATCH', `/server/admin/users/${id}`, { role })) as ShownUser;
      if (json) return printJson(changed);
      console.log(`${changed.email} now has the role ${changed.role}.`);
    },
  });

  adminCommand<AdminOptions & { email: string; undo?: true }>(user, {
    name: 'suspend',
    description: 'Suspend a user: all of their keys stop working until --undo.',
    needs: { '--email <address>': "The user's e-mail address." },
    takes: { '--undo': 'Lift the suspension.' },
    async run(admin, { json, email, undo }) {
      const { id } = await userOf(admin, email);
      const changed = (await admin.ask('PATCH', `/server/admin/users/${id}`, { status: undo ? 'active' : 'suspended' })) as ShownUser;
      if (json) return printJson(changed);
      console.log(undo ? `${changed.email} is active again.` : `${changed.email} is suspended. Their keys no longer work.`);
    },
  });

  adminCommand<AdminOptions & { email: string; yes?: true }>(user, {
    name: 'delete',
    description: 'Delete a user with all keys and what is kept for them. Recorded usage stays.',
    needs: { '--email <address>': "The user's e-mail address.", '--yes': 'Confirm: this cannot be undone.' },
    async run(admin, { json, email }) {
      const { id } = await userOf(admin, email);
      const gone = (await admin.ask('DELETE', `/server/admin/users/${id}`)) as ShownUser;
      if (json) return printJson(gone);
      console.log(`${gone.email} is deleted.`);
    },
  });
}

const known = new Set(['id', 'email', 'role', 'plan', 'status']);

function ownLimits(user: ShownUser): string {
  const own = Object.entries(user).filter(([name]) => !known.has(name));
  return own.map(([name, value]) => `${name} ${plain(String(value))}`).join(', ');
}

const printJson = (value: object) => console.log(JSON.stringify(value));
