import { createHash } from 'node:crypto';
import { Fault } from '#core/fault';
import type { Clock } from '#kit/async/clock';
import type { Exchange } from './exchange.ts';
import type { UploadedFile, Uploads } from './uploads.ts';

/** 1 KB a second, over the whole body. */
const leastBytesPerMillisecond = 1;

export interface FileBodyOptions {
  readonly type: string;
  readonly limits: { readonly fileBytes: number; readonly bodyIdleSeconds: number };
  readonly uploads: Uploads;
  readonly clock: Clock;
}

/**
 * Reads a body that is a file.
 *
 * @throws Fault `too-large`, `slow-client`, `invalid` where the client leaves; nothing of the file is held then
 */
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
  const { incoming } = exchange;
  const chunks = incoming.iterator({ destroyOnReturn: false }) as AsyncIterableIterator<Buffer, undefined>;
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => {}); // it may fail when nobody waits
  const slow = (cut?: Fault) => failure.reject(cut ?? new Fault('slow-client', 'The request body arrives too slowly.'));
  incoming.on('slow', slow);
  const startedAt = clock.monotonic();
  const patience = limits.bodyIdleSeconds * 1000;
  let size = 0;
  try {
    for (;;) {
      exchange.bodyUntil = Math.min(clock.monotonic() + patience, startedAt + patience + size / leastBytesPerMillisecond);
      const { done, value }: IteratorResult<Buffer, undefined> = await Promise.race([chunks.next().catch(gone), failure.promise]);
      exchange.bodyUntil = Infinity;
      if (done) return;
      size += value.length;
      if (size > limits.fileBytes) throw tooLarge(limits.fileBytes);
      seen(value);
      yield value;
    }
  } finally {
    exchange.bodyUntil = Infinity;
    incoming.off('slow', slow);
    if (!incoming.complete) incoming.pause();
  }
}

const tooLarge = (bytes: number) => new Fault('too-large', `file must have at most ${bytes} bytes.`, { field: 'file' });

function gone(cause: unknown): never {
  throw new Fault('invalid', 'The connection closed before the body was complete.', { cause });
}
