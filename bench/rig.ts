/** What every question needs: a temporary folder, a provider, clients, PostgreSQL, contestants. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { missing, open, type Contestant, type Name } from './contestants/index.ts';
import { makeTools } from './load/tools.ts';
import { postgresPrograms, startPostgres } from './postgres.ts';
import { cores, freePort, standAside, start, until } from './processes.ts';

export interface BenchOptions {
  readonly rounds: number;
  readonly seconds: number;
  /** Requests that warm a contestant up, at most; absent: as many as the question says. */
  readonly warmUp: number | undefined;
  /** The folder of another checkout of Dragoman that is measured wherever Dragoman is. */
  readonly before: string | undefined;
  /** Only these contestants. */
  readonly who: readonly string[] | undefined;
}

/** What the clients of one turn measured. Times in milliseconds. */
export interface Seen {
  readonly requests: number;
  readonly failed: number;
  readonly unfinished: number;
  readonly lines: number;
  readonly seconds: number;
  readonly first: Quantiles;
  readonly whole: Quantiles;
}

export interface Quantiles {
  readonly p50: number;
  readonly p99: number;
}

export interface Load {
  readonly body: string;
  readonly clients: number;
  readonly seconds: number;
  readonly each?: number;
  readonly ramp?: number;
  readonly together?: boolean;
  /** Requests a second in all; absent: each client asks again as soon as it has its answer. */
  readonly rate?: number;
}

export interface Upstream {
  readonly chunks?: number;
  readonly pause?: number;
}

export type Rig = Awaited<ReturnType<typeof openRig>>;

/** Opens the rig: a temporary folder, the tools, PostgreSQL where it is installed. `close` ends and removes all of it. */
export async function openRig(options: BenchOptions) {
  await beAlone();
  standAside();
  const folder = mkdtempSync(join(tmpdir(), 'dragoman-bench-'));
  const remarks = new Set<string>();
  const closing: (() => Promise<void>)[] = [];
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.on('exit', remove);
  const tools = makeTools(folder);
  if (tools.remark) remarks.add(tools.remark);
  const programs = postgresPrograms();
  const postgres = programs ? await startPostgres(programs, folder) : undefined;
  if (postgres) closing.push(postgres.stop);
  let places = 0;

  const clients = async (contestant: Pick<Contestant, 'port' | 'path' | 'headers'>, load: Load): Promise<Seen> => {
    const files = { body: join(folder, 'body'), headers: join(folder, 'headers') };
    writeFileSync(files.body, load.body);
    writeFileSync(files.headers, contestant.headers.map((line) => `${line}\r\n`).join(''));
    const { clients, seconds, each = 0, ramp = 0, together = false, rate = 0 } = load;
    const flags = { port: contestant.port, path: contestant.path, ...files, clients, seconds, each, ramp, together: together ? 1 : 0, rate };
    const words = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]);
    const { stdout } = await promisify(execFile)(tools.load[0], [...tools.load.slice(1), ...words], { timeout: (seconds + ramp + 60) * 1000 });
    return JSON.parse(stdout) as Seen;
  };

  return {
    options,
    folder,
    postgres,
    clients,
    /** Printed under the table: what could not be measured, and what makes a figure doubtful. */
    remarks,
    place: () => join(folder, `place-${++places}`),

    /** Starts a provider (chunks of a stream, microseconds between them), for as long as the measuring takes. */
    async withUpstream<Result>({ chunks = 200, pause = 0 }: Upstream, measure: (port: number) => Promise<Result>): Promise<Result> {
      const port = await freePort();
      const words = ['--port', port, '--chunks', chunks, '--pause', pause, '--life', 3600].map(String);
      const running = start({
        program: tools.upstream[0],
        words: [...tools.upstream.slice(1), ...words],
        core: cores.others,
        folder,
        log: join(folder, 'upstream.log'),
      });
      const address = `http://127.0.0.1:${port}/`;
      const reached = () =>
        fetch(address, { method: 'POST', body: '{}' })
          .then(async (answer) => (await answer.text()) !== '' || undefined)
          .catch(() => undefined);
      try {
        await until(reached, { what: 'The provider did not start.', alive: running.alive });
        return await measure(port);
      } finally {
        await running.stop();
      }
    },

    /** The contestants that were chosen and can be measured here. For each of the others a remark says why not. */
    present(names: readonly Name[]): Name[] {
      const all = options.before !== undefined && names.includes('dragoman') ? [...names, 'dragoman, before' as const] : names;
      const chosen = all.filter((name) => options.who === undefined || options.who.some((one) => name.startsWith(one)));
      return chosen.filter((name) => {
        const why = missing(name, postgres);
        if (why) remarks.add(why);
        return why === undefined;
      });
    },

    /** Starts a provider and the contestants in front of it, for as long as the measuring takes. */
    withContestants<Result>(
      names: readonly Name[],
      { profiled = false, counted = false, ablated = false, ...upstream }: Upstream & { profiled?: boolean; counted?: boolean; ablated?: boolean },
      measure: (contestants: readonly Contestant[], upstreamPort: number) => Promise<Result>,
    ): Promise<Result> {
      return this.withUpstream(upstream, async (upstreamPort) => {
        const contestants: Contestant[] = [];
        try {
          for (const name of names)
            contestants.push(await open(name, { folder: this.place(), upstreamPort, postgres, before: options.before, profiled, counted, ablated }));
          return await measure(contestants, upstreamPort);
        } finally {
          await Promise.all(contestants.map((contestant) => contestant.stop()));
        }
      });
    },

    async close() {
      for (const close of closing.toReversed()) await close();
      process.off('exit', remove);
      remove();
    },
  };
}

/** Refuses a second bench on this machine: they would measure each other. The abstract socket's name is free when the process ends. */
async function beAlone(): Promise<void> {
  const name = createServer().listen('\0dragoman-bench').unref();
  await once(name, 'listening').catch((cause: unknown) => {
    throw new Error('Another bench is running on this machine: wait for it.', { cause });
  });
}
