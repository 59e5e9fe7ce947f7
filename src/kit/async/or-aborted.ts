/** Waits for a promise no longer than until the signal is aborted. @throws the reason of the signal, or what the promise rejects with */
export function orAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason as Error);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave)); // its rejection is handled even without a waiter
  });
}
