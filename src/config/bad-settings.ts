import type { Path } from './path.ts';

/** One invalid setting and its place: `dragoman.yaml:3:5`, `PORT`, `--port`. */
export interface BadSetting {
  readonly place: string;
  /** The setting as a dotted path (of a variable or an option: its name), what was expected and what was found; never a secret. */
  readonly message: string;
}

/** Invalid settings. The message has one line per problem. */
export class BadSettings extends Error {
  readonly problems: readonly BadSetting[];

  constructor(problems: readonly BadSetting[]) {
    super(problems.map(({ place, message }) => (message.startsWith(`${place} `) ? message : `${place}: ${message}`)).join('\n'));
    this.name = 'BadSettings';
    this.problems = problems;
  }
}

/** An invalid setting and where it stands in its layer. */
export interface LocatedProblem extends BadSetting {
  readonly path: Path;
}

/** Settings that another one depends on: a path in which `undefined` is any step. */
export type Dependency = readonly (string | number | undefined)[];

/** Whether one of these problems could be why another one is reported: it is about the same entry, or the same value if that is wrong alone, or about something that this one depends on. */
export function mayFollowFrom(
  { path, alone, dependsOn = [] }: { readonly path: Path; readonly alone?: true; readonly dependsOn?: readonly Dependency[] },
  problems: readonly LocatedProblem[],
): boolean {
  const places = [alone ? path : path.slice(0, entryDepth[String(path[0])] ?? 1), ...dependsOn];
  return problems.some((problem) =>
    places.some((place) => place.every((step, at) => at >= problem.path.length || step === undefined || step === problem.path[at])),
  );
}

/** How many steps lead to one entry, such as a model, where a setting has independent ones. */
const entryDepth: Readonly<Record<string, number>> = { providers: 2, models: 2, plans: 2, cache: 2, guard: 3, mcp: 3 };
