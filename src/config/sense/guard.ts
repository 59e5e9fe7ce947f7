import { entities, entityOf } from '#kit/finding/entities';
import { writtenPattern } from '#kit/written-pattern';
import { builtInKind } from '../found.ts';
import type { Settings } from '../schema/index.ts';
import { wrongAddress } from './addresses.ts';
import { repeated, type Trouble } from './trouble.ts';

export function* guard({ guard, models }: Settings): Iterable<Trouble> {
  const needs = { regex: 'pattern', pii: 'entities', moderation: 'model', http: 'url' } as const;
  yield* repeated(
    guard.checks.map(({ name }) => name),
    ['guard', 'checks'],
    'the name of a check',
  );
  for (const [at, check] of guard.checks.entries()) {
    const path = ['guard', 'checks', at];
    if (check[needs[check.kind]] === undefined) yield { path, silent: true, text: `is of kind ${check.kind} and needs ${needs[check.kind]}.` };
    if (check.when.length === 0) yield { path: [...path, 'when'], text: 'must have before, after or both.' };
    if (check.kind === 'moderation' && check.action === 'mask')
      yield { path: [...path, 'action'], text: 'must be deny or flag: a model says that something is wrong, not where.' };
    for (const [place, entity] of (check.entities ?? []).entries())
      if (!entityOf(entity)) yield { path: [...path, 'entities', place], text: `must be one of ${entities.join(', ')}.` };
    if (check.kind === 'moderation' && check.model !== undefined && !canModerate(check.model, models))
      yield { path: [...path, 'model'], text: 'must name a model of kind moderation or chat.' };
    const wrong = check.url === undefined ? undefined : wrongAddress(check.url);
    if (wrong) yield { path: [...path, 'url'], text: wrong };
    if (check.pattern !== undefined && !isPattern(check.pattern)) yield { path: [...path, 'pattern'], text: 'must be a regular expression.' };
  }
}

function canModerate(name: string, models: Settings['models']): boolean {
  const named = models[name] ?? Object.values(models).find(({ aliases }) => aliases.includes(name)) ?? models['*'];
  const kind = builtInKind(name) ?? named?.kind;
  return kind === 'moderation' || kind === 'chat';
}

function isPattern(text: string): boolean {
  try {
    return writtenPattern(text) instanceof RegExp;
  } catch {
    return false;
  }
}
