import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { LightSignal } from './light-signal.ts';

test('whoever listens is told once, with the reason there to be read', () => {
  const signal = new LightSignal();
  const heard: unknown[] = [];
  const listener = { handleEvent: () => heard.push(signal.reason) };
  signal.addEventListener('abort', listener);
  signal.addEventListener('abort', listener);
  const gone = vi.fn<() => void>();
  signal.addEventListener('abort', gone);
  signal.removeEventListener('abort', gone);
  signal.abort('why');
  signal.abort('again');
  expect(heard).toEqual(['why']);
  expect(gone).not.toHaveBeenCalled();
  expect(() => signal.throwIfAborted()).toThrow('why');
});

test('the platform takes it for a signal', async () => {
  const signal = new LightSignal();
  const sleeping = sleep(60_000, undefined, { signal });
  signal.abort(new Error('over'));
  await expect(sleeping).rejects.toMatchObject({ name: 'AbortError', cause: { message: 'over' } });
});
