import type { Path } from './path.ts';

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

/** An invalid setting and where it stands in its layer. */
export interface LocatedProblem extends BadSetting {
  readonly path: Path;
}

/** Whether one of these problems could be why another one is reported: it is about the same provider or model, or about something that they name. */
export function mayFollowFrom(path: Path, problems: readonly LocatedProblem[]): boolean {
  const [root] = path;
  return problems.some(
    ({ path: [other] }) => other === undefined || other === root || ((root === 'models' || root === 'defaults' || root === 'guard') && named.has(other)),
  );
}

const named = new Set<string | number>(['providers', 'models']);
