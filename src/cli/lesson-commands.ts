import { program as command } from '#config/program';
import type { Command } from 'commander';
import { adminCommand, type AdminOptions } from './admin-command.ts';
import { CliError } from './cli-error.ts';
import { table } from './table.ts';

interface ShownLesson {
  readonly id: number;
  readonly provider: string;
  readonly model: string;
  readonly wire: string;
  readonly fields: readonly string[];
  readonly learned: object;
  readonly until: string;
}

export function lessonCommands(program: Command): void {
  const lesson = program.command('lesson').description("List what was learned from providers' refusals, and forget it.");

  adminCommand<AdminOptions>(lesson, {
    name: 'list',
    description: 'List what was learned of models from refusals of their providers, the newest first.',
    async run(admin, { json }) {
      const { items } = (await admin.ask('GET', '/server/admin/lessons')) as { items: ShownLesson[] };
      if (json) return console.log(JSON.stringify({ items }));
      if (items.length === 0) return console.log('Nothing was learned from refusals in the last hour.');
      const rows = items.map((one) => [one.id, one.provider, one.model, one.wire, one.fields.join(', '), JSON.stringify(one.learned), one.until]);
      console.log(table(['ID', 'PROVIDER', 'MODEL', 'WIRE', 'REFUSED', 'LEARNED', 'UNTIL'], rows));
    },
  });

  adminCommand<AdminOptions & { id?: string; all?: true }>(lesson, {
    name: 'forget',
    description: 'Forget one lesson or all: the next request asks the provider anew.',
    takes: { '--id <id>': `ID of the lesson, from ${command} lesson list.`, '--all': 'All lessons.' },
    async run(admin, { json, id, all }) {
      if ((id === undefined) === (all === undefined)) throw new CliError('Give either --id or --all.', 400);
      const path = id === undefined ? '' : `/${encodeURIComponent(id)}`;
      const { forgotten } = (await admin.ask('DELETE', `/server/admin/lessons${path}`)) as { forgotten: number };
      console.log(json ? JSON.stringify({ forgotten }) : `Forgot ${forgotten} ${forgotten === 1 ? 'lesson' : 'lessons'}.`);
    },
  });
}
