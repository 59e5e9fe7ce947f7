import { LineTooLong } from '#kit/upstream/sse';
import { UpstreamError, type UpstreamResponse, type UpstreamRequest } from '#kit/upstream/response';
import { byteOrderMark, byteOrderMarkLength } from '#kit/text/byte-order-mark';
import type { Clock } from '#kit/async/clock';
import type { Upstreams } from '#kit/upstream/pool';
import type { Usage } from '#core/event';
import { Fault, noRoom, type FaultDetails } from '#core/fault';
import type { Patience, TargetContext } from '#core/context';

/** Most bytes of a whole answer, and of what is read of the body of a refusal. */
const wholeBytes = 67_108_864;
const refusalBytes = 65_536;

/** POSTs to a provider and waits for the response head. @throws Fault with the details for failover, or the signal's reason */
export async function post(
  upstreams: Upstreams,
  request: Omit<UpstreamRequest, 'signal' | 'headSeconds' | 'quietSeconds'>,
  context: TargetContext,
): Promise<UpstreamResponse> {
  const { signal, patience } = context;
  try {
    return await upstreams.post({ ...request, signal, headSeconds: patience.head, quietSeconds: patience.firstByte });
  } catch (error) {
    throw upstreamFault(error);
  }
}

/** The whole body of an answer, without a byte order mark, which is no JSON. */
export const whole = (response: UpstreamResponse, { memory }: Pick<TargetContext, 'memory'>): Promise<Uint8Array> =>
  response.whole(wholeBytes, memory).then(withoutMark, (error: unknown) => {
    throw upstreamFault(error, true);
  });

/** The same in the pieces in which it arrived. */
export const wholeInPieces = (response: UpstreamResponse, { memory }: Pick<TargetContext, 'memory'>): Promise<readonly Uint8Array[]> =>
  response.pieces(wholeBytes, memory).then(
    (pieces) => (pieces[0]?.[0] === byteOrderMark[0] ? [withoutMark(Buffer.concat(pieces))] : pieces),
    (error: unknown) => {
      throw upstreamFault(error, true);
    },
  );

const withoutMark = (bytes: Uint8Array): Uint8Array => bytes.subarray(byteOrderMarkLength(bytes));

/** The body of a stream. Its first content must arrive within `firstByte` seconds from now: comments and empty events do not count. */
export class AwaitingWords {
  readonly #response: UpstreamResponse;
  readonly #clock: Clock;
  readonly #until: number;
  readonly #idle: number;
  #speaking = false;

  constructor(response: UpstreamResponse, { firstByte, idle }: Patience, clock: Clock) {
    this.#response = response;
    this.#clock = clock;
    this.#until = clock.monotonic() + firstByte * 1000;
    this.#idle = idle;
  }

  /** The next bytes; undefined at the end. @throws UpstreamError `slow-body` */
  async take(): Promise<Uint8Array | undefined> {
    if (!this.#speaking) {
      if (this.#clock.monotonic() >= this.#until) throw new UpstreamError('slow-body');
      this.#response.quietSeconds = (this.#until - this.#response.lastAt) / 1000;
    }
    return this.#response.take();
  }

  /** Content has arrived: from now on only the wait between two reads is limited, to `idle` seconds. */
  spoke(): void {
    if (this.#speaking) return;
    this.#speaking = true;
    this.#response.quietSeconds = this.#idle;
  }

  /** Reports whether the content is complete, so that only the end and the usage may be missing. */
  ends(isEnding: boolean): void {
    this.#response.isEnding = isEnding;
  }

  /** The last frame has come: only the end of the body may be missing, and is not waited for long. */
  over(): void {
    this.#response.over();
  }
}

/** The beginning of the body of a refusal, as text: what comes of it within two seconds, since its status has decided already. */
export async function refusalText(response: UpstreamResponse): Promise<string> {
  response.over();
  const bytes = await response.beginning(refusalBytes);
  response.leave();
  return Buffer.from(withoutMark(bytes)).toString('utf8');
}

/** The fault for an answer that failed. Once it has content, no other credential can make up for one that was refused in it. */
export function answerFault(error: unknown, hasContent: boolean): unknown {
  const fault = upstreamFault(error, true);
  if (!hasContent || !(fault instanceof Fault) || !fault.details.key) return fault;
  const { key: _, ...details } = fault.details;
  return new Fault(fault.code, fault.message, details);
}

/** Marks a refusal of the request that was all of an answer of status 200. @param usage what the provider has counted */
export const asRefusal = (error: unknown, { input, output }: Pick<Usage, 'input' | 'output'> = { input: 0, output: 0 }): unknown =>
  error instanceof Fault && error.code === 'invalid' && input + output === 0
    ? new Fault(error.code, error.message, { ...error.details, asRefusal: true })
    : error;

/** Converts a connection error to a fault. */
export function upstreamFault(error: unknown, begun = false): unknown {
  if (error instanceof LineTooLong) return new Fault('upstream-failed', 'The answer of the provider has a line that is too long.', { elsewhere: true });
  if (!(error instanceof UpstreamError)) return error;
  const details = { cause: error, elsewhere: true };
  switch (error.problem) {
    case 'refused':
      return new Fault('overloaded', 'The provider cannot be reached.', details);
    case 'broken':
      if (!begun && isTls(error)) return new Fault('overloaded', 'No secure connection (TLS) to the provider can be made.', details);
      return begun ? brokenOff(details) : new Fault('overloaded', 'The provider closed the connection without an answer.', details);
    case 'slow-head':
    case 'slow-body':
      return new Fault('timed-out', 'The provider was silent for too long.', details);
    case 'garbled':
      return begun ? brokenOff(details) : new Fault('upstream-failed', 'The answer of the provider is not valid HTTP.', details);
    case 'too-large':
      return new Fault('upstream-failed', 'The answer of the provider is too large.', details);
    case 'no-room':
      return noRoom(error);
    case 'encoding':
      return new Fault('upstream-failed', 'The answer of the provider cannot be decoded.', details);
    default:
      return error.problem satisfies never;
  }
}

const brokenOff = (details: FaultDetails) =>
  new Fault('upstream-failed', 'The provider broke off in the middle of its answer.', { ...details, reason: 'stream-cut' });

/** Did the handshake fail, or the certificate? */
function isTls(error: Error): boolean {
  for (let one: unknown = error; one instanceof Error; one = one.cause)
    if ('code' in one && typeof one.code === 'string' && tlsCodes.some((start) => (one.code as string).startsWith(start))) return true;
  return false;
}

const tlsCodes = ['ERR_SSL_', 'ERR_TLS_', 'CERT_', 'SELF_SIGNED_', 'DEPTH_ZERO_', 'UNABLE_TO_'];
