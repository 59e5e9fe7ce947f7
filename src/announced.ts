import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from './kit/clock.ts';
import { version } from './version.ts';

/** Writes `server.json`: where this server is, and the process that takes its signals. @returns what takes it away again */
export async function announced(folder: string, url: string, clock: Clock): Promise<() => Promise<void>> {
  const place = join(folder, 'server.json');
  await writeFile(place, `${JSON.stringify({ pid: process.pid, url, startedAt: new Date(clock.now()).toISOString(), version })}\n`);
  return () => rm(place, { force: true });
}
