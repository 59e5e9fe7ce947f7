import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { LightSignal } from './light-signal.ts';

test('whoever listens is told once, with the reason there to be read', () => {
  const signal = new LightSignal();
  const received: unknown[] = [];
  const listener = { handleEvent: () => received.push(signal.reason) };
  signal.addEventListener('abort', listener);
  signal.addEventListener('abort', listener);
  const gone = vi.fn<() => void>();
  signal.addEventListener('abort', gone);
  signal.removeEventListener('abort', gone);
  signal.abort('why');
  signal.abort('again');
  expect(received).toEqual(['why']);
  expect(gone).not.toHaveBeenCalled();
  expect(() => signal.throwIfAborted()).toThrow('why');
});

test('the platform takes it for a signal', async () => {
  const signal = new LightSignal();
  const sleeping = sleep(60_000, undefined, { signal });
  signal.abort(new Error('over'));
  await expect(sleeping).rejects.toMatchObject({ name: 'AbortError', cause: { message: 'over' } });
});

test('a listener that throws keeps nobody else from hearing, and its mistake is not lost', async () => {
  const signal = new LightSignal();
  const received: string[] = [];
  const mistakes: unknown[] = [];
  const others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => mistakes.push(error));
  onTestFinished(() => {
    process.removeAllListeners('uncaughtException');
    for (const other of others) process.on('uncaughtException', other);
  });
  Object.assign(signal, {
    onabort: () => {
      throw new Error('first');
    },
  });
  signal.addEventListener('abort', () => {
    throw new Error('second');
  });
  signal.addEventListener('abort', () => received.push('third'));
  signal.abort('why');
  expect(received).toEqual(['third']);
  await expect.poll(() => mistakes).toEqual([new Error('first'), new Error('second')]);
});
