import { whenLauncherDies } from './launcher.ts';

/** Ctrl-C arrives three times through npm: signals within this time count as one. */
const sameMilliseconds = 1000;

const nothingToStop = () => process.exit(0);

/** A signal that comes before `stopOnSignals` was called ends the process at once, and well. */
export function stopWhileLoading(): void {
  process.on('SIGTERM', nothingToStop);
  process.on('SIGINT', nothingToStop);
}

interface Stopping {
  /** Lets what is running finish, and settles everything. */
  readonly stop: () => Promise<void>;
  /** Writes down what is running, for an end at once. */
  readonly settle: () => Promise<void>;
  /** How long a stop after an uncaught error may take, since no second signal may follow. */
  readonly mostSeconds: number;
}

/**
 * Calls `stop` once, on SIGTERM, SIGINT or the death of the launcher, and exits with 0 after it. A later second signal ends the process at once.
 * @returns stops too, after an uncaught error: the process then exits with 1
 */
export function stopOnSignals({ stop, settle, mostSeconds }: Stopping): () => void {
  let firstAt: number | undefined;
  let isStopping = false;
  let code = 0;
  const endAtOnce = () => void settle().finally(() => process.exit(1));
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
  const onSignal = () => {
    const now = performance.now();
    if (firstAt !== undefined && now - firstAt > sameMilliseconds) endAtOnce();
    firstAt ??= now;
    stopOnce();
  };
  process.off('SIGTERM', nothingToStop);
  process.off('SIGINT', nothingToStop);
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  whenLauncherDies(onSignal);
  return () => {
    if (code === 0) setTimeout(endAtOnce, mostSeconds * 1000);
    code = 1;
    stopOnce();
  };
}
