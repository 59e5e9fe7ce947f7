/** One thing that is wrong, and where: `dragoman.yaml:3:5`, `PORT`, `--port`. */
export interface BadSetting {
  readonly place: string;
  /** The setting as a dotted path, what was expected and what was found; never a secret. */
  readonly message: string;
}

/** Settings that cannot be used. The message has a line for each thing that is wrong. */
export class BadSettings extends Error {
  readonly problems: readonly BadSetting[];

  constructor(problems: readonly BadSetting[]) {
    super(problems.map(({ place, message }) => `${place}: ${message}`).join('\n'));
    this.name = 'BadSettings';
    this.problems = problems;
  }
}
