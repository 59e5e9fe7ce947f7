import type { UpstreamResponse } from '#kit/upstream/response';
import type { Clock } from '#kit/async/clock';
import { noteMilliseconds } from '#core/event';
import type { Events } from '#core/event';

/** Where the bytes of an answer go that is forwarded unparsed. */
export interface Passage {
  /** @returns false when the client has enough to read for now */
  give(bytes: Uint8Array): boolean;
  drained(): Promise<void>;
  /** Output tokens given since this was asked last. */
  untold(): number;
}

/** Forwards an answer as it comes, to its end. Every two seconds it reports how much has passed, so that the usage is on record should this process die. */
export async function* passing(response: UpstreamResponse, clock: Clock, passage: Passage): AsyncGenerator<Events> {
  let reportedAt = clock.monotonic();
  let over = response.pipe((bytes) => {
    const ready = passage.give(bytes);
    if (!ready) void passage.drained().then(() => response.resume());
    if (clock.monotonic() - reportedAt >= noteMilliseconds) response.nudge();
    return ready;
  });
  while (!(await over)) {
    reportedAt = Infinity; // not again until this report was taken
    yield [{ type: 'passed', tokens: passage.untold() }];
    reportedAt = clock.monotonic();
    over = response.piped();
  }
}
