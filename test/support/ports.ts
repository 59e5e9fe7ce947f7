import { once } from 'node:events';
import { createServer } from 'node:net';

/*
 * Ports for programs that must be told theirs, and for servers that stop listening for a while. A port that the system gave out may be given to somebody else
 * before it is listened on; these are below those that it gives out, and each process of a test run has some of its own.
 */
const [lowest, ranges, each] = [10_000, 110, 200];
const slot = Number(process.env['VITEST_POOL_ID'] ?? 0);
const run = slot > 0 ? process.ppid : process.pid;
const first = lowest + ((run * 10 + slot) % ranges) * each;
let taken = process.pid % each;

/** A port that nobody listens on, nor will. */
export async function ownPort(): Promise<number> {
  for (let tries = 0; tries < each; tries++) {
    const port = first + (taken++ % each);
    if (await isPortFree(port)) return port;
  }
  throw new Error(`No port between ${first} and ${first + each} is free.`);
}

export async function isPortFree(port: number): Promise<boolean> {
  const server = createServer().listen(port);
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  await new Promise((resolve) => server.close(resolve));
  return true;
}
