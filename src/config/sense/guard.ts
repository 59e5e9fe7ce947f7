import type { Settings } from '../schema/index.ts';
import { repeated, type Trouble } from './trouble.ts';

export function* guard({ guard }: Settings): Iterable<Trouble> {
  const needs = { regex: 'pattern', pii: 'entities', moderation: 'model', http: 'url' } as const;
  yield* repeated(
    guard.checks.map(({ name }) => name),
    ['guard', 'checks'],
    'the name of a check',
  );
  for (const [at, check] of guard.checks.entries()) {
    const path = ['guard', 'checks', at];
    if (check[needs[check.kind]] === undefined) yield { path, silent: true, text: `is of kind ${check.kind} and needs ${needs[check.kind]}.` };
    if (check.pattern !== undefined && !isPattern(check.pattern)) yield { path: [...path, 'pattern'], text: 'must be a regular expression.' };
  }
}

function isPattern(text: string): boolean {
  try {
    return new RegExp(text) instanceof RegExp;
  } catch {
    return false;
  }
}
