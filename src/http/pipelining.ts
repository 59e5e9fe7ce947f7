import type { Socket } from 'node:net';

/**
 * Requests of one connection that may be unanswered at a time. HTTP/1.1 lets a client write the next before it has read an answer (RFC 9112, 9.3.2), and has it
 * ask again on another connection for what was not answered when the connection closes.
 */
const mostUnanswered = 32;

/** A count on the socket itself: a map would cost every request two look-ups. */
type Asking = Socket & { unanswered?: number };

/** Counts a request of a connection. @returns false where it is one too many: then the connection is closed, and the request must not be answered */
export function beginsOn(socket: Asking): boolean {
  if (!socket.writable || socket.unanswered === Infinity) return false; // the parser goes on to the end of what was read at once, and of what is discarded
  socket.unanswered = (socket.unanswered ?? 0) + 1;
  if (socket.unanswered <= mostUnanswered) return true;
  socket.destroy();
  return false;
}

/** Nothing that follows on this connection is a request: where one ends was not clear. */
export function isLastOn(socket: Asking): void {
  socket.unanswered = Infinity;
}

/** The answer to a request of this connection is sent, or its client is gone. */
export function endsOn(socket: Asking): void {
  socket.unanswered = (socket.unanswered ?? 1) - 1;
}
