import { checkForeign } from '#kit/json/foreign';
import type { GenerateEvent, Usage } from '#core/event';
import { Fault } from '#core/fault';

/** Decodes a provider's stream into events, synchronously and frame by frame: a turn of the event loop per frame would cost more than the decoding. */
export interface Decoder {
  /**
   * @param line the data of one frame, `[DONE]` included
   * @throws Fault `upstream-failed`, or the fault that an error frame means
   */
  decode(line: string): readonly GenerateEvent[];
  /** @throws Fault `upstream-failed` (`stream-cut`) where the stream ended before the answer did */
  end(): readonly GenerateEvent[];
  /** Has the provider sent its finish reason? */
  isFinished(): boolean;
  /** Has the provider sent the last frame of a complete answer? How its connection ends says nothing more then. */
  isOver(): boolean;
  /** Is every part that was begun complete, so that at most the finish reason and the usage are missing? */
  mayEnd(): boolean;
  /** The usage that the provider has reported so far, if any. */
  counted(): Usage | undefined;
}

/** Decodes the parsed frames of one stream, in their order. Its methods are called on the object, so that it may be a class. */
export interface Reader {
  /** @throws Fault `upstream-failed`, `rate-limited` or `overloaded`, with `elsewhere` */
  take(value: unknown): readonly GenerateEvent[];
  /** Has the provider sent its finish reason? */
  isFinished(): boolean;
  /** See `Decoder`; absent where `[DONE]` alone is the last frame. */
  isOver?(): boolean;
  /** See `Decoder`; absent where it equals `isFinished`. */
  mayEnd?(): boolean;
  /** The events after the last frame. */
  close(): readonly GenerateEvent[];
  counted(): Usage | undefined;
}

const nothing: readonly GenerateEvent[] = [];

/** @param malformed makes the fault for a frame that is not JSON. @param parse parses the JSON of a frame */
export function decoding(reader: Reader, malformed: () => Fault, parse: (json: string) => unknown = JSON.parse): Decoder {
  let done = false;
  return {
    decode(line) {
      if (done) return nothing;
      if (line !== '[DONE]') return reader.take(parsed(line, parse, malformed));
      done = true;
      return nothing;
    },
    end() {
      if (!reader.isFinished())
        throw new Fault('upstream-failed', 'The provider stopped in the middle of its answer.', { reason: 'stream-cut', elsewhere: true });
      return reader.close();
    },
    isFinished: () => reader.isFinished(),
    isOver: () => (done || reader.isOver?.() === true) && reader.isFinished(),
    mayEnd: () => (reader.mayEnd ? reader.mayEnd() : reader.isFinished()),
    counted: () => reader.counted(),
  };
}

function parsed(line: string, parse: (json: string) => unknown, malformed: () => Fault): unknown {
  try {
    checkForeign(line);
    return parse(line);
  } catch {
    throw malformed();
  }
}
