import type { BadSetting } from './bad-settings.ts';
import type { Path } from './path.ts';

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
