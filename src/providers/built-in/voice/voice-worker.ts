import { parentPort } from 'node:worker_threads';
import { collectGarbage } from '#kit/memory/collected';
import { flite } from './flite.ts';

/** A text to speak; answered by `PieceSpoken`. */
export interface SpokenPiece {
  /** Letters, digits and marks of ASCII. */
  readonly text: string;
  readonly voice: string;
  /** What the time that each sound takes is multiplied by. */
  readonly stretch: number;
}

export interface PieceSpoken {
  /** Samples per second. */
  readonly rate: number;
  /** Of 16 bits, little-endian; absent where the text could not be spoken. */
  readonly samples?: Uint8Array<ArrayBuffer>;
}

const port = parentPort!;

port.on('message', ({ text, voice, stretch }: SpokenPiece) => {
  try {
    const { rate, samples } = flite(['-voice', voice, '--setf', `duration_stretch=${stretch}`, '-t', text]);
    port.postMessage({ rate, samples } satisfies PieceSpoken, [samples.buffer]);
  } catch {
    port.postMessage({ rate: 0 } satisfies PieceSpoken);
  }
  void collectGarbage(); // of the memory that the program had
});

port.postMessage('ready');
