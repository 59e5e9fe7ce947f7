import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { afterAll, expect, test } from 'vitest';
import type { TextRead } from './sentence-worker.ts';

/** Runs before the program of the thread: its backend starts long after the files of the model are read, as on a busy machine. */
const slowBackend = `
  const { instantiate } = WebAssembly;
  const late = new Promise((resolve) => setTimeout(resolve, 2000));
  WebAssembly.instantiate = (...given) => late.then(() => instantiate(...given));
`;
const preload = `data:text/javascript,${encodeURIComponent(slowBackend)}`;
const worker = new Worker(new URL('sentence-worker.ts', import.meta.url), { execArgv: [...process.execArgv, '--import', preload] });
afterAll(() => worker.terminate());

test('a text is embedded however late the backend is', async () => {
  expect(await once(worker, 'message')).toEqual(['ready']);
  worker.postMessage({ text: 'late' });
  const [{ vector }] = (await once(worker, 'message')) as [TextRead];
  expect(vector).toHaveLength(512);
});
