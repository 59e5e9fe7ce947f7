import { setFlagsFromString } from 'node:v8';
import type { Clock } from '../async/clock.ts';

/**
 * Counts the memory that bytes of bodies and answers take outside the heap as if it were in it, when V8 decides whether to collect the heap. By default
 * V8 would collect the whole heap after every 64 MB of it, which is a dozen large answers. Call it once in each process.
 */
export const countMemoryOutsideHeap = (): void => setFlagsFromString('--external-memory-accounted-in-global-limit');

/**
 * Lets a process that has nothing to do keep its compiled code for ten minutes. By default V8 may shrink the heap of such a process after 8 s. With the last object
 * of a kind it then discards the code that was compiled for that kind, and the next chats take two to three times as much CPU time until it is compiled again.
 * Call it once in each process.
 */
export const keepCompiledCode = (): void => setFlagsFromString('--memory-reducer-delay-ms=600000');

/** Milliseconds: what begins with a process has begun by then. */
const waitMilliseconds = 3000;

/**
 * Collects the garbage of the start, unless somebody waits for an answer: a quarter of the memory of an idle process, which V8 would leave until as much again
 * has been allocated. It takes about 100 ms. A process that is busy from the start is left alone: it allocates as much soon, and this discards compiled code.
 */
export function collectGarbageOfStart(clock: Pick<Clock, 'after'>, isIdle: () => boolean): void {
  clock.after(waitMilliseconds, () => {
    if (isIdle()) void collectGarbage();
  });
}

/**
 * Collects the garbage of this thread now. For threads that leave much memory outside a small heap with each piece of work, such as that of a WebAssembly program:
 * V8 would let it grow to hundreds of megabytes.
 */
export async function collectGarbage(): Promise<void> {
  try {
    const { Session } = await import('node:inspector');
    const session = new Session();
    session.connect();
    session.post('HeapProfiler.collectGarbage', () => setImmediate(() => session.disconnect())); // within the answer itself it would wait for ever
  } catch {
    // a Node without inspector: the garbage stays
  }
}
