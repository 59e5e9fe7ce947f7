import { checkFrame } from '#kit/json/foreign';
import { parseAsWritten } from '#kit/json/numbers';
import type { GenerateEvent, Usage } from '#core/event';
import { Fault } from '#core/fault';

/**
 * Decodes a provider's stream into events, synchronously and frame by frame: a turn of the event loop per frame would cost more than the decoding. Its methods are
 * called on the object, so that it may be a class.
 */
export interface Decoder {
  /** @param line the data of one frame, `[DONE]` included. @throws Fault `upstream-failed`, or the fault that an error frame means */
  decode(line: string): readonly GenerateEvent[];
  /** @throws Fault `upstream-failed` (`stream-cut`) where the stream ended before the answer did */
  end(): readonly GenerateEvent[];
  /** Has the provider sent its finish reason? */
  isFinished(): boolean;
  /** Has the provider sent the last frame of a complete answer? How its connection ends says nothing more then. */
  isOver(): boolean;
  /** Has each candidate that was asked for its finish reason? A connection that breaks off then, or goes silent for good, has left nothing out but the usage. */
  isComplete(): boolean;
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
  /** See `Decoder`; `[DONE]` is the last frame too. */
  isOver?(): boolean;
  /** Have all candidates begun that were asked for? Absent where there is only one. */
  hasAll?(): boolean;
  /** See `Decoder`; absent where it equals `isFinished`. */
  mayEnd?(): boolean;
  /** The events after the last frame. */
  close(): readonly GenerateEvent[];
  counted(): Usage | undefined;
}

const nothing: readonly GenerateEvent[] = [];

/** @param malformed makes the fault for a frame that is not JSON. @param callMarker see `ProviderSide`: the numbers of frames with it are kept as they are written */
export const decoding = (reader: Reader, malformed: () => Fault, callMarker?: string): Decoder => new FrameDecoder(reader, malformed, callMarker);

/** A class: as many closures would take half a KB more of each open stream. */
class FrameDecoder implements Decoder {
  readonly #reader: Reader;
  readonly #malformed: () => Fault;
  readonly #callMarker: string | undefined;
  #isDone = false;

  constructor(reader: Reader, malformed: () => Fault, callMarker: string | undefined) {
    this.#reader = reader;
    this.#malformed = malformed;
    this.#callMarker = callMarker;
  }

  decode(line: string): readonly GenerateEvent[] {
    if (this.#isDone) return nothing;
    if (line !== '[DONE]') return this.#reader.take(this.#parsed(line));
    this.#isDone = true;
    return nothing;
  }

  end(): readonly GenerateEvent[] {
    if (!this.#reader.isFinished())
      throw new Fault('upstream-failed', 'The provider stopped in the middle of its answer.', { reason: 'stream-cut', elsewhere: true });
    return this.#reader.close();
  }

  isFinished(): boolean {
    return this.#reader.isFinished();
  }

  isOver(): boolean {
    return (this.#isDone || this.#reader.isOver?.() === true) && this.#reader.isFinished();
  }

  isComplete(): boolean {
    return this.isOver() || (this.#reader.isFinished() && this.#reader.hasAll?.() !== false);
  }

  mayEnd(): boolean {
    return this.#reader.mayEnd ? this.#reader.mayEnd() : this.#reader.isFinished();
  }

  counted(): Usage | undefined {
    return this.#reader.counted();
  }

  #parsed(line: string): unknown {
    try {
      checkFrame(line);
      return this.#callMarker !== undefined && line.includes(this.#callMarker) ? parseAsWritten(line) : JSON.parse(line);
    } catch {
      throw this.#malformed();
    }
  }
}
