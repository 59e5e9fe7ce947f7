import type { Clock } from '#kit/async/clock';
import { Fault } from '#core/fault';
import type { LiveValue } from './live-value.ts';

/** Names that memory does not know: the change feed may not have told of them yet, so the database has the last word. */
export interface NegativeCache {
  /** Is it certain that there is nothing of this name? Where it is not, the database is being asked, once for all who want to know. */
  isCertain(name: string): boolean;
  /** Asks the database now. @throws Fault `overloaded` while it is away */
  ask(name: string): Promise<void>;
  /** The database was read, and it is not there. */
  note(name: string): void;
}

/** Asked again after so long, in the background: what is certain meanwhile stays so. */
const againMilliseconds = 10_000;
const mostNames = 1000;

export function openNegativeCache(clock: Clock, again: LiveValue<unknown>['again']): NegativeCache {
  const certain = new Map<string, number>(); // when to ask again (monotonic milliseconds)
  const note = (name: string) => {
    if (certain.size >= mostNames) certain.clear();
    certain.set(name, clock.monotonic() + againMilliseconds);
  };
  const ask = async (name: string) => {
    if (!(await again())) throw notYet();
    note(name);
  };
  return {
    isCertain(name) {
      const until = certain.get(name);
      if (until === undefined || clock.monotonic() >= until) ask(name).catch(() => {}); // whoever comes next finds out
      return until !== undefined;
    },
    ask,
    note,
  };
}

/** The refusal of one whose plan or team was made elsewhere a moment ago. */
export const notYet = () => new Fault('overloaded', 'Your plan or team is not known on this server yet: please try again.', { retryAfter: 1 });
