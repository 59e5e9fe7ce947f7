/** One invalid setting and its place: `dragoman.yaml:3:5`, `PORT`, `--port`. */
export interface BadSetting {
  readonly place: string;
  /** The setting as a dotted path, what was expected and what was found; never a secret. */
  readonly message: string;
}

/** Invalid settings. The message has one line per problem. */
export class BadSettings extends Error {
  readonly problems: readonly BadSetting[];

  constructor(problems: readonly BadSetting[]) {
    super(problems.map(({ place, message }) => `${place}: ${message}`).join('\n'));
    this.name = 'BadSettings';
    this.problems = problems;
  }
}
