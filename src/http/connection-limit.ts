import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '#kit/async/clock';

/** Which connections stay when all places are taken. */
export interface ConnectionLimit {
  /** Is this connection one too many, of which only the watchers' addresses are answered? */
  isExtra(socket: Socket): boolean;
  readonly connections: number;
}

/** Connections beyond the bound, so that the addresses for watchers still answer, and all others can be told why not. */
const extraPlaces = 64;
/** Milliseconds without another search after one that found no idle connection. */
const restMilliseconds = 100;
/** Whoever has just come in is about to say something, and stays while there are extra places. */
const newMilliseconds = 250;

/** Open files that are no client's: database, logs, the program itself. */
const reservedFiles = 500;

/** Files that this process may have open; it does not change while it runs. */
const mostFiles = (process.report.getReport() as { readonly userLimits?: { readonly open_files?: { readonly soft: number | string } } }).userLimits?.open_files
  ?.soft;

/**
 * How many clients may be connected so that the files of this process are enough: each may need a connection to a provider too.
 * @param wanted connections that the operator allows
 */
export function roomFor(wanted: number, files = mostFiles): number {
  return typeof files === 'number' ? Math.min(wanted, Math.max(16, Math.floor((files - reservedFiles) / 2))) : wanted;
}

/**
 * Keeps the number of connections within a bound. Who comes when all places are taken gets that of somebody idle: first of those that have never said
 * anything, then of those that rest between two requests, the oldest first. When all are being answered there are a few extra places; beyond those a
 * connection is closed.
 */
export function boundConnections(server: Server, most: () => number, clock: Clock): ConnectionLimit {
  const open = new Map<Asking, number>(); // when they came (monotonic milliseconds), in this order
  const extra = new Set<Socket>();
  const isFull = () => open.size - extra.size >= most();

  const sendAway = (isIdle: (socket: Asking) => boolean, cameBefore: number): boolean => {
    let left = Math.ceil(most() / 100); // several, so that the next one need not look again
    for (const [socket, cameAt] of open) {
      if (left === 0 || cameAt > cameBefore) break;
      if (!isIdle(socket)) continue;
      forget(socket);
      socket.destroy();
      left--;
    }
    return left < Math.ceil(most() / 100);
  };

  /** Sends idle ones away that came so long ago, if there are any. */
  const sendingAway = (milliseconds: number, among: (socket: Socket) => boolean) => {
    let restUntil = 0;
    return () => {
      const now = clock.monotonic();
      if (now < restUntil) return;
      const kinds = [isSilent, isResting].map((isIdle) => (socket: Asking) => isIdle(socket) && among(socket));
      if (!kinds.some((isIdle) => sendAway(isIdle, now - milliseconds))) restUntil = now + restMilliseconds;
    };
  };
  const makeRoom = sendingAway(newMilliseconds, (socket) => !extra.has(socket));
  const squeeze = sendingAway(0, () => true);

  const forget = (socket: Socket): void => {
    open.delete(socket);
    extra.delete(socket);
  };

  server.on('connection', (socket) => {
    if (isFull()) makeRoom();
    if (isFull() && extra.size >= extraPlaces) squeeze();
    if (isFull() && extra.size >= extraPlaces) {
      socket.destroy();
      return;
    }
    if (isFull()) extra.add(socket);
    open.set(socket, clock.monotonic());
    void socket.remoteAddress; // the runtime remembers it from here, and could not tell it any more of a client that has left
    socket.once('close', () => forget(socket));
  });

  return {
    isExtra: (socket) => extra.size > 0 && extra.has(socket),
    get connections() {
      return open.size;
    },
  };
}

/** `_httpMessage` is the answer that is under way on this connection: the runtime's own name for it. */
type Asking = Socket & { readonly _httpMessage?: null | object };

const isSilent = (socket: Asking) => socket.bytesRead === 0;
const isResting = (socket: Asking) => !socket._httpMessage;
