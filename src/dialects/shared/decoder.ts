import type { GenerateEvent, Usage } from '#core/event';
import { Fault } from '#core/fault';

/** A provider's stream → events, a frame at a time and without waiting: a turn of the event loop for each frame would cost more than the work. */
export interface Decoder {
  /**
   * @param line the data of one frame, `[DONE]` included
   * @throws Fault `upstream-failed`, or what an error frame says
   */
  decode(line: string): readonly GenerateEvent[];
  /** @throws Fault `upstream-failed` (`stream-cut`) where the answer did not end: a stream that stops is not an answer that ends */
  end(): readonly GenerateEvent[];
  /** Has the provider said why its answer ended? */
  isFinished(): boolean;
  /** Is all said that was begun, so that nothing may be missing but the end and what it cost? */
  mayEnd(): boolean;
  /** What the provider has counted so far, if it has. */
  counted(): Usage | undefined;
}

/** Reads the frames of a stream one after the other. Its methods are called on it, so that it may be a class. */
export interface Reader {
  /** @throws Fault `upstream-failed`, `rate-limited` or `overloaded`, with `elsewhere` */
  take(value: unknown): readonly GenerateEvent[];
  /** Has the provider said why its answer ended? */
  isFinished(): boolean;
  /** See `Decoder`; absent where only the end itself says so. */
  mayEnd?(): boolean;
  /** What stands at the end of all events. */
  close(): readonly GenerateEvent[];
  counted(): Usage | undefined;
}

const nothing: readonly GenerateEvent[] = [];

/** @param malformed what is thrown for a frame that is no JSON */
export function decoding(reader: Reader, malformed: () => Fault): Decoder {
  let done = false;
  return {
    decode(line) {
      if (done) return nothing;
      if (line !== '[DONE]') return reader.take(parsed(line, malformed));
      done = true;
      return nothing;
    },
    end() {
      if (!reader.isFinished())
        throw new Fault('upstream-failed', 'The provider stopped in the middle of its answer.', { reason: 'stream-cut', elsewhere: true });
      return reader.close();
    },
    isFinished: () => reader.isFinished(),
    mayEnd: () => (reader.mayEnd ? reader.mayEnd() : reader.isFinished()),
    counted: () => reader.counted(),
  };
}

function parsed(line: string, malformed: () => Fault): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw malformed();
  }
}
