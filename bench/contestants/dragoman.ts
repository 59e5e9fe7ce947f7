/** Dragoman with a PostgreSQL server: `dragoman serve` in an empty folder, everything switched on. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cores, freePort, start } from '../processes.ts';
import { answering, counting, key, naming, type Contestant, type Entrant, type Name, type Place } from './contestant.ts';

export const dragoman: Entrant = {
  missing: (postgres) => (postgres ? undefined : 'PostgreSQL is not installed (apt-get install postgresql): the rows with DATABASE_URL are missing.'),
  open: (place) => openWithPostgres('dragoman', place),
};

/** Another checkout of Dragoman, with PostgreSQL: what a change costs. */
export const dragomanBefore: Entrant = {
  missing: dragoman.missing,
  open: (place) => openWithPostgres('dragoman, before', place, place.before),
};

const { memoryOptions } = (await import(new URL('../../bin/runtime.js', import.meta.url).href)) as { readonly memoryOptions: readonly string[] };

async function openWithPostgres(name: Name, place: Place, checkout?: string): Promise<Contestant> {
  const postgres = place.postgres!;
  const databaseUrl = place.databaseUrl ?? (await postgres.database());
  const contestant = await openDragoman(name, place, { DATABASE_URL: databaseUrl, DRAGOMAN_WORKERS: String(place.workers ?? 1) }, checkout);
  return { ...contestant, databasePid: postgres.pid };
}

const root = join(import.meta.dirname, '../..');

/** Starts Dragoman with these environment variables. */
export async function openDragoman(
  name: Name,
  { folder, upstreamPort, profiled, counted, ablated, unpinned }: Place,
  environment: Readonly<Record<string, string>>,
  checkout = root,
): Promise<Contestant> {
  writeFileSync(join(folder, 'dragoman.yaml'), settings(upstreamPort));
  const port = await freePort();
  const ablation = ablated ? await freePort() : undefined;
  const preload = ablated ? ['--import', join(root, 'bench/ablation/preload.ts')] : [];
  const program =
    profiled || ablation
      ? [...memoryOptions, ...naming(profiled), ...preload, '--conditions=dragoman-source', join(checkout, 'src/main.ts')]
      : [join(checkout, 'bin/dragoman.js')];
  const running = start({
    ...counting([...program, 'serve'], counted),
    core: unpinned ? cores.any : cores.gateway,
    folder,
    environment: {
      PORT: String(port),
      DRAGOMAN_ADMIN_EMAIL: 'bench@example.com',
      DRAGOMAN_ADMIN_API_KEY: key,
      ...environment,
      ...(ablation && { DRAGOMAN_BENCH_ABLATION: String(ablation) }),
    },
    log: join(folder, 'log'),
  });
  const contestant = await answering(name, running, {
    port,
    path: '/server/chatcompat/v1/chat/completions',
    headers: [`Authorization: Bearer ${key}`],
    folder,
    ...(ablation && { ablation }),
  });
  const { pid } = JSON.parse(readFileSync(join(folder, 'data/server.json'), 'utf8')) as { pid: number };
  return { ...contestant, pid, launcherPid: running.pid };
}

function settings(upstreamPort: number): string {
  return `providers:
  openai: { dialect: openai-chat, baseUrl: "http://127.0.0.1:${upstreamPort}/v1", apiKeys: [upstream-secret] }
  responses: { dialect: openai-responses, baseUrl: "http://127.0.0.1:${upstreamPort}/v1", apiKeys: [upstream-secret] }
  anthropic: { dialect: anthropic-messages, baseUrl: "http://127.0.0.1:${upstreamPort}", apiKeys: [upstream-secret] }
  platform:
    { dialect: gemini, kind: vertex, project: bench, baseUrl: "http://127.0.0.1:${upstreamPort}/{region}/v1", credentials: { accessToken: upstream-secret }, regions: [us-central1] }
models:
  gpt-4o-mini: { targets: [{ provider: openai, model: gpt-4o-mini }] }
  gpt-4o: { targets: [{ provider: responses, model: gpt-4o-mini }] }
  claude-haiku-4-5: { targets: [{ provider: anthropic, model: claude-haiku-4-5 }] }
  gemini-2.5-flash: { targets: [{ provider: platform, model: gemini-2.5-flash }] }
outbound: { allow: ["http://127.0.0.1:${upstreamPort}"] }
`;
}
