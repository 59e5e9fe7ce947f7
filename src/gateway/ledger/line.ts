import type { Clock } from '#kit/clock';

/** What a call waits for: tokens or dollars that running calls hold, or the end of a stream. */
export type Obstacle = 'held' | 'streams';

/** A call and its place among those of the same user. */
export interface Place {
  readonly stream: boolean;
  obstacle?: Obstacle;
  wake?: () => void;
}

/** The calls of one user that wait for what running calls hold. First come, first served; only streams wait for the end of a stream. */
export class Line {
  readonly #clock: Clock;
  readonly #places = new Set<Place>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get empty(): boolean {
    return this.#places.size === 0;
  }

  /** What a call that came before waits for, if this one must not overtake it. */
  before(place: Place): Obstacle | undefined {
    for (const other of this.#places) {
      if (other === place) return undefined;
      if (other.obstacle === 'held' || place.stream) return other.obstacle;
    }
    return undefined;
  }

  /** Takes the last place, unless it has one. Resolves when its turn may have come, after so many milliseconds, or rejects when the caller leaves. */
  wait(place: Place, obstacle: Obstacle, milliseconds: number, signal: AbortSignal): Promise<void> {
    this.#places.add(place);
    place.obstacle = obstacle;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const over = (end: () => void) => () => {
        cancel();
        signal.removeEventListener('abort', left);
        delete place.wake;
        end();
      };
      const left = over(() => reject(signal.reason));
      place.wake = over(resolve);
      const cancel = this.#clock.after(milliseconds, place.wake);
      signal.addEventListener('abort', left);
    });
  }

  /** Gives up its place, served or not. */
  leave(place: Place): void {
    if (this.#places.delete(place)) this.move();
  }

  /** Something was freed: wakes those whose turn it may be. */
  move(): void {
    for (const place of this.#places) {
      place.wake?.();
      if (place.obstacle === 'held') return;
    }
  }
}
