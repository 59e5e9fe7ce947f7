import { AsyncResource } from 'node:async_hooks';
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

/** Begins as the objects do that `process.nextTick` makes. While no tick waits there is no other such object. */
let tick: object | undefined;

/**
 * Keeps `process.nextTick` fast, which Node calls eight times a request. It makes its objects by a literal with computed names, and V8 makes such a literal fast
 * only while the shapes that it goes through are those of the first time. When the heap is collected a few times while no tick waits, V8 forgets these shapes, and
 * from then on each call takes some 6,000 instructions in place of 400, for as long as the process lives. An object with the first names keeps them. On a Node
 * whose ticks begin differently it has no effect. Call it once in each process.
 * @returns the object that keeps them; undefined on such a Node
 */
export function keepTickShape(): object | undefined {
  const symbols = Object.getOwnPropertySymbols(new AsyncResource('Tick'));
  const [id, trigger] = ['async_id_symbol', 'trigger_async_id_symbol'].map((name) => symbols.find(({ description }) => description === name));
  if (id && trigger) tick ??= { [id]: 0.5, [trigger]: 0.5 }; // floating point numbers, as Node's are
  return tick;
}

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
