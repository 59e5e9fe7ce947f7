import type { IncomingMessage } from 'node:http';
import type { Clock } from '#kit/async/clock';

/** Limits for reading the rest of a refused body. */
const longestMilliseconds = 5000;
const mostBytes = 67_108_864;
const stepMilliseconds = 250;

/**
 * Closes the connection in stages behind the answer to a request of which not everything was read (RFC 9112, 9.6): the answer and the end of it are sent,
 * then what still comes is read and discarded until the client closes. A connection that is closed with unread bytes is reset, which erases the answer for a
 * client that is still writing. To be called before the answer ends.
 * @param isDraining the server stops, and waits for no client
 */
export function closeInStages(request: IncomingMessage, clock: Clock, isDraining: () => boolean): void {
  const { socket } = request;
  const close = socket.destroySoon.bind(socket);
  // The runtime calls it when the last answer of a connection is out.
  socket.destroySoon = () => {
    if (request.complete) return close();
    socket.end();
    request.once('end', close).resume();
    const until = clock.monotonic() + longestMilliseconds;
    const bytes = socket.bytesRead + mostBytes;
    const step = () => {
      if (socket.destroyed) return;
      if (isDraining() || clock.monotonic() >= until || socket.bytesRead > bytes) socket.destroy();
      else clock.after(stepMilliseconds, step);
    };
    clock.after(stepMilliseconds, step);
  };
}
