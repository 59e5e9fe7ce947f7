import type { TSchema } from 'typebox';
import { checked, type Problem } from '#kit/json/check';
import type { ProviderKind } from '#core/provider-kind';
import type { BadSetting } from './bad-settings.ts';
import { loosened, membersOf, pruned, ruleAt, type Rule } from './form.ts';
import type { Layer } from './layer.ts';
import { nearest } from './near.ts';
import { withNotes } from './not-in-effect.ts';
import { fieldOf, pathOf, valueAt, type Path } from './path.ts';
import { allSettings, fileSettings } from './schema/index.ts';
import { shown } from './shown.ts';

/** The schemas of the settings for a set of provider kinds. */
interface Forms {
  /** Schema of the file. */
  readonly file: Rule;
  /** The same with the settings that only the environment and the command line may have. */
  readonly all: Rule;
}

const known = new WeakMap<readonly ProviderKind[], Forms>();

export function formsFor(kinds: readonly ProviderKind[]): Forms {
  const forms = known.get(kinds) ?? { file: withNotes(loosened(fileSettings(kinds))), all: loosened(allSettings(kinds)) };
  known.set(kinds, forms);
  return forms;
}

/** The settings of a layer, with the first violation of the schema if there is one. */
export function shaped(rule: Rule, layer: Layer): { readonly value: Layer['value']; readonly problem?: BadSetting } {
  const value = pruned(rule, layer.value) as Layer['value'];
  try {
    checkOf(rule)(value);
    return { value };
  } catch (error) {
    if (!(error instanceof Misfit)) throw error;
    return { value, problem: located(rule, layer, value, error.problem) };
  }
}

class Misfit extends Error {
  readonly problem: Problem;
  constructor(problem: Problem) {
    super(problem.message);
    this.problem = problem;
  }
}

const checks = new Map<Rule, (value: unknown) => unknown>();

function checkOf(rule: Rule): (value: unknown) => unknown {
  const check = checks.get(rule) ?? checked(rule as TSchema, (problem) => new Misfit(problem));
  checks.set(rule, check);
  return check;
}

function located(rule: Rule, layer: Layer, value: unknown, { field, message, missing }: Problem): BadSetting {
  if (missing) {
    const parent = pathOf(field.slice(0, field.lastIndexOf('.')), value) ?? [];
    return { place: layer.place([...parent, field.slice(field.lastIndexOf('.') + 1)], 'name'), message };
  }
  const path = pathOf(field, value) ?? [];
  if (path.length > 0 && !ruleAt(rule, path))
    return { place: layer.place(path, 'name'), message: unknown(path, membersOf(ruleAt(rule, path.slice(0, -1))), message) };
  const expected = field === '' ? message.replace('The value', 'The file').replace('an object', 'members as `name: value`') : message;
  return { place: layer.place(path, 'value'), message: expected + shown(path, ruleAt(rule, path), layer.written(path) ?? valueAt(value, path)) };
}

function unknown(path: Path, known: readonly string[], message: string): string {
  const meant = nearest(String(path.at(-1)), known);
  const parent = fieldOf(path.slice(0, -1));
  return `${message} ${meant ? `Did you mean ${meant}?` : `${parent || 'The file'} may have: ${known.join(', ')}.`}`;
}
