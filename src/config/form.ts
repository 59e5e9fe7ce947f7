import type { TSchema } from 'typebox';
import { bare } from './bare.ts';
import type { Path } from './path.ts';

/** The part of JSON Schema that the settings use. */
export interface Rule {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Rule[];
  readonly properties?: Readonly<Record<string, Rule>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Rule;
  readonly items?: Rule;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly description?: string;
}

/** The schema of the input, in which every member with a default is optional. */
export function loosened(rule: TSchema | Rule): Rule {
  const { properties, required, additionalProperties, items, anyOf, ...rest } = rule as Rule;
  const needed = required?.filter((name) => !Object.hasOwn(properties![name]!, 'default')) ?? [];
  return {
    ...rest,
    ...(anyOf ? { anyOf: anyOf.map(loosened) } : {}),
    ...(items ? { items: loosened(items) } : {}),
    ...(properties ? { properties: Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, loosened(one)])) } : {}),
    ...(needed.length > 0 ? { required: needed } : {}),
    ...(additionalProperties === undefined
      ? {}
      : { additionalProperties: typeof additionalProperties === 'object' ? loosened(additionalProperties) : additionalProperties }),
  };
}

/** Removes declared members whose value is null, such as a bare `models:`. They count as absent. */
export function pruned(rule: Rule | undefined, value: unknown): unknown {
  if (!rule || value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map((item) => pruned(rule.items, item));
  const members = Object.entries(value).filter(([name, inner]) => inner !== null || !memberOf(rule, name, 'declared'));
  return bare(members.map(([name, inner]) => [name, pruned(memberOf(rule, name), inner)]));
}

/** Adds the default of every absent member. */
export function filled(rule: Rule, value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value;
  if (rule.anyOf) {
    const [first, ...others] = rule.anyOf.filter(({ type }) => type === 'object');
    return first && others.length === 0 ? filled(first, value) : value;
  }
  if (Array.isArray(value)) return rule.items ? value.map((item) => filled(rule.items!, item)) : value;
  if (!rule.properties) return bare(Object.entries(value).map(([name, inner]) => [name, filled(memberOf(rule, name)!, inner)]));
  const members = Object.entries(rule.properties).flatMap(([name, inner]): [string, unknown][] => {
    if (Object.hasOwn(value, name)) return [[name, filled(inner, (value as Record<string, unknown>)[name])]];
    return Object.hasOwn(inner, 'default') ? [[name, filled(inner, inner.default)]] : [];
  });
  const others = typeof rule.additionalProperties === 'object' ? rule.additionalProperties : undefined;
  const more = others
    ? Object.entries(value).flatMap(([name, inner]): [string, unknown][] => (Object.hasOwn(rule.properties!, name) ? [] : [[name, filled(others, inner)]]))
    : [];
  return others ? bare([...members, ...more]) : Object.fromEntries(members);
}

/** The rule for the value at a path. */
export function ruleAt(rule: Rule, path: Path): Rule | undefined {
  return path.reduce<Rule | undefined>((inner, step) => (typeof step === 'number' ? inner?.items : inner && memberOf(inner, step)), rule);
}

/** The names of the declared members. */
export const membersOf = (rule: Rule | undefined): readonly string[] => rule?.anyOf?.flatMap(membersOf) ?? Object.keys(rule?.properties ?? {});

function memberOf(rule: Rule, name: string, which?: 'declared'): Rule | undefined {
  if (rule.anyOf) return rule.anyOf.map((one) => memberOf(one, name, which)).find((one) => one !== undefined);
  if (rule.properties && Object.hasOwn(rule.properties, name)) return rule.properties[name];
  return typeof rule.additionalProperties === 'object' && which !== 'declared' ? rule.additionalProperties : undefined;
}
