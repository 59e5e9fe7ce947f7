import { describe, expect, test } from 'vitest';
import { openChannel, type Refusals, type Wire } from './channel.ts';

/** Two ends of one wire; messages are copied, as between processes. */
function wires(): [Wire, Wire, () => void] {
  const listeners: ((message: unknown) => void)[] = [];
  const closed: (() => void)[] = [];
  let open = true;
  const end = (mine: number, other: number): Wire => ({
    send(message) {
      const copy: unknown = structuredClone(message);
      if (open) queueMicrotask(() => listeners[other]?.(copy));
    },
    onMessage: (listen) => void (listeners[mine] = listen),
    onClose: (listen) => void closed.push(listen),
  });
  const close = () => {
    open = false;
    for (const listen of closed) listen();
  };
  return [end(0, 1), end(1, 0), close];
}

const refusals: Refusals = {
  encode: (error) => (error as Error).message,
  decode: (message) => new RangeError(String(message)),
  closed: () => new Error('gone'),
};

type Sums = { readonly double: (n: number) => Promise<number>; readonly fail: (why: string) => never; readonly later: () => Promise<string> };

function open() {
  const [here, there, close] = wires();
  const later = Promise.withResolvers<string>();
  const answers: Sums = {
    double: async (n) => n * 2,
    fail: (why) => {
      throw new TypeError(why);
    },
    later: () => later.promise,
  };
  const notes: string[] = [];
  const back = openChannel<{ readonly note: (word: string) => void }>(there, answers, refusals);
  const channel = openChannel<Sums>(here, { note: (word: string) => void notes.push(word) }, refusals);
  return { channel, back, notes, close, later };
}

describe('a channel', () => {
  test('a question gets its own answer, also when a later one is answered first', async () => {
    const { channel, later } = open();
    const slow = channel.ask('later');
    expect(await Promise.all([channel.ask('double', 2), channel.ask('double', Infinity)])).toEqual([4, Infinity]);
    later.resolve('at last');
    expect(await slow).toBe('at last');
  });

  test('what the other side throws is thrown here, as the refusals say', async () => {
    await expect(open().channel.ask('fail', 'no more')).rejects.toThrow(new RangeError('no more'));
  });

  test('both sides ask over the one wire', async () => {
    const { back, channel, notes } = open();
    await back.ask('note', 'first');
    back.tell('note', 'second');
    expect(await channel.ask('double', 1)).toBe(2);
    expect(notes).toEqual(['first', 'second']);
  });

  test('a question that waits when the wire closes, and one asked afterwards, meet a refusal', async () => {
    const { channel, close } = open();
    const waiting = channel.ask('later');
    close();
    await expect(waiting).rejects.toThrow('gone');
    await expect(channel.ask('double', 1)).rejects.toThrow('gone');
    channel.tell('double', 1);
  });
});
