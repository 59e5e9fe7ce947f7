import { createServer } from 'node:net';
import { once } from 'node:events';
import type { Command } from 'commander';
import { readSettings, runningOllama, type Settings } from '#config/index';
import { sharedOptions, type AdminOptions } from './admin-command.ts';
import type { AdminClient } from './admin-client.ts';
import type { Check } from '#app/diagnostics/check';
import { systemClock } from '#kit/async/clock';
import { listeningProblem } from '#kit/net/listening-problem';
import { plain } from './table.ts';
import { CliError } from './cli-error.ts';
import { version } from '#app/version';

export function doctorCommand(program: Command): void {
  const command = program
    .command('doctor')
    .description('Check the runtime, port, database, disk, clock, and every provider and region. Costs nothing and changes nothing.');
  sharedOptions(command).action(doctor);
}

async function doctor(options: AdminOptions): Promise<void> {
  const { json, url: _url, key: _key, ...args } = options;
  const { remoteAdmin } = await import('./admin-client.ts');
  const { providerModules } = await import('#providers/modules');
  const admin = await remoteAdmin(options);
  const checks = admin
    ? await checksOf(admin)
    : await checksWithoutServer(readSettings({ kinds: providerModules, args, ollama: await runningOllama() }).settings);
  const ok = checks.every(({ state }) => state !== 'failed');
  if (json) console.log(JSON.stringify({ ok, url: admin?.url ?? null, checks }));
  else console.log(report(admin?.url, checks));
  if (!ok) process.exitCode = 1;
}

/** The running server's checks of itself, after one of whether it is ready. */
async function checksOf(admin: AdminClient & { readonly url: string }): Promise<readonly Check[]> {
  const startedAt = performance.now();
  const server = (state: Check['state'], says: string): Check => ({ name: 'server', state, says, milliseconds: null });
  try {
    const ready = await fetch(`${admin.url}/readyz`, { redirect: 'error', signal: AbortSignal.timeout(10_000) });
    const milliseconds = Math.round((performance.now() - startedAt) * 10) / 10;
    const { items } = (await admin.ask('GET', '/server/admin/doctor')) as { items: Check[] };
    if (!ready.ok) return [{ ...server('failed', 'responds, but is not ready to take requests.'), milliseconds }, ...items];
    return [{ ...server('ok', 'responds and is ready.'), milliseconds }, ...items];
  } catch (error) {
    if (error instanceof CliError && error.status !== 503) throw error; // the wrong key, the wrong address
    return [server('failed', error instanceof CliError ? error.message : 'does not respond.')];
  } finally {
    await admin.close();
  }
}

/** The checks where no server runs: what a start would find. */
async function checksWithoutServer(settings: Settings): Promise<readonly Check[]> {
  const [{ examineAll }, { examineDatabase }, { openProviders }, { openGuardedFetch }, { outwardOf, upstreamsOf }] = await Promise.all([
    import('#app/diagnostics/doctor'),
    import('#app/database'),
    import('#providers/index'),
    import('#kit/net/guarded-fetch'),
    import('#app/upstreams'),
  ]);
  const clock = systemClock;
  const upstreams = upstreamsOf(() => settings, clock);
  const providers = openProviders(settings.providers, { upstreams, clock, fetcher: openGuardedFetch({ clock, ...outwardOf(settings), allow: [] }) });
  try {
    const [port, checks] = await Promise.all([
      examinePort(settings),
      examineAll({
        settings: () => settings,
        clock,
        database: () => examineDatabase(settings, clock),
        providers: () => providers,
        upstreams,
        regions: () => [],
        lessons: () => [],
        lostHolders: async () => [],
        missingPlans: async () => [],
      }),
    ]);
    return [port, ...checks];
  } finally {
    await upstreams.close();
  }
}

async function examinePort({ host, port }: Settings): Promise<Check> {
  const check = (state: Check['state'], says: string): Check => ({ name: 'port', state, says, milliseconds: null });
  const server = createServer();
  try {
    server.listen(port, host);
    await once(server, 'listening');
    return check('ok', port === 0 ? `${host} has free ports.` : `Port ${port} of ${host} is free: no server is running there.`);
  } catch (error) {
    return check('failed', listeningProblem(error as NodeJS.ErrnoException, { host, port }));
  } finally {
    server.close();
  }
}

const marks: Readonly<Record<Check['state'], string>> = { ok: '✓', warning: '!', failed: '✗', skipped: '-' };

function report(url: string | undefined, checks: readonly Check[]): string {
  const width = Math.max(...checks.map(({ name }) => plain(name).length));
  const lines = checks.map(({ name, state, says, milliseconds }) => {
    const took = milliseconds === null ? '' : ` (${milliseconds < 10 ? milliseconds : Math.round(milliseconds)} ms)`;
    return `  ${marks[state]} ${plain(name).padEnd(width)}  ${plain(says)}${took}`;
  });
  const count = (wanted: Check['state']) => checks.filter(({ state }) => state === wanted).length;
  const [failed, warned, skipped] = [count('failed'), count('warning'), count('skipped')];
  const warnings = `${warned} ${warned === 1 ? 'warning' : 'warnings'}`;
  const summary =
    failed > 0
      ? `${failed} of ${checks.length} checks failed${warned > 0 ? `, ${warnings}` : ''}.`
      : warned > 0
        ? `No check failed, ${warnings}.`
        : `All checks passed${skipped > 0 ? `; ${skipped} did not apply` : ''}.`;
  return `\nDragoman ${version}, ${url === undefined ? 'no server is running on this data folder' : `server at ${plain(url)}`}\n\n${lines.join('\n')}\n\n${summary}\n`;
}
