import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import type { UsageRow } from '#core/usage-row';
import { adminCommand, allOf, userOf, type AdminOptions } from './admin-command.ts';
import type { AdminClient } from './admin-client.ts';
import { emailsOf } from './names.ts';
import { plain } from './table.ts';
import { CliError } from './cli-error.ts';

interface LogLine extends Pick<
  UsageRow,
  'requestId' | 'step' | 'userId' | 'app' | 'model' | 'provider' | 'status' | 'end' | 'inputTokens' | 'outputTokens' | 'planTokens' | 'totalMs'
> {
  /** ISO 8601. */
  readonly at: string;
}

type LogsOptions = AdminOptions & { follow?: true; limit?: string; email?: string; model?: string; status?: string };

const pauseMilliseconds = 1000;
/** How many requests are remembered: one that is settled late appears among older ones. */
const mostSeen = 5000;
/** How many new requests are read at once. */
const mostNew = 500;

export function logsCommand(program: Command): void {
  adminCommand<LogsOptions>(program, {
    name: 'logs',
    description:
      'Show the latest requests, oldest first, with times in UTC. APP is what the request named as its app, otherwise the name of its key. Replays under an Idempotency-Key and requests that a limit refused are not listed.',
    takes: {
      '-f, --follow': 'Keep printing new requests until Ctrl-C.',
      '--limit <number>': 'How many requests to show. Default: 20.',
      '--email <address>': 'Only requests of the user with this e-mail address.',
      '--model <name>': 'Only requests for this model.',
      '--status <number>': 'Only requests with this HTTP status.',
    },
    run: logs,
  });
}

async function logs(admin: AdminClient, { json, follow, limit = '20', email, model, status }: LogsOptions): Promise<void> {
  if (!/^[1-9]\d{0,5}$/.test(limit)) throw new CliError('--limit must be a number from 1 to 999999.', 400);
  if (follow && !admin.isServer) throw new CliError('No server is running: there is nothing to follow.', 409);
  const query = {
    ...(email === undefined ? {} : { userId: String((await userOf(admin, email)).id) }),
    ...(model === undefined ? {} : { model }),
    ...(status === undefined ? {} : { status }),
  };
  const seen = new Set<string>();
  const remember = (lines: readonly LogLine[]) => {
    for (const line of lines.toReversed()) seen.add(nameOf(line));
    for (const name of seen) if (seen.size > mostSeen) seen.delete(name);
  };
  const emailOf = emailsOf(admin);
  const print = async (lines: readonly LogLine[]) => {
    for (const line of lines.toReversed()) console.log(json ? JSON.stringify(line) : lineText(line, await emailOf(line.userId)));
  };

  // Older requests than those that are printed must be known too: else they would look new.
  const latest = await upTo(Math.max(Number(limit), follow ? mostNew : 0), allOf<LogLine>(admin, '/server/admin/logs', query));
  remember(latest);
  const first = latest.slice(0, Number(limit));
  if (!json && (first.length > 0 || follow)) console.log(head);
  if (!json && first.length === 0 && !follow) console.log(Object.keys(query).length > 0 ? 'No request matches.' : 'No requests have been logged yet.');
  await print(first);
  while (follow) {
    await sleep(pauseMilliseconds);
    const recent = await upTo(mostNew, allOf<LogLine>(admin, '/server/admin/logs', query), (line) => seen.has(nameOf(line)));
    remember(recent);
    await print(recent);
  }
}

const nameOf = ({ requestId, step }: LogLine) => `${requestId}/${step}`;

/** The first `most` lines that are not known. Stops after a hundred known ones: nothing new follows them. */
async function upTo(most: number, lines: AsyncIterable<LogLine>, isKnown: (line: LogLine) => boolean = () => false): Promise<LogLine[]> {
  const found: LogLine[] = [];
  let known = 0;
  for await (const line of lines) {
    if (isKnown(line)) {
      if (++known === 100) break;
    } else if (found.push(line) === most) break;
  }
  return found;
}

const columns = [
  ['TIME', 19],
  ['STATUS', 6],
  ['END', 15],
  ['USER', 24],
  ['MODEL', 24],
  ['PROVIDER', 12],
  ['IN', 8],
  ['OUT', 8],
  ['PLAN TOKENS', 11],
  ['MS', 8],
  ['APP', 16],
  ['REQUEST ID', 0],
] as const;

const numbers = new Set(['IN', 'OUT', 'PLAN TOKENS', 'MS']);

/** Columns have fixed widths, since lines are printed one at a time. */
const row = (cells: readonly string[]) =>
  columns
    .map(([name, width], at) => (numbers.has(name) ? cells[at]!.padStart(width) : cells[at]!.padEnd(width)))
    .join('  ')
    .trimEnd();

const head = row(columns.map(([name]) => name));

function lineText({ at, status, end, model, provider, inputTokens, outputTokens, planTokens, totalMs, app, requestId }: LogLine, email: string): string {
  const time = at.slice(0, 19).replace('T', ' ');
  const counts = [inputTokens, outputTokens, planTokens, Math.round(totalMs)];
  const cells = [time, status, end, short(email, 24), short(model, 24), short(provider, 12), ...counts, short(app, 16), requestId];
  return row(cells.map((cell) => plain(String(cell))));
}

const short = (text: string, most: number) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
