import type { UpstreamResponse } from '#kit/upstream/response';
import type { Clock } from '#kit/async/clock';
import { noteMilliseconds } from '#core/event';
import type { Events } from '#core/event';

/** Where the bytes of an answer go that nobody reads on the way. */
export interface Passage {
  /** @returns false when the client has enough to read for now */
  give(bytes: Uint8Array): boolean;
  drained(): Promise<void>;
  /** Output tokens given since this was asked last. */
  untold(): number;
}

/** Hands an answer on as it comes, to its end. Every two seconds it tells how much has passed, so that the books know of it should this process die. */
export async function* passing(response: UpstreamResponse, clock: Clock, passage: Passage): AsyncGenerator<Events> {
  let toldAt = clock.monotonic();
  let over = response.pipe((bytes) => {
    const ready = passage.give(bytes);
    if (!ready) void passage.drained().then(() => response.resume());
    if (clock.monotonic() - toldAt >= noteMilliseconds) response.nudge();
    return ready;
  });
  while (!(await over)) {
    toldAt = Infinity; // not again until this was heard
    yield [{ type: 'passed', tokens: passage.untold() }];
    toldAt = clock.monotonic();
    over = response.piped();
  }
}
