import type { Answering } from '#kit/upstream/response';
import type { Clock } from '#kit/async/clock';
import { noteMilliseconds } from '#core/event';
import type { Said } from '#core/generate';

/** Where the bytes of an answer go that nobody reads on the way. */
export interface Passage {
  /** @returns false when the client has enough to read for now */
  give(bytes: Uint8Array): boolean;
  drained(): Promise<void>;
  /** Output tokens given since this was asked last. */
  untold(): number;
}

/** Hands an answer on as it comes, to its end. Every two seconds it tells how much has passed, so that the books know of it should this process die. */
export async function* passing(answering: Answering, clock: Clock, passage: Passage): AsyncGenerator<Said> {
  let toldAt = clock.monotonic();
  let over = answering.pipe((bytes) => {
    const ready = passage.give(bytes);
    if (!ready) void passage.drained().then(() => answering.resume());
    if (clock.monotonic() - toldAt >= noteMilliseconds) answering.nudge();
    return ready;
  });
  while (!(await over)) {
    toldAt = Infinity; // not again until this was heard
    yield [{ type: 'passed', tokens: passage.untold() }];
    toldAt = clock.monotonic();
    over = answering.piped();
  }
}
