import { subscribe } from 'node:diagnostics_channel';
import type { Readable } from 'node:stream';

// Heads that come before the answer's own (RFC 9110, 15.2) are to be stepped over, asked for or not. The client library does so, but for 100: there it cuts
// the connection. So the first bytes that follow a request are looked at, and a 100 becomes a 102, which says as little.
const early = Buffer.from('HTTP/1.1 1');
const end = '\r\n\r\n';
const [zero, two] = [0x30, 0x32];

/** Which sockets wait for the first bytes of an answer. */
const waiting = new WeakSet<object>();
const watched = new WeakSet<object>();

/** From now on no answer is lost because a `100 Continue` that nobody asked for came before it. */
export function stepOverContinue(): void {
  subscribe('undici:client:sendHeaders', (message) => {
    const { socket } = message as { socket: Readable };
    waiting.add(socket);
    if (watched.has(socket)) return;
    watched.add(socket);
    const read = socket.read.bind(socket);
    socket.read = (size?: number): unknown => {
      const chunk: unknown = read(size);
      if (chunk instanceof Buffer && waiting.has(socket) && !softened(chunk)) waiting.delete(socket);
      return chunk;
    };
  });
}

/** Turns each 100 at the start of these bytes into a 102. Was there nothing but such heads, so that another may follow? */
function softened(bytes: Buffer): boolean {
  let at = 0;
  while (bytes[at + early.length - 1] === early.at(-1) && early.equals(bytes.subarray(at, at + early.length))) {
    const tens = at + early.length;
    if (bytes[tens] === zero && bytes[tens + 1] === zero) bytes[tens + 1] = two;
    const next = bytes.indexOf(end, at);
    if (next < 0) return true;
    at = next + end.length;
  }
  return at === bytes.length;
}
