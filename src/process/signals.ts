import { whenLauncherDies } from './launcher.ts';

/** Ctrl-C arrives three times through npm; what comes within this time is one signal. */
const sameMilliseconds = 1000;

/**
 * SIGTERM, SIGINT or the death of the launcher: stops once. A later second signal ends the process at once.
 *
 * @param stop settles everything; the process exits with 0 after it
 * @param mostSeconds how long it may take after a mistake, when nobody is there to send a second signal
 * @returns stops too, for a mistake of ours: the process exits with 1 then
 */
export function stopOnSignals(stop: () => Promise<void>, mostSeconds: number): () => void {
  let firstAt: number | undefined;
  let isStopping = false;
  let code = 0;
  const stopOnce = () => {
    if (isStopping) return;
    isStopping = true;
    stop().then(
      () => process.exit(code),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  };
  const heard = () => {
    const now = performance.now();
    if (firstAt !== undefined && now - firstAt > sameMilliseconds) process.exit(1);
    firstAt ??= now;
    stopOnce();
  };
  process.on('SIGTERM', heard);
  process.on('SIGINT', heard);
  whenLauncherDies(heard);
  return () => {
    if (code === 0) setTimeout(() => process.exit(1), mostSeconds * 1000);
    code = 1;
    stopOnce();
  };
}
