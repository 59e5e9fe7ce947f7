import type { GenerateEvent } from '#model/event';
import { Fault } from '#model/fault';
import { malformed, reader } from './decode-answer.ts';

/** A response stream → events, a frame at a time and without waiting. */

export interface Decoder {
  /**
   * @param line the data of one frame, `[DONE]` included
   * @throws Fault `upstream-failed`, or what an error frame says
   */
  decode(line: string): readonly GenerateEvent[];
  /** @throws Fault `upstream-failed` (`stream-cut`) where the response did not end: a stream that stops is not an answer that ends */
  end(): readonly GenerateEvent[];
}

/**
 * @param model the upstream's name for it, for answers that do not say
 * @param ignored goes into `started`
 */
export function decoder(model: string, ignored: readonly string[] = []): Decoder {
  const { take, isFinished } = reader(model, ignored);
  let done = false;
  return {
    decode(line) {
      if (line === '[DONE]') done = true;
      return done ? [] : take(parsed(line));
    },
    end() {
      if (!isFinished()) throw new Fault('upstream-failed', 'The provider stopped in the middle of its answer.', { reason: 'stream-cut', elsewhere: true });
      return [];
    },
  };
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw malformed();
  }
}
