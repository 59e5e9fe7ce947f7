import type { GenerateEvent } from '#model/event';
import { Fault, noRoom } from '#model/fault';
import type { Context } from '#model/generate';
import { sizeOf } from '#kit/size-of';

/** Bytes: a longer answer is not held back, but given up. */
export const mostHeldBack = 67_108_864;

/**
 * Counts the events of an answer that is held back.
 *
 * @returns to be called with each event. @throws Fault `upstream-failed` past 64 MiB, `overloaded` where there is no room in memory
 */
export function heldBack({ memory }: Pick<Context, 'memory'>): (event: GenerateEvent) => void {
  let bytes = 0;
  return (event) => {
    const more = sizeOf(event);
    bytes += more;
    if (bytes > mostHeldBack) throw new Fault('upstream-failed', 'The answer of the provider is longer than what can be held back.');
    if (memory && !memory.take(more)) throw noRoom();
  };
}
