import { Console } from 'node:console';

/** Ends a command with 1 whose output cannot be written: quietly where the reader has left, as `head` does, else with the reason, such as a full disk. */
export function endWithoutOutput(): void {
  globalThis.console = new Console({ stdout: process.stdout, stderr: process.stderr, ignoreErrors: false }); // the one of Node is silent about what gets lost
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (code !== 'EPIPE') process.stderr.write(`dragoman: The output cannot be written: ${message}.\n`);
    process.exit(1);
  });
  process.stderr.on('error', () => {});
}
