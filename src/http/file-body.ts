import { createHash } from 'node:crypto';
import { Fault } from '#core/fault';
import type { Clock } from '#kit/async/clock';
import { arriving } from './arriving.ts';
import type { Exchange } from './exchange.ts';
import type { UploadedFile, Uploads } from './uploads.ts';

export interface FileBodyOptions {
  readonly type: string;
  readonly limits: { readonly fileBytes: number; readonly bodyIdleSeconds: number };
  readonly uploads: Uploads;
  readonly clock: Clock;
}

/** Reads a body that is a file. @throws Fault `too-large`, `slow-client`, `invalid` where the client leaves; nothing of the file is held then */
export async function readFileBody(
  exchange: Exchange,
  { type, limits, uploads, clock }: FileBodyOptions,
): Promise<{ readonly file: UploadedFile; remove(): Promise<void> }> {
  const { fileBytes } = limits;
  if (Number(exchange.header('content-length') ?? 0) > fileBytes) throw tooLarge(fileBytes);
  exchange.invite();
  const hash = createHash('sha256');
  const held = await uploads.hold(pieces(exchange, { limits, clock }, (piece) => hash.update(piece)));
  const { content } = held;
  return { file: { field: '', filename: '', type, size: content.size, hash: hash.digest('hex'), content }, remove: () => held.remove() };
}

async function* pieces(
  exchange: Exchange,
  { limits, clock }: Pick<FileBodyOptions, 'limits' | 'clock'>,
  seen: (piece: Buffer) => void,
): AsyncGenerator<Buffer> {
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => {}); // it may fail when nobody waits
  let size = 0;
  for await (const piece of arriving(exchange, { idleSeconds: limits.bodyIdleSeconds, clock, failure })) {
    size += piece.length;
    if (size > limits.fileBytes) throw tooLarge(limits.fileBytes);
    seen(piece);
    yield piece;
  }
}

const tooLarge = (bytes: number) => new Fault('too-large', `file must have at most ${bytes} bytes.`, { field: 'file' });
