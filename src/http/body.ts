import type { Readable } from 'node:stream';
import { Fault, noRoom } from '#core/fault';
import type { Clock } from '#kit/async/clock';
import { leastBytesPerMillisecond, leftOpen, tooLarge, tooSlow } from './arriving.ts';
import type { Exchange } from './exchange.ts';

export interface BodyLimits {
  /** Bytes. */
  readonly bodyBytes: number;
  /** Bytes of a file in a form. */
  readonly fileBytes: number;
  /** Seconds in which another 16 KiB or the end must arrive. */
  readonly bodyIdleSeconds: number;
}

const progress = 16_384;
/** No body takes longer, however much of it came at once: what has arrived holds memory that others want. */
const longestMilliseconds = 900_000;
const nothing = new Uint8Array(0);

/**
 * The whole request body. Its bytes count as the memory of the request when they arrive: an announced length reserves nothing.
 *
 * @throws Fault `too-large` (before a byte is read where the client says so itself), `unsupported-type` for a compressed or a non-JSON one, `slow-client`, `overloaded` where requests hold as much memory as they may, now or in the middle of the body
 */
export function readBody(
  exchange: Exchange,
  limits: BodyLimits,
  clock: Clock,
  /** `form`: the caller has looked at the type. */
  takes: 'json' | 'form' = 'json',
): Uint8Array | Promise<Uint8Array> {
  const { bodyBytes } = limits;
  const { incoming } = exchange;
  const length = Number(exchange.header('content-length') ?? (exchange.header('transfer-encoding') ? Infinity : 0));
  if (length === 0) return nothing;
  if (length !== Infinity && length > bodyBytes) throw tooLarge(bodyBytes);
  refuseOtherTypes(exchange, takes);
  const announced = length !== Infinity;
  if (announced && !exchange.hasRoom(length)) throw noRoom();
  exchange.invite();
  if (incoming.complete && incoming.readableLength === length) {
    // The usual case: the body arrived with the head.
    if (!exchange.take(length)) throw noRoom();
    return buffered(incoming);
  }
  return arriving(exchange, length, limits, clock);
}

/** All that a stream which has ended holds: it gives one piece at a time. */
function buffered(incoming: Readable): Buffer {
  const pieces: Buffer[] = [];
  for (let piece = incoming.read() as Buffer | null; piece; piece = incoming.read() as Buffer | null) pieces.push(piece);
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
}

/** A body that has not arrived completely. @param length bytes; Infinity if not announced. @throws the same */
async function arriving(exchange: Exchange, length: number, { bodyBytes, bodyIdleSeconds }: BodyLimits, clock: Clock): Promise<Uint8Array> {
  const { incoming } = exchange;
  let first: Buffer | undefined; // nearly always the only one, which is not copied
  let room: Buffer | undefined;
  let size = 0;
  let counted = 0;
  const patience = bodyIdleSeconds * 1000;
  const startedAt = clock.monotonic();
  exchange.bodyUntil = startedAt + patience;
  try {
    return await new Promise<Uint8Array>((resolve, reject) => {
      incoming.on('slow', (cut?: Fault) => reject(cut ?? tooSlow()));
      incoming.on('data', (chunk: Buffer) => {
        const before = size;
        size += chunk.length;
        if (size > bodyBytes) return reject(tooLarge(bodyBytes));
        if (!exchange.take(chunk.length)) return reject(noRoom());
        if (size - counted >= progress) {
          counted = size;
          const allowed = Math.min(patience + size / leastBytesPerMillisecond, longestMilliseconds);
          exchange.bodyUntil = Math.min(clock.monotonic() + patience, startedAt + allowed);
        }
        if (before === 0) return void (first = chunk);
        room = grown(room ?? first!, { used: before, bytes: size, most: length });
        chunk.copy(room, before);
      });
      incoming.on('end', () => {
        incoming.removeAllListeners(); // they would hold the body as long as the answer takes
        resolve(room?.subarray(0, size) ?? first ?? nothing);
      });
      const gone = (cause?: unknown) => reject(leftOpen(cause));
      incoming.on('error', gone);
      incoming.on('close', () => incoming.complete || gone());
    });
  } finally {
    exchange.bodyUntil = Infinity;
    if (!incoming.complete) {
      incoming.removeAllListeners(); // they would hold what has come while the rest is discarded
      incoming.pause();
    }
  }
}

/**
 * A buffer with room for this many `bytes`, and `most` at most, that begins with the first `used` of another. It doubles, so that chunks as small as a client
 * likes cost no more than their bytes, and no announced length is allocated before its bytes come.
 */
function grown(from: Buffer, { used, bytes, most }: { readonly used: number; readonly bytes: number; readonly most: number }): Buffer {
  if (from.length >= bytes) return from;
  const room = Buffer.allocUnsafeSlow(Math.min(most, Math.max(bytes, 2 * from.length, leastRoom)));
  from.copy(room, 0, 0, used);
  return room;
}

const leastRoom = 65_536;

/** @throws Fault `unsupported-type` */
export function refuseCompressed(exchange: Exchange): void {
  const encoding = exchange.header('content-encoding');
  if (encoding !== undefined && encoding !== 'identity')
    throw new Fault('unsupported-type', 'Compressed request bodies are not accepted: leave out Content-Encoding.');
}

function refuseOtherTypes(exchange: Exchange, takes: 'json' | 'form'): void {
  refuseCompressed(exchange);
  const type = exchange.header('content-type');
  if (takes === 'form') return;
  if (type === undefined || type === 'application/json') return;
  const [essence = '', ...parameters] = type
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  if (essence !== '' && essence !== 'application/json' && !(essence.startsWith('application/') && essence.endsWith('+json'))) {
    throw new Fault('unsupported-type', 'The body must be JSON: send Content-Type: application/json.');
  }
  const charset = parameters
    .find((parameter) => parameter.startsWith('charset='))
    ?.slice(8)
    .replaceAll('"', '');
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8') throw new Fault('unsupported-type', 'The body must be JSON in UTF-8.');
}
