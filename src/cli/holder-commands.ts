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

/** `dragoman holder …` */
export function holderCommands(program: Command): void {
  const holder = program.command('holder').description('Processes that hold a part of what users may spend: lists them, and writes off one that is lost.');

  adminCommand<AdminOptions>(holder, {
    name: 'list',
    description: 'Lists the processes that hold something, and the last that did.',
    async does(admin, { json }) {
      const { items } = (await admin.ask('GET', '/server/admin/holders')) as { items: ShownHolder[] };
      if (json) return console.log(JSON.stringify({ items }));
      const rows = items.map((one) => [one.id, one.machine, one.startedAt, one.seenAt, one.accounts, endOf(one)]);
      console.log(table(['ID', 'MACHINE', 'STARTED', 'LAST SEEN', 'ACCOUNTS', 'END'], rows));
    },
  });

  adminCommand<AdminOptions & { id: string }>(holder, {
    name: 'write-off',
    description:
      'Frees what a process holds that is gone for good with its data folder: what it had not booked yet never will be. Where the folder is left, use `journal adopt`.',
    needs: { '--id <id>': 'Which, as `holder list` shows it.' },
    async does(admin, { json, id }) {
      const gone = (await admin.ask('POST', `/server/admin/holders/${encodeURIComponent(id)}/write-off`)) as ShownHolder;
      console.log(json ? JSON.stringify(gone) : `What ${gone.id} of ${gone.machine} held is free again.`);
    },
  });
}

const endOf = ({ how, by }: ShownHolder) => `${how ?? ''}${by === null ? '' : ` by ${by}`}`;
