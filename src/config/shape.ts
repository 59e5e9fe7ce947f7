import { docsPage, program } from './program.ts';
import type { TSchema } from 'typebox';
import { checked, type Problem } from '#kit/json/check';
import type { ProviderKind } from '#core/provider-kind';
import type { BadSetting, LocatedProblem } from './bad-settings.ts';
import { bare } from './bare.ts';
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

/** The settings of a layer, without the parts that violate the schema, and all these violations. @param known what is wrong with it already */
export function shaped(
  rule: Rule,
  layer: Layer,
  known: readonly LocatedProblem[] = [],
): { readonly value: Layer['value']; readonly problems: readonly LocatedProblem[] } {
  let value = pruned(rule, layer.value) as Layer['value'];
  const problems: LocatedProblem[] = [];
  const removed: Path[] = [];
  const remove = (path: Path) => {
    const end = path.findLastIndex((step) => typeof step !== 'number') + 1; // a list loses all its items: the others would move up
    removed.push(path);
    value = end === 0 ? {} : (without(value, path.slice(0, end)) as Layer['value']);
  };
  if (known.length > mostProblems) return { value: {}, problems };
  if (Object.keys(value ?? {}).length > mostSettings) {
    const found = violation(rule, value);
    return { value: {}, problems: found ? [problemAt(located(rule, layer, value, found))] : [] };
  }
  for (const { path } of known) remove(path);
  const startedAt = performance.now();
  for (let round = 0; round < mostProblems && (round === 0 || performance.now() - startedAt < mostMilliseconds); round++) {
    const found = violation(rule, value);
    if (!found) break;
    const { path, part, problem } = located(rule, layer, value, found);
    // What is missing because it was removed is known to be wrong; without it its parent means nothing.
    const isKnown = removed.some((one) => fieldOf(one) === fieldOf(path));
    if (!isKnown) problems.push(problemAt({ path, part, problem }), ...(part === 'missing' ? strangers(rule, layer, value, path.slice(0, -1)) : []));
    remove(part === 'missing' || isKnown ? path.slice(0, -1) : path);
  }
  return { value: problems.length + known.length > 0 && violation(rule, value) ? {} : value, problems };
}

/** The first violation of the schema. */
function violation(rule: Rule, value: unknown): Problem | undefined {
  try {
    checkOf(rule)(value);
    return undefined;
  } catch (error) {
    if (!(error instanceof Misfit)) throw error;
    return error.problem;
  }
}

/** A file with more mistakes, or a huge one, is told of the first ones only. */
const mostMilliseconds = 300;
const mostSettings = 200;
const mostProblems = 50;

/** The value without what stands at the path. */
function without(value: unknown, path: Path): unknown {
  const [step, ...rest] = path;
  if (value === null || typeof value !== 'object' || step === undefined) return value;
  if (Array.isArray(value)) {
    if (typeof step !== 'number') return value;
    return value.with(step, without(value[step], rest));
  }
  const members = Object.entries(value).filter(([name]) => rest.length > 0 || name !== String(step));
  return bare(members.map(([name, inner]) => [name, name === String(step) ? without(inner, rest) : inner]));
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

/** The members that the schema does not know, of an object in which one is missing: one of them may be that one, misspelled. */
function strangers(rule: Rule, layer: Layer, value: unknown, parent: Path): readonly LocatedProblem[] {
  const names = Object.keys(valueAt(value, parent) ?? {}).filter((name) => !ruleAt(rule, [...parent, name]));
  return names.slice(0, mostProblems).map((name) => {
    const field = fieldOf([...parent, name]);
    return problemAt(located(rule, layer, value, { field, message: `${field} is not known.`, missing: false }));
  });
}

const problemAt = ({ path, problem }: Located): LocatedProblem => ({ path, ...problem });

interface Located {
  readonly path: Path;
  readonly part: 'missing' | 'present';
  readonly problem: BadSetting;
}

function located(rule: Rule, layer: Layer, value: unknown, { field, message, missing }: Problem): Located {
  if (missing) {
    const parent = pathOf(field.slice(0, field.lastIndexOf('.')), value) ?? [];
    const path = [...parent, field.slice(field.lastIndexOf('.') + 1)];
    return { path, part: 'missing', problem: { place: layer.place(path, 'name'), message } };
  }
  const path = pathOf(field, value) ?? [];
  if (path.length > 0 && !ruleAt(rule, path))
    return {
      path,
      part: 'present',
      problem: {
        place: layer.place(path, 'name'),
        message: unknown(path, { known: membersOf(ruleAt(rule, path.slice(0, -1))), given: valueAt(layer.value, path.slice(0, -1)) }, message),
      },
    };
  const given = layer.given?.(path);
  const named = given === undefined ? message : given + message.slice(field.length);
  const expected = field === '' ? message.replace('The value', 'The file').replace('an object', 'members as `name: value`') : named;
  const place = layer.place(path, 'value');
  return { path, part: 'present', problem: { place, message: expected + shown(path, ruleAt(rule, path), layer.written(path) ?? valueAt(value, path)) } };
}

const liteLlm = new Set(['model_list', 'litellm_settings', 'general_settings', 'router_settings']);

function unknown(path: Path, { known, given }: { readonly known: readonly string[]; readonly given: unknown }, message: string): string {
  if (path.length === 1 && liteLlm.has(String(path[0])))
    return `${message} This looks like a settings file of LiteLLM: ${docsPage('operating.md')} says how its settings are called here, and ${program} init writes a file to begin with.`;
  const isGiven = (name: string) => typeof given === 'object' && given !== null && Object.hasOwn(given, name);
  const word = String(path.at(-1));
  const meant = nearest(
    word,
    known.filter((name) => !isGiven(name) || word.startsWith(name)), // what is there already was not meant, unless it is there twice: targets2
  );
  const parent = fieldOf(path.slice(0, -1));
  return `${message} ${meant ? `Did you mean ${meant}?` : `${parent || 'The file'} may have: ${known.join(', ')}.`}`;
}
