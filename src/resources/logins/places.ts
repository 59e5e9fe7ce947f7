import type { Clock } from '#kit/async/clock';

/** Where visitors come from, in this process: what counts of the time just past, and the line of those who are judged one after the other. */
export interface Place {
  /** Monotonic milliseconds, the oldest first. */
  times: number[];
}

export interface Places {
  /** What counts of a place where nobody stands in line. */
  at(name: string): Place;
  /** Judges the visitors of one place in turn. @throws what `full` gives where too many are in line */
  inTurn<Result>(name: string, full: () => Error, judge: (place: Place) => Promise<Result>): Promise<Result>;
}

interface Line extends Place {
  inLine: number;
  last: Promise<unknown>;
}

const mostInLine = 100;
const mostPlaces = 20_000;

/** @param windowMilliseconds for which times count */
export function openPlaces(clock: Pick<Clock, 'monotonic'>, windowMilliseconds: number): Places {
  const places = new Map<string, Line>();
  const placeOf = (name: string): Line => {
    const place = places.get(name) ?? { times: [], inLine: 0, last: Promise.resolve() };
    places.delete(name);
    places.set(name, place); // the one that was used last is the last to be forgotten
    const since = clock.monotonic() - windowMilliseconds;
    place.times = place.times.filter((at) => at > since);
    if (places.size > mostPlaces) forget(places, since);
    return place;
  };
  return {
    at: placeOf,
    async inTurn(name, full, judge) {
      const place = placeOf(name);
      if (place.inLine >= mostInLine) throw full();
      place.inLine++;
      const mine = place.last.then(() => {
        place.times = place.times.filter((at) => at > clock.monotonic() - windowMilliseconds);
        return judge(place);
      });
      place.last = mine.catch(() => {});
      try {
        return await mine;
      } finally {
        place.inLine--;
      }
    },
  };
}

/** Forgets the places where nothing counts, and beyond that the tenth that came first. */
function forget(places: Map<string, Line>, since: number): void {
  for (const [name, { inLine, times }] of places) if (inLine === 0 && (times.at(-1) ?? 0) < since) places.delete(name);
  for (const [name, { inLine }] of places) {
    if (places.size <= mostPlaces * 0.9) return;
    if (inLine === 0) places.delete(name);
  }
}
