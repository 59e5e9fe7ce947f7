import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { Guard } from 'typebox/guard';

/** A schema violation. `field` is a path as a client would write it: `messages[0].content`; empty for the value itself. */
export interface Problem {
  readonly field: string;
  readonly message: string;
  readonly missing: boolean;
  /** Of a member that is not known: those that are. */
  readonly known?: readonly string[];
}

/**
 * Turns a schema into a function that takes `unknown`, returns the typed value and throws on a violation.
 * A valid value costs one compiled check; only an invalid one is walked a second time for the message.
 */
export function checked<Schema extends TSchema>(schema: Schema, refuse: (problem: Problem) => Error): (value: unknown) => Static<Schema> {
  let check: ((value: unknown) => boolean) | undefined;
  return (value) => {
    check ??= compile(schema);
    if (check(value)) return value as Static<Schema>;
    throw refuse(problemOf(schema, value, '') ?? { field: '', message: 'The value does not have the expected form.', missing: false });
  };
}

function compile(schema: TSchema): (value: unknown) => boolean {
  const validator = Compile(schema);
  return (value) => validator.Check(value);
}

/** The part of JSON Schema that our schemas use. */
interface Rule {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Rule[];
  readonly not?: object;
  readonly properties?: Readonly<Record<string, Rule>>;
  readonly patternProperties?: Readonly<Record<string, Rule>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Rule;
  readonly maxProperties?: number;
  readonly items?: Rule;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  /** The message for a text that does not match the pattern, and for what nothing may be: `must be an e-mail address`. */
  readonly expected?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
}

function problemOf(rule: Rule, value: unknown, field: string): Problem | undefined {
  if (rule.anyOf) return rule.anyOf.some((one) => !problemOf(one, value, field)) ? undefined : nearest(rule.anyOf, value, field);
  if (rule.not) return wrong(field, rule.expected ?? 'is not known');
  if ('const' in rule) return value === rule.const ? undefined : wrong(field, `must be ${say(rule.const)}`);
  if (rule.enum) return rule.enum.includes(value) ? undefined : wrong(field, `must be ${choice(rule.enum.map(say))}`);
  if (rule.type && !hasType(rule.type, value)) return wrong(field, tooLargeToCount(rule, value) ?? `must be ${article(rule.type)}`);
  if (typeof value === 'string') return textProblem(rule, value, field);
  if (typeof value === 'number') return numberProblem(rule, value, field);
  if (Array.isArray(value)) return arrayProblem(rule, value, field);
  if (value !== null && typeof value === 'object') return objectProblem(rule, value as Record<string, unknown>, field);
  return undefined;
}

/** An integer that JSON can hold and JavaScript cannot count to would be told that it is no integer. */
function tooLargeToCount({ type, minimum = Number.MIN_SAFE_INTEGER, maximum = Number.MAX_SAFE_INTEGER }: Rule, value: unknown): string | undefined {
  if (type !== 'integer' || !Number.isInteger(value)) return undefined;
  return (value as number) > 0 ? `must be at most ${maximum}` : `must be at least ${minimum}`;
}

function textProblem(rule: Rule, value: string, field: string): Problem | undefined {
  // lengths are those of JSON Schema: in code points
  if (rule.minLength !== undefined && !Guard.IsMinLength(value, rule.minLength))
    return wrong(field, rule.minLength === 1 ? 'must not be empty' : `must have at least ${rule.minLength} characters`);
  if (rule.maxLength !== undefined && !Guard.IsMaxLength(value, rule.maxLength)) return wrong(field, `must have at most ${rule.maxLength} characters`);
  if (rule.pattern !== undefined && !new RegExp(rule.pattern, 'u').test(value)) return wrong(field, rule.expected ?? `must match ${rule.pattern}`);
  return undefined;
}

function numberProblem(rule: Rule, value: number, field: string): Problem | undefined {
  const { exclusiveMinimum } = rule;
  // what JavaScript can count to is nobody's limit
  const minimum = rule.minimum === Number.MIN_SAFE_INTEGER ? undefined : rule.minimum;
  const maximum = rule.maximum === Number.MAX_SAFE_INTEGER ? undefined : rule.maximum;
  if (minimum !== undefined && maximum !== undefined && (value < minimum || value > maximum)) return wrong(field, `must be between ${minimum} and ${maximum}`);
  if (minimum !== undefined && value < minimum) return wrong(field, `must be at least ${minimum}`);
  if (maximum !== undefined && value > maximum) return wrong(field, `must be at most ${maximum}`);
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) return wrong(field, `must be more than ${exclusiveMinimum}`);
  return undefined;
}

function arrayProblem(rule: Rule, value: readonly unknown[], field: string): Problem | undefined {
  if (rule.minItems !== undefined && value.length < rule.minItems)
    return wrong(field, rule.minItems === 1 ? 'must not be empty' : `must have at least ${rule.minItems} items`);
  if (rule.maxItems !== undefined && value.length > rule.maxItems) return wrong(field, `must have at most ${rule.maxItems} items`);
  return rule.items && first(value, (item, at) => problemOf(rule.items!, item, `${field}[${at}]`));
}

function objectProblem(rule: Rule, value: Record<string, unknown>, field: string): Problem | undefined {
  const missing = rule.required?.find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) return { ...wrong(join(field, missing), 'is required'), missing: true };
  if (rule.maxProperties !== undefined && Object.keys(value).length > rule.maxProperties)
    return wrong(field, `must have at most ${rule.maxProperties} members`);
  return first(Object.keys(value), (name) => {
    const patterned = Object.entries(rule.patternProperties ?? {}).find(([pattern]) => new RegExp(pattern, 'u').test(name))?.[1];
    const inner = (rule.properties && Object.hasOwn(rule.properties, name) ? rule.properties[name] : undefined) ?? patterned ?? rule.additionalProperties;
    if (inner === false) return { ...wrong(join(field, name), 'is not known'), known: Object.keys(rule.properties ?? {}) };
    return typeof inner === 'object' ? problemOf(inner, value[name], join(field, name)) : undefined;
  });
}

/** If no alternative of a union matches, the message is about the intended one: the one with the same `type` member, else the same JSON type. */
function nearest(forms: readonly Rule[], value: unknown, field: string): Problem {
  const rules = forms.flatMap(alternativesOf);
  if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
    const objects = rules.filter((one) => one.type === 'object' || one.properties);
    const tagged = objects.filter((one) => tagOf(one) !== undefined);
    const tag = (value as { type?: unknown }).type;
    const meant =
      tagged.find((one) => tagOf(one)!.includes(tag)) ??
      (tagged.length === 0 || tagged.length < objects.length ? objects.find((one) => !tagOf(one)) : undefined);
    if (meant) return problemOf(meant, value, field)!;
    if (tagged.length > 0) {
      const message = `must be ${choice(tagged.flatMap((one) => tagOf(one)!).map(say))}`;
      return tag === undefined ? { ...wrong(join(field, 'type'), 'is required'), missing: true } : wrong(join(field, 'type'), message);
    }
  }
  const meant = rules.filter((one) => one.type && hasType(one.type, value));
  if (meant.length === 1) return problemOf(meant[0]!, value, field)!;
  const countable = rules.map((one) => tooLargeToCount(one, value)).find((text) => text !== undefined);
  if (countable !== undefined) return wrong(field, countable);
  const consts = rules.flatMap((one) => ('const' in one ? [say(one.const)] : (one.enum?.map(say) ?? [])));
  const types = rules.flatMap((one) => ('const' in one || one.enum ? [] : one.type ? [article(one.type)] : []));
  return wrong(field, `must be ${choice([...new Set([...consts, ...types])])}`);
}

/** The alternatives of a union in a schema, nested unions included. */
export function alternativesOf<Rule extends { readonly anyOf?: readonly Rule[] }>(rule: Rule): readonly Rule[] {
  return rule.anyOf ? rule.anyOf.flatMap(alternativesOf) : [rule];
}

function tagOf(rule: Rule): readonly unknown[] | undefined {
  const type = rule.properties?.['type'];
  if (!type) return undefined;
  if ('const' in type) return [type.const];
  return type.enum ?? type.anyOf?.flatMap((one) => ('const' in one ? [one.const] : []));
}

function hasType(type: string, value: unknown): boolean {
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return value !== null && typeof value === 'object' && !Array.isArray(value);
    case 'integer':
      return Number.isSafeInteger(value);
    case 'number':
      return Number.isFinite(value);
    default:
      return typeof value === type;
  }
}

function first<Item>(items: readonly Item[], problem: (item: Item, at: number) => Problem | undefined): Problem | undefined {
  for (const [at, item] of items.entries()) {
    const found = problem(item, at);
    if (found) return found;
  }
  return undefined;
}

const wrong = (field: string, text: string): Problem => ({ field, message: `${field || 'The value'} ${text}.`, missing: false });
const join = (field: string, name: string) => (field ? `${field}.${name}` : name);
const say = (value: unknown) => (typeof value === 'string' ? `"${value}"` : String(value));
const article = (type: string) => (type === 'null' ? 'null' : /^[aio]/.test(type) ? `an ${type}` : `a ${type}`);
const choice = (words: readonly string[]) => (words.length < 2 ? (words[0] ?? 'something else') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`);
