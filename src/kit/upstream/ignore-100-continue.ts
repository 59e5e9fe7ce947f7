import { subscribe } from 'node:diagnostics_channel';
import type { Readable } from 'node:stream';

// A client must skip interim responses (RFC 9110, 15.2), even unexpected ones. The client library does so for all but 100, on which it closes the
// connection. So a 100 in the first bytes after a request is rewritten to a 102, which has no effect.
const early = Buffer.from('HTTP/1.1 1');
const end = '\r\n\r\n';
const [zero, two] = [0x30, 0x32];

/** Does each socket wait for the first bytes of a response? */
const sockets = new WeakMap<object, { isWaiting: boolean }>();

/** Makes the client tolerate an unsolicited `100 Continue`. */
export function stepOverContinue(): void {
  subscribe('undici:client:sendHeaders', (message) => {
    const { socket } = message as { socket: Readable };
    const known = sockets.get(socket);
    if (known) {
      known.isWaiting = true;
      return;
    }
    const state = { isWaiting: true };
    sockets.set(socket, state);
    const read = socket.read.bind(socket) as (size?: number) => Buffer | null;
    socket.read = (size?: number): unknown => {
      const chunk = read(size);
      if (state.isWaiting && chunk) state.isWaiting = softened(chunk);
      return chunk;
    };
  });
}

/** Rewrites each 100 at the start of these bytes to a 102. @returns whether the bytes hold interim responses only, so that another may follow */
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
