import { program as command } from '#config/program';
import type { Command } from 'commander';
import { adminCommand, type AdminOptions } from './admin-command.ts';
import { table } from './table.ts';

interface ShownHolder {
  readonly id: string;
  readonly machine: string;
  readonly startedAt: string;
  readonly seenAt: string;
  readonly how: string | null;
  readonly by: string | null;
  readonly accounts: number;
}

export function holderCommands(program: Command): void {
  const holder = program.command('holder').description('List the servers that hold leases on quota, and write off a lost one.');

  adminCommand<AdminOptions>(holder, {
    name: 'list',
    description:
      'List the servers that hold leases, and the last hundred that did. ACCOUNTS: how many quotas of users, teams and keys a server has leased a share of.',
    async run(admin, { json }) {
      const { items } = (await admin.ask('GET', '/server/admin/holders')) as { items: ShownHolder[] };
      if (json) return console.log(JSON.stringify({ items }));
      const rows = items.map((one) => [one.id, one.machine, one.startedAt, one.seenAt, one.accounts, endOf(one)]);
      console.log(table(['ID', 'MACHINE', 'STARTED', 'LAST SEEN', 'ACCOUNTS', 'END'], rows));
    },
  });

  adminCommand<AdminOptions & { id: string }>(holder, {
    name: 'write-off',
    description: `Free the leases of a server that is lost together with its data folder. Usage that it had not recorded is lost. If the data folder still exists, use ${command} journal adopt instead.`,
    needs: { '--id <id>': `ID of the holder, from ${command} holder list.` },
    async run(admin, { json, id }) {
      const gone = (await admin.ask('POST', `/server/admin/holders/${encodeURIComponent(id)}/write-off`)) as ShownHolder;
      console.log(json ? JSON.stringify(gone) : `Wrote off ${gone.id} (${gone.machine}). Its leases are free again.`);
    },
  });
}

const endOf = ({ how, by }: ShownHolder) => `${how ?? ''}${by === null ? '' : ` by ${by}`}`;
