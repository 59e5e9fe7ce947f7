import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConvertDocument } from '#core/document';
import type { ByteLimits } from '#kit/memory/byte-budget';
import { systemClock, type Clock } from '#kit/async/clock';
import type { Outside } from '#kit/net/guarded-dial';
import { openLog, type Log } from '../../src/telemetry/log.ts';
import { startServer } from '../../src/app/server.ts';
import { freshDatabase } from './databases.ts';
import { withDatabase } from './migrated.ts';
import { readSettings } from './settings-folder.ts';

/** The whole server, running in the test's process, with a settings file as an operator would write it. */
export interface TestServer {
  readonly url: string;
  /** The first user's key. */
  readonly key: string;
  /** Sends a request with that key. */
  ask(path: string, body?: unknown, init?: RequestInit): Promise<Response>;
  /** Replaces the `yaml` part of its settings file and applies it. */
  change(yaml: string): Promise<void>;
  close(): Promise<void>;
}

export const chat = '/server/chatcompat/v1/chat/completions';

/** The provider key in the settings: it must never appear in an answer or a log. */
export const providerKey = 'sk-provider-canary-8f21';

export interface TestServerSettings {
  /** Added to the settings file. */
  readonly yaml?: string;
  /** Address of a scripted upstream, which becomes the provider `fake` for `gpt-4o-mini` and for every unknown name. */
  readonly upstream?: string;
  readonly databaseUrl?: string;
  /** Where its settings and data are. Without one it is a new folder, and unless `databaseUrl` is given the database is a new one on the PostgreSQL server of the run. */
  readonly folder?: string;
  readonly log?: Log;
  readonly clock?: Clock;
  readonly outside?: Outside;
  readonly memory?: ByteLimits;
  readonly convert?: ConvertDocument;
  /** Further environment variables. */
  readonly env?: Readonly<Record<string, string>>;
}

export async function startTestServer({
  yaml = '',
  upstream,
  databaseUrl,
  folder,
  log = { ...openLog('silent'), level: () => {} }, // at whatever level
  clock = systemClock,
  outside,
  memory,
  convert,
  env: more,
}: TestServerSettings = {}): Promise<TestServer> {
  const own = folder === undefined ? await mkdtemp(join(tmpdir(), 'dragoman-')) : undefined;
  const home = folder ?? own!;
  const fresh = own === undefined || databaseUrl !== undefined || more?.['DATABASE_URL'] !== undefined ? undefined : await freshDatabase();
  const url = databaseUrl ?? fresh?.url;
  const file = join(home, 'dragoman.yaml');
  const write = (more: string) => writeFile(file, `${upstream === undefined ? '' : providerYaml(upstream)}${more}`);
  await write(yaml);
  const key = 'k'.repeat(64);
  const env = {
    DRAGOMAN_CONFIG: file,
    PORT: '0',
    DRAGOMAN_DATA: join(home, 'data'),
    DRAGOMAN_ADMIN_API_KEY: key,
    ...more,
    ...(url ? { DATABASE_URL: url } : {}),
  };
  const read = () => readSettings({ args: {}, env, cwd: home }).settings;
  const settings = read();
  if (!settings.databaseUrl) await withDatabase(settings.data);
  const server = await startServer({ settings, log, clock, ...(outside ? { outside } : {}), ...(memory ? { memory } : {}), ...(convert ? { convert } : {}) });
  const close = async () => {
    await server.close(1);
    await fresh?.drop();
    if (own) await rm(own, { recursive: true, force: true });
  };
  let closing: Promise<void> | undefined;
  return {
    url: server.url,
    key,
    ask: (path, body, init = {}) =>
      fetch(server.url + path, {
        ...(body === undefined ? {} : { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) }),
        ...init,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...(init.headers as Record<string, string>) },
      }),
    async change(more) {
      await write(more);
      await server.change(read());
    },
    close: () => (closing ??= close()),
  };
}

/** Settings with a scripted upstream as the provider `fake`, and other providers beside it. */
export function providerYaml(upstream: string, others = ''): string {
  return `
providers:
  fake: { dialect: openai-chat, baseUrl: "${upstream}/v1", apiKeys: ["${providerKey}"] }
${others}models:
  gpt-4o-mini: { targets: [{ provider: fake }] }
`;
}
