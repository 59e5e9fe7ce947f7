import type { Events } from '#core/event';
import { Fault } from '#core/fault';
import { allOut } from '../routing/all-out.ts';

/** Models that may replace one another. */
export interface Candidates<Candidate> {
  /** The models not yet tried, in order. */
  readonly left: Candidate[];
  /** Most models to try. */
  readonly most: number;
  readonly signal: AbortSignal;
  /** Tries one model. `at`: how many were tried before it */
  ask(candidate: Candidate, at: number): AsyncIterable<Events>;
  /**
   * Decides, after the fault of a model that has not begun to answer, whether the next is tried; may reorder the rest. @throws the fault that ends the request
   */
  moveOn(fault: Fault, candidate: Candidate): void;
}

/**
 * Tries one model after the other until one has begun to answer: what a client has read cannot be taken back.
 * @throws Fault of the model that decided or, if all failed, that of `allOut`: a model that was not asked decides nothing
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
      if (!isLimited(error)) faults.push(error);
    }
  }
  throw allOut(faults) ?? new Fault('internal', 'No model was asked.');
}

/** Whether a limit of the caller's kept a model from being asked. */
export const isLimited = ({ code, details }: Fault): boolean => code === 'quota-spent' || code === 'forbidden' || details.limit !== undefined;
