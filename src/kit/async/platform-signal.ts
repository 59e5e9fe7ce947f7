/** The platform's own kind of signal, which parts of the platform insist on. */
export function asPlatformSignal(signal: AbortSignal): AbortSignal {
  const own = new AbortController();
  if (signal.aborted) own.abort(signal.reason);
  else signal.addEventListener('abort', () => own.abort(signal.reason), { once: true });
  return own.signal;
}
