import { UpstreamError, type UpstreamResponse } from '#kit/upstream/response';
import type { Clock } from '#kit/async/clock';
import { noteMilliseconds, type Events } from '#core/event';

/** The sink for the bytes of an answer that is forwarded unparsed. */
export interface Passage {
  /** @returns false while the client reads slowly */
  give(bytes: Uint8Array): boolean;
  drained(): Promise<void>;
  /** Output tokens since the last call. */
  untold(): number;
  /** Takes note of that many. Absent, or false where it is not enough: they are reported by an event. */
  readonly noted?: ((tokens: number) => boolean) | undefined;
  /** Is the answer complete? Behind its last frame the connection may end in any way. */
  isOver?(): boolean;
}

/** Forwards an answer unparsed, to its end. Every two seconds it reports the amount forwarded, so that the usage is on record should this process die. */
export async function* passing(response: UpstreamResponse, clock: Clock, passage: Passage): AsyncGenerator<Events> {
  let reportedAt = clock.monotonic();
  const give = (bytes: Uint8Array): boolean => {
    const ready = passage.give(bytes);
    if (!ready) void passage.drained().then(() => response.resume());
    const now = clock.monotonic();
    if (now - reportedAt < noteMilliseconds) return ready;
    reportedAt = now;
    if (!passage.noted?.(passage.untold())) response.nudge();
    return ready;
  };
  try {
    for (let over = response.pipe(give); !(await over); over = response.piped()) {
      reportedAt = Infinity; // not again until this report has been consumed
      yield [{ type: 'passed', tokens: passage.untold() }];
      reportedAt = clock.monotonic();
    }
  } catch (error) {
    if (!(error instanceof UpstreamError) || !passage.isOver?.()) throw error;
  }
}
