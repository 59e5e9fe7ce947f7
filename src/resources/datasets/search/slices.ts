import { setImmediate as nextTurn } from 'node:timers/promises';

const sliceMilliseconds = 8;

/** Between two steps of long work: lets others have the event loop when it was held for 8 ms. */
export function slices(signal?: AbortSignal): () => Promise<void> | undefined {
  let since = performance.now();
  const rest = async () => {
    signal?.throwIfAborted();
    await nextTurn();
    since = performance.now();
  };
  return () => (performance.now() - since < sliceMilliseconds ? undefined : rest());
}
