import type { UpstreamResponse } from '#kit/upstream/response';
import type { Clock } from '#kit/async/clock';
import { noteMilliseconds, type Events } from '#core/event';

/** The sink for the bytes of an answer that is forwarded unparsed. */
export interface Passage {
  /** @returns false while the client reads slowly */
  give(bytes: Uint8Array): boolean;
  drained(): Promise<void>;
  /** Output tokens since the last call. */
  untold(): number;
}

/** Forwards an answer unparsed, to its end. Every two seconds it reports the amount forwarded, so that the usage is on record should this process die. */
export async function* passing(response: UpstreamResponse, clock: Clock, passage: Passage): AsyncGenerator<Events> {
  let reportedAt = clock.monotonic();
  let over = response.pipe((bytes) => {
    const ready = passage.give(bytes);
    if (!ready) void passage.drained().then(() => response.resume());
    if (clock.monotonic() - reportedAt >= noteMilliseconds) response.nudge();
    return ready;
  });
  while (!(await over)) {
    reportedAt = Infinity; // not again until this report has been consumed
    yield [{ type: 'passed', tokens: passage.untold() }];
    reportedAt = clock.monotonic();
    over = response.piped();
  }
}
