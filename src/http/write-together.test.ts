import type { ServerResponse } from 'node:http';
import { Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { writeTogether } from './write-together.ts';

/** A response on a connection that notes what leaves at once. */
function response() {
  const left: string[][] = [];
  const socket = new Writable({
    decodeStrings: false,
    write: (chunk: string, _encoding, done) => (left.push([chunk]), done()),
    writev: (chunks: readonly { readonly chunk: string }[], done: () => void) => (left.push(chunks.map(({ chunk }) => chunk)), done()),
  });
  const one = { socket } as unknown as ServerResponse;
  const write = (text: string) => (writeTogether(one), socket.write(text));
  return { left, socket, write };
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 1));

test('what is written in one turn of the event loop leaves at its end in one piece, and what is written later by itself', async () => {
  const { left, write } = response();
  write('a');
  await Promise.resolve();
  write('b');
  await new Promise<void>((resolve) => process.nextTick(resolve));
  write('c');
  expect(left).toEqual([]);
  await turn();
  expect(left).toEqual([['a', 'b', 'c']]);
  write('d');
  await turn();
  expect(left).toEqual([['a', 'b', 'c'], ['d']]);
});

test('an answer that ends within the turn leaves at once, and the next one on its connection is not held back', async () => {
  const { left, socket, write } = response();
  write('a');
  socket.uncork(); // as the end of a response does it
  expect(left).toEqual([['a']]);
  write('b');
  await turn();
  await turn();
  expect(left).toEqual([['a'], ['b']]);
  expect(socket.writableCorked).toBe(0);
});

test('without a connection of its own yet, an answer waits as before', () => {
  expect(() => writeTogether({ socket: null } as unknown as ServerResponse)).not.toThrow();
});
