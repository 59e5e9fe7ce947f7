import { entities, entityOf } from '#kit/patterns/entities';
import { writtenPattern } from '#kit/patterns/written-pattern';
import type { Settings } from '../schema/index.ts';
import { wrongAddress } from './addresses.ts';
import { kindNamed, namedModel } from './models.ts';
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
    // With a misspelled model name the check would silently never apply.
    for (const [place, name] of check.models.entries())
      if (kindNamed(name, models) === undefined) yield { path: [...path, 'models', place], text: 'must name a model.', dependsOn: namedModel(name, models) };
    if (check.when.length === 0) yield { path: [...path, 'when'], text: 'must contain before, after or both.' };
    if (check.kind === 'moderation' && check.action === 'mask')
      yield { path: [...path, 'action'], text: 'must be deny or flag; a moderation model does not report which words to mask.' };
    for (const [place, entity] of (check.entities ?? []).entries())
      if (!entityOf(entity)) yield { path: [...path, 'entities', place], text: `must be one of ${entities.join(', ')}.` };
    const kind = check.kind === 'moderation' && check.model !== undefined ? kindNamed(check.model, models) : 'chat';
    if (kind !== 'moderation' && kind !== 'chat')
      yield { path: [...path, 'model'], text: 'must name a model of kind moderation or chat.', dependsOn: namedModel(check.model ?? '', models) };
    const wrong = check.url === undefined ? undefined : wrongAddress(check.url);
    if (wrong) yield { path: [...path, 'url'], text: wrong };
    if (check.pattern !== undefined && !isPattern(check.pattern)) yield { path: [...path, 'pattern'], text: 'must be a regular expression.' };
  }
}

function isPattern(text: string): boolean {
  try {
    return writtenPattern(text) instanceof RegExp;
  } catch {
    return false;
  }
}

export function* cache({ cache, models }: Settings): Iterable<Trouble> {
  for (const name of Object.keys(cache))
    if (name !== '*' && kindNamed(name, models) !== 'chat')
      yield { path: ['cache', name], name: true, silent: true, text: 'must name a chat model, or be "*".', dependsOn: namedModel(name, models) };
}
