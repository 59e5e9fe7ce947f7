import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';

/** A decoder of one content encoding, fed by chunks. */
export interface Inflating {
  write(chunk: Uint8Array): void;
  end(): void;
  /** Stops it: no more bytes, and no end is reported. */
  stop(): void;
}

const decoders = { gzip: createGunzip, 'x-gzip': createGunzip, deflate: createInflate, br: createBrotliDecompress, zstd: createZstdDecompress } as const;

/** Highest compression ratio; a higher one is treated as a decompression bomb. */
const maxRatio = 200;
const freeBytes = 1_048_576;

/** @param done called once: with the error, or without one on success. @returns `undefined` for an unknown encoding and for a chain of encodings */
export function inflating(encoding: string, arrived: (chunk: Uint8Array) => void, done: (error?: Error) => void): Inflating | undefined {
  const name = encoding.trim().toLowerCase();
  if (!Object.hasOwn(decoders, name)) return undefined;
  const stream = decoders[name as keyof typeof decoders]();
  let taken = 0;
  let given = 0;
  stream.on('data', (chunk: Uint8Array) => {
    given += chunk.length;
    if (given > freeBytes && given > taken * maxRatio) stream.destroy(new Error('The compressed answer expands beyond the limit.'));
    else arrived(chunk);
  });
  stream.on('end', () => done());
  stream.on('error', (error: Error) => done(error));
  return {
    write(chunk) {
      taken += chunk.length;
      if (!stream.destroyed) stream.write(chunk);
    },
    end: () => void (stream.destroyed || stream.end()),
    stop: () => void stream.destroy(),
  };
}
