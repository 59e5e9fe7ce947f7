import { once } from 'node:events';
import { slowness } from '../support/cpu-time.ts';
import type { ServerProcess } from '../support/server-process.ts';
import type { Watched } from './loop-watch.ts';

/** What a server is started with, so that it can be asked what it did: `startProcess(…, { preload: loopWatch })`. */
export const loopWatch = new URL('./loop-watch.ts', import.meta.url);

/**
 * What a server did since it was last asked; its stretch is stated as on the machine that limits are written for. Asked to `collect`, it drops its garbage first,
 * and its memory is what is resident then. @throws Error if it has ended
 */
export async function watched({ child }: Pick<ServerProcess, 'child'>, request: 'seen' | 'collect' = 'seen'): Promise<Watched> {
  if (child.exitCode !== null || child.signalCode !== null) throw new Error('The server has ended.');
  const answer = once(child, 'message');
  child.send(request);
  const [seen] = (await answer) as [Watched];
  return { ...seen, stretch: seen.stretch / slowness() };
}
