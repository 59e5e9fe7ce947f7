import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '#kit/async/clock';
import { localTokenFile, writeLocalToken } from './local-token.ts';
import { version } from './version.ts';

/**
 * Writes `server.json`, with the server's address and the process that takes its signals, and the token for commands on this machine beside it.
 * @returns removes both
 */
export async function announced(folder: string, { url, localToken }: { url: string; localToken: string }, clock: Clock): Promise<() => Promise<void>> {
  const place = join(folder, 'server.json');
  await writeFile(place, `${JSON.stringify({ pid: process.pid, url, startedAt: new Date(clock.now()).toISOString(), version })}\n`, { mode: 0o600 });
  await writeLocalToken(folder, localToken);
  return async () => {
    await rm(place, { force: true });
    await rm(localTokenFile(folder), { force: true });
  };
}
