import { Fault } from '#model/fault';
import type { Clock } from '#kit/clock';
import type { Exchange } from './exchange.ts';

export interface BodyLimits {
  /** Bytes. */
  readonly bodyBytes: number;
  /** Seconds in which another 16 KiB or the end must arrive. */
  readonly bodyIdleSeconds: number;
}

const progress = 16_384;
const nothing = new Uint8Array(0);

/**
 * The whole request body.
 *
 * @throws Fault `too-large` (before a byte is read where the client says so itself), `unsupported-type` for a compressed or a non-JSON one, `slow-client`
 */
export async function readBody(
  exchange: Exchange,
  { bodyBytes, bodyIdleSeconds }: BodyLimits,
  clock: Clock,
  takes: 'json' | 'form' = 'json',
): Promise<Uint8Array> {
  const { incoming } = exchange;
  const length = Number(exchange.header('content-length') ?? (exchange.header('transfer-encoding') ? Infinity : 0));
  if (length === 0) return nothing;
  if (length !== Infinity && length > bodyBytes) throw tooLarge(bodyBytes);
  refuseOtherTypes(exchange, takes);
  exchange.invite();
  const chunks: Buffer[] = [];
  let size = 0;
  let counted = 0;
  const patience = bodyIdleSeconds * 1000;
  exchange.bodyUntil = clock.monotonic() + patience;
  try {
    return await new Promise<Uint8Array>((resolve, reject) => {
      incoming.on('slow', () => reject(new Fault('slow-client', 'The request body arrives too slowly.')));
      incoming.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > bodyBytes) return reject(tooLarge(bodyBytes));
        if (size - counted >= progress) {
          counted = size;
          exchange.bodyUntil = clock.monotonic() + patience;
        }
        chunks.push(chunk);
      });
      incoming.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
      // Bytes that are no HTTP end here too; a client that is gone is told nothing.
      const gone = (cause?: unknown) => reject(new Fault('invalid', 'The connection closed before the body was complete.', { cause }));
      incoming.on('error', gone);
      incoming.on('close', () => incoming.complete || gone());
    });
  } finally {
    exchange.bodyUntil = Infinity;
    if (!incoming.complete) {
      incoming.removeAllListeners('data');
      incoming.pause();
    }
  }
}

function refuseOtherTypes(exchange: Exchange, takes: 'json' | 'form'): void {
  const encoding = exchange.header('content-encoding');
  if (encoding !== undefined && encoding !== 'identity')
    throw new Fault('unsupported-type', 'Compressed request bodies are not accepted: leave out Content-Encoding.');
  const type = exchange.header('content-type');
  if (takes === 'form') {
    if (!/^multipart\/form-data\s*;/i.test(type ?? '')) throw new Fault('unsupported-type', 'The body must be a form: send Content-Type: multipart/form-data.');
    return;
  }
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

const tooLarge = (bytes: number) => new Fault('too-large', `The request body is larger than ${bytes} bytes.`);
