/** A command failed for a reason that its user can act on. The message is printed as it is. */
export class CliError extends Error {
  /** An HTTP status; 400 means wrong usage, which ends the command with exit code 2. */
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.name = 'CliError';
    this.status = status;
  }
}
