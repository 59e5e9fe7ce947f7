import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { groups as knownGroups } from '#resources/usage/groups';
import { adminCommand, type AdminOptions } from './admin-command.ts';
import { namesOf } from './names.ts';
import { table } from './table.ts';

type Sum = Readonly<Record<string, string | number | null>>;

export function usageCommand(program: Command): void {
  adminCommand<AdminOptions & { from?: string; to?: string; groupBy?: string; tz?: string; format?: string }>(program, {
    name: 'usage',
    description: 'Show what was used, in sums. Default: this month (UTC), by model.',
    takes: {
      '--from <time>': 'Start, in ISO 8601: 2026-11-01. Default: the first of this month.',
      '--to <time>': 'End, not included. Default: the first of the next month.',
      '--group-by <words>': `What to sum by, separated by commas: ${knownGroups.join(', ')}, tag:NAME. Default: model.`,
      '--tz <zone>': 'Time zone in which days are cut, such as Europe/Berlin. Default: UTC.',
      '--format <format>': 'csv or jsonl: the sums as a file, for spreadsheets and scripts.',
    },
    async run(admin, { json, from, to, groupBy = 'model', tz, format }) {
      const given = Object.entries({ from, to, tz, format }).filter((one): one is [string, string] => one[1] !== undefined);
      const path = (by: string) => `/server/admin/usage?${new URLSearchParams([['groupBy', by], ...given]).toString()}`;
      const sums = async (by: string) => ((await admin.ask('GET', path(by))) as { items: readonly Sum[] }).items;
      if (format !== undefined) return pipeline(await admin.download(path(groupBy)), process.stdout, { end: false });
      const items = await sums(groupBy);
      if (json) return console.log(JSON.stringify({ items }));
      if (items.length === 0) return console.log('Nothing was used in this time.');
      const groups = groupBy.split(',').map((word) => word.trim());
      const names = await namesOf(admin, groups, sums);
      const head = [...groups.map((name) => name.toUpperCase()), 'REQUESTS', 'IN', 'OUT', 'PLAN TOKENS', 'COST', 'ERRORS'];
      const rows = items.map((item) => [
        ...groups.map((name) => names.get(name)?.(item[name]) ?? String(item[name] ?? '–')),
        ...['requests', 'inputTokens', 'outputTokens', 'planTokens'].map((name) => Number(item[name])),
        costOf(item),
        Number(item['errors']),
      ]);
      console.log(table(head, rows));
    },
  });
}

/** `$1.20`, and how many requests have no known price. */
function costOf({ costUsd, unpriced }: Sum): string {
  const known = typeof costUsd === 'number' ? `$${costUsd.toFixed(costUsd < 1 ? 4 : 2)}` : 'unknown';
  return typeof unpriced === 'number' && unpriced > 0 && known !== 'unknown' ? `${known} + ${unpriced} unpriced` : known;
}
