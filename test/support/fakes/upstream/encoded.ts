/** Good answers under a Content-Encoding, and bombs. */
import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { collected, type HttpAnswer } from './answer.ts';
import type { Behaviour } from './behaviour.ts';
import { altered, ok } from './good.ts';

const encoders = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync } as const;

export type Encoding = keyof typeof encoders;

/** Encoded once for each name, in that order. */
export const encoded = (...names: Encoding[]): Behaviour =>
  altered('encoded', ok(), async (answer) => {
    const body = names.reduce((all, name) => encoders[name](all), await collected(answer.body));
    return under(names.join(', '), answer, [body]);
  });

/** Really encoded this many times over. */
export const encodedTimes = (count = 1000): Behaviour => encoded(...Array.from({ length: count }, () => 'gzip' as const));

/** This many megabytes of spaces in a thousandth of them, before what would be the answer. */
export const gzipBomb = (megabytes = 10_000): Behaviour => altered('gzipBomb', ok(), (answer) => under('gzip', answer, zipped(megabytes)));

const under = (encoding: string, answer: HttpAnswer, body: HttpAnswer['body']): HttpAnswer => ({
  ...answer,
  headers: { ...answer.headers, 'content-encoding': encoding },
  body,
  framing: 'chunked',
});

/** One gzip member: its head, then the same flushed block again and again. Its checksum is wrong, but nobody should get that far. */
function* zipped(megabytes: number): Generator<Buffer> {
  const block = deflateRawSync(Buffer.alloc(1 << 20, ' '), { finishFlush: constants.Z_FULL_FLUSH });
  yield Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
  for (let sent = 0; sent < megabytes; sent++) yield block;
  yield Buffer.concat([deflateRawSync(''), Buffer.alloc(8)]);
}
