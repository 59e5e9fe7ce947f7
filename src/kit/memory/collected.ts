import { setFlagsFromString } from 'node:v8';
import type { Clock } from '../async/clock.ts';

/**
 * Counts the memory that bytes of bodies and answers take outside the heap as if it were in it, when V8 decides whether to collect the heap. By default
 * V8 would collect the whole heap after every 64 MB of it, which is a dozen large answers. Call it once in each process.
 */
export const countMemoryOutsideHeap = (): void => setFlagsFromString('--external-memory-accounted-in-global-limit');

/** Milliseconds: what begins with a process has begun by then. */
const waitMilliseconds = 3000;
/** How often a process that is busy is looked at. One that is busy from the start needs the memory itself. */
const tries = 3;

/**
 * Collects the garbage of the start when nobody waits for an answer: a quarter of the memory of an idle process, which V8 would leave until as much again has
 * been allocated. It takes about 100 ms. Later it would be dear: it forgets compiled code too.
 */
export function collectGarbageOfStart(clock: Pick<Clock, 'after'>, isIdle: () => boolean, left = tries): void {
  clock.after(waitMilliseconds, () => {
    if (isIdle()) void collect();
    else if (left > 1) collectGarbageOfStart(clock, isIdle, left - 1);
  });
}

async function collect(): Promise<void> {
  try {
    const { Session } = await import('node:inspector');
    const session = new Session();
    session.connect();
    session.post('HeapProfiler.collectGarbage', () => setImmediate(() => session.disconnect())); // within the answer itself it would wait for ever
  } catch {
    // a Node without inspector: the garbage stays
  }
}
