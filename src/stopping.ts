import { whenLauncherDies } from './launched.ts';

/** Ctrl-C arrives three times through npm; what comes within this time is one signal. */
const sameMilliseconds = 1000;

/**
 * SIGTERM, SIGINT or the death of the launcher: stops once. A later second signal ends the process at once.
 *
 * @param stop settles everything; the process exits with 0 after it
 */
export function stopOnSignals(stop: () => Promise<void>): void {
  let firstAt: number | undefined;
  const heard = () => {
    const now = performance.now();
    if (firstAt === undefined) {
      firstAt = now;
      stop().then(
        () => process.exit(0),
        (error: unknown) => {
          console.error(error);
          process.exit(1);
        },
      );
    } else if (now - firstAt > sameMilliseconds) process.exit(1);
  };
  process.on('SIGTERM', heard);
  process.on('SIGINT', heard);
  whenLauncherDies(heard);
}
