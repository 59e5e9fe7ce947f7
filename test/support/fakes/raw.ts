/**
 * HTTP as bytes: sends exactly what it is given and reads what comes, always with a deadline. For requests no client library would send.
 *
 * ```ts
 * const raw = await connectRaw(url);
 * raw.send('GET /healthz HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n');
 * expect((await raw.answer()).status).toBe(400);
 * expect(await raw.ended()).toBe('fin');
 * ```
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { watch } from './watch.ts';

interface RawAnswer {
  readonly status: number;
  readonly reason: string;
  /** Of the statuses 1xx that came before. */
  readonly informational: readonly number[];
  /** As they came: name, value. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** All values of a header, in any case, joined by `, `; undefined when there is none. */
  header(name: string): string | undefined;
  readonly body: Buffer;
  readonly text: string;
}

export interface Raw {
  /** Everything received so far. */
  readonly received: Buffer;
  readonly bytesRead: number;
  send(bytes: string | Buffer): void;
  /** This many bytes every this many milliseconds, until all are sent or the other side has closed. Answers how many were sent. */
  sendSlowly(bytes: string | Buffer, pace: { readonly bytes: number; readonly every: number }): Promise<number>;
  /** The next answer on this connection. `to: 'HEAD'` has no body. Rejects after `within` milliseconds, or when the connection ends before the answer is complete. */
  answer(options?: { readonly within?: number; readonly to?: string }): Promise<RawAnswer>;
  /** Resolves once the text has come: for streams. */
  until(text: string, within?: number): Promise<void>;
  /** How the other side ended the connection. */
  ended(within?: number): Promise<'fin' | 'reset'>;
  /** Stops reading and resumes: a slow reader. */
  pause(): void;
  resume(): void;
  /** Says that nothing more will be sent, and goes on reading. */
  halfClose(): void;
  /** Ends the connection with RST. */
  reset(): void;
  close(): void;
}

/** Connects to the host and port of an address; the path is not used. */
export async function connectRaw(url: string): Promise<Raw> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true, noDelay: true });
  await once(socket, 'connect');
  return rawOver(socket);
}

function rawOver(socket: Socket): Raw {
  let received = Buffer.alloc(0);
  let answered = 0; // bytes of `received` that earlier answers have used up
  let ending: 'fin' | 'reset' | undefined;
  const { happened, until } = watch();
  const ends = (how: 'fin' | 'reset') => {
    ending ??= how;
    happened();
  };
  socket.on('data', (piece: Buffer) => {
    received = Buffer.concat([received, piece]);
    happened();
  });
  socket.on('end', () => ends('fin'));
  socket.on('error', () => ends('reset'));
  socket.on('close', () => ends('fin'));

  const soFar = () => `So far: ${JSON.stringify(received.subarray(answered).toString('latin1').slice(0, 2000))}`;
  /** Until there is something, or the end came first. */
  const seen = <Found>(what: string, within: number, look: () => Found | undefined) =>
    until(
      () => {
        const found = look();
        if (found === undefined && ending) throw new Error(`${what} before the end (${ending}). ${soFar()}`);
        return found;
      },
      within,
      () => `${what}. ${soFar()}`,
    );

  return {
    get received() {
      return received;
    },
    get bytesRead() {
      return socket.bytesRead;
    },
    send: (bytes) => void socket.write(bytes),
    async sendSlowly(bytes, { bytes: size, every }) {
      const all = Buffer.from(bytes);
      let sent = 0;
      while (sent < all.length) {
        if (ending) break;
        socket.write(all.subarray(sent, sent + size));
        sent = Math.min(sent + size, all.length);
        if (sent < all.length) await sleep(every);
      }
      return sent;
    },
    async answer({ within = 20_000, to = 'GET' } = {}) {
      const { used, ...answer } = await seen('No answer', within, () =>
        parsed(received.subarray(answered), { ended: ending === 'fin', bodiless: to === 'HEAD' }),
      );
      answered += used;
      return answer;
    },
    until: async (text, within = 20_000) => void (await seen(`No ${JSON.stringify(text)}`, within, () => received.includes(text) || undefined)),
    ended: (within = 20_000) =>
      until(
        () => ending,
        within,
        () => `No end. ${soFar()}`,
      ),
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    halfClose: () => void socket.end(),
    reset: () => void socket.resetAndDestroy(),
    close: () => void socket.destroy(),
  };
}

interface Reading {
  /** The other side has said all: a body without a length is complete. */
  readonly ended: boolean;
  readonly bodiless: boolean;
}

/** The first answer in these bytes and how many of them it takes, or undefined while some are missing. */
function parsed(bytes: Buffer, reading: Reading, informational: readonly number[] = [], before = 0): (RawAnswer & { used: number }) | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [line = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const found = /^HTTP\/1\.[01] (\d{3}) ?(.*)$/u.exec(line);
  if (!found) throw new Error(`Not a status line: ${JSON.stringify(line)}`);
  const status = Number(found[1]);
  const rest = bytes.subarray(end + 4);
  if (status < 200 && status !== 101) return parsed(rest, reading, [...informational, status], before + end + 4);

  const headers = lines.map((one) => [one.slice(0, one.indexOf(':')), one.slice(one.indexOf(':') + 1).trim()] as const);
  const header = (name: string) => {
    const values = headers.filter(([one]) => one.toLowerCase() === name.toLowerCase()).map(([, value]) => value);
    return values.length > 0 ? values.join(', ') : undefined;
  };
  const nothing = reading.bodiless || status === 204 || status === 304;
  const content = nothing ? { body: Buffer.alloc(0), used: 0 } : bodyOf(rest, header, reading.ended);
  if (!content) return undefined;
  const { body, used } = content;
  return { status, reason: found[2] ?? '', informational, headers, header, body, text: body.toString('utf8'), used: before + end + 4 + used };
}

function bodyOf(bytes: Buffer, header: (name: string) => string | undefined, ended: boolean): { body: Buffer; used: number } | undefined {
  if (header('transfer-encoding')?.toLowerCase() === 'chunked') return unchunked(bytes);
  const length = header('content-length');
  if (length !== undefined) return bytes.length < Number(length) ? undefined : { body: bytes.subarray(0, Number(length)), used: Number(length) };
  return ended ? { body: bytes, used: bytes.length } : undefined;
}

function unchunked(bytes: Buffer): { body: Buffer; used: number } | undefined {
  const pieces: Buffer[] = [];
  let at = 0;
  for (;;) {
    const line = bytes.indexOf('\r\n', at);
    if (line < 0) return undefined;
    const size = Number.parseInt(bytes.subarray(at, line).toString('latin1'), 16);
    if (Number.isNaN(size)) throw new Error(`Not a chunk: ${JSON.stringify(bytes.subarray(at, line).toString('latin1'))}`);
    const next = line + 2 + size + 2;
    if (bytes.length < next) return undefined;
    if (size === 0) return { body: Buffer.concat(pieces), used: next };
    pieces.push(bytes.subarray(line + 2, line + 2 + size));
    at = next;
  }
}
