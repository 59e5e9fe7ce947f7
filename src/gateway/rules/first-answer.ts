import type { Events } from '#core/event';
import { Fault } from '#core/fault';
import { allOut } from '../routing/all-out.ts';

/** Models that may stand in for one another. */
export interface Candidates<Candidate> {
  /** Those that have not been asked, in their order. */
  readonly left: Candidate[];
  /** How many are asked at most. */
  readonly most: number;
  readonly signal: AbortSignal;
  /** Asks one. `at`: how many were asked before it */
  ask(candidate: Candidate, at: number): AsyncIterable<Events>;
  /** Decides, after the fault of one that has not begun to answer, whether the next is asked; may put others first. @throws the fault that ends the request */
  moveOn(fault: Fault, candidate: Candidate): void;
}

/**
 * Asks one model after the other until one has begun to answer: what a client has read cannot be taken back.
 *
 * @throws Fault of the model that decided or, when all are out, the one that says most (`allOut`)
 */
export async function* firstAnswer<Candidate>({ left, most, signal, ask, moveOn }: Candidates<Candidate>): AsyncGenerator<Events> {
  const faults: Fault[] = [];
  for (let at = 0; at < most; at++) {
    const candidate = left.shift();
    if (candidate === undefined) break;
    let hasBegun = false;
    try {
      for await (const events of ask(candidate, at)) {
        hasBegun = true;
        yield events;
      }
      return;
    } catch (error) {
      if (hasBegun || signal.aborted || !(error instanceof Fault)) throw error;
      moveOn(error, candidate);
      faults.push(error);
    }
  }
  throw allOut(faults) ?? new Fault('internal', 'No model was asked.');
}
