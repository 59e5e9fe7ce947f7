import type { GenerateCall } from '#core/call';
import type { Events } from '#core/event';
import type { Decoder } from './decoder.ts';

/** A call changed so that a wire or a model accepts it, and how the events of its answer are changed back. */
export interface Fitted {
  readonly call: GenerateCall;
  /** What the answer cannot make up for, as `field: reason`. */
  readonly ignored?: readonly string[];
  /** For one answer. Absent: its events stay as they are. */
  readonly restore?: Restore;
}

/** The events of one answer, in order, as the provider meant them → as the client expects them. */
export type Restore = (events: Events) => Events;

/** Changes a call before it is encoded. @returns undefined where nothing has to change */
export type Fit<Quirks> = (call: GenerateCall, quirks: Quirks | undefined) => Fitted | undefined;

/** Several fits as one: each gets the call of the one before, and the events of the answer pass them in reverse. */
export function composed<Quirks>(fits: readonly Fit<Quirks>[]): Fit<Quirks> | undefined {
  if (fits.length < 2) return fits[0];
  return (call, quirks) => {
    let all: Fitted | undefined;
    for (const fit of fits) {
      const one = fit(all?.call ?? call, quirks);
      if (one) all = all ? joined(all, one) : one;
    }
    return all;
  };
}

function joined(outer: Fitted, inner: Fitted): Fitted {
  const ignored = [...(outer.ignored ?? []), ...(inner.ignored ?? [])];
  const { restore: last } = outer;
  const { restore: first } = inner;
  const restore = first && last ? (events: Events) => last(first(events)) : (first ?? last);
  return { call: inner.call, ...(ignored.length > 0 ? { ignored } : {}), ...(restore ? { restore } : {}) };
}

/** A decoder whose events are restored. */
export function restoring(decoder: Decoder, restore: Restore | undefined): Decoder {
  if (!restore) return decoder;
  return {
    decode: (line) => restore(decoder.decode(line)),
    end: () => restore(decoder.end()),
    isFinished: () => decoder.isFinished(),
    isOver: () => decoder.isOver(),
    isComplete: () => decoder.isComplete(),
    mayEnd: () => decoder.mayEnd(),
    counted: () => decoder.counted(),
  };
}
