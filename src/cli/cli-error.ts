/** A command was told no. Its message is for whoever typed it. */
export class CliError extends Error {
  /** As HTTP has it: 400 is wrong usage. */
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.name = 'Refused';
    this.status = status;
  }
}
