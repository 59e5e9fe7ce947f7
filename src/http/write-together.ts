import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { lastInTurn } from '#kit/async/turn-end';

let corked: Socket[] = [];

/**
 * To be called before a part of an answer is written: what is written to a response in one turn of the event loop leaves at its end, behind what other work has
 * put off until then, in one piece, and all responses one after the other. The end of an answer, and whatever was written before it, leaves at once. Each piece that leaves by itself wakes a sleeping client: together they cost a third.
 */
export function writeTogether({ socket }: ServerResponse): void {
  if (!socket || socket.writableCorked > 0) return; // without a socket: answers to earlier requests of the connection are not out
  socket.cork();
  if (corked.push(socket) === 1) lastInTurn(sendAll);
}

/** Sends what waits for the end of the turn: to be called before a connection is cut, which would drop it. */
export const sendNow = ({ socket }: ServerResponse): void => socket?.uncork();

function sendAll(): void {
  const all = corked;
  corked = [];
  for (const socket of all) socket.uncork(); // nothing happens where the answer has ended meanwhile
}
