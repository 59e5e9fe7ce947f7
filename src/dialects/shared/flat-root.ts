import type { FunctionTool } from '#core/conversation';
import { isObject, membersWhere, textOf, type Json, type JsonObject } from '#core/json';
import { withRefs } from '#core/schema-refs';
import { JoinedSchemas } from './joined-schemas.ts';
import { referredTo } from './local-refs.ts';
import { onceEach, type Budget, type SchemaBudget } from './schema-budget.ts';

/** What schemas of tools must not have at their root: makenotion/notion-mcp-server#102, langchain-ai/langchainjs#9804, anthropics/claude-code#5319 */
export const alternatives = ['anyOf', 'oneOf', 'allOf'] as const;

const deepest = 8;
/** Characters of the sentences about required properties, and as many of the keywords that are not merged. */
const longestTold = 1000;

/**
 * How a tool is made one whose arguments are described as one object: the properties of all alternatives at the root are its own; which of them go together,
 * and what cannot be merged, is told in words.
 * @param refused names that the root must not have
 * @returns the same object where it has none, and where the schema is larger than the budget
 */
export function flattening(refused: readonly string[]): (tool: FunctionTool, ignored: Set<string>, budget: SchemaBudget) => FunctionTool {
  const flatSchema = onceEach((schema, budget) => flatOf(schema, refused, budget));
  return (tool, ignored, budget) => {
    const { parameters } = tool;
    if (parameters === undefined || !refused.some((name) => name in parameters)) return tool;
    const flat = flatSchema(parameters, budget.merging);
    if (!flat) return tool;
    const found = refused.filter((name) => name in parameters).join(', ');
    ignored.add(
      `tools: the provider does not accept ${found} at the root of a schema. The properties of alternatives are merged, and the description says which are required.`,
    );
    return { ...tool, parameters: flat };
  };
}

function flatOf(schema: JsonObject, refused: readonly string[], budget: Budget): JsonObject | undefined {
  const joined = new JoinedSchemas(budget);
  if ((budget.left -= joined.sizeOf(schema)) < 0) return undefined;
  const flattened = new Flattening(schema, budget, joined);
  flattened.tell(schema, (name) => refused.includes(name) && !isAlternative(name), true);
  const { properties, required } = flattened.of(schema, 0, true);
  if (budget.left < 0) return undefined;
  const names = new Set(refused);
  const description = [textOf(schema['description']), ...flattened.told].filter((text) => text !== '').join('\n');
  const flat: JsonObject = {
    ...membersWhere(schema, (name) => !names.has(name)),
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(required.length > 0 ? { required } : {}),
    ...(description === '' ? {} : { description }),
  };
  return withMoved(flat, schema, (one) => (budget.left -= joined.sizeOf(one)) >= 0);
}

/**
 * The flat schema with what it refers to in the alternatives that are no longer there.
 * @param affords spends what another schema takes. @returns false where it takes too much
 */
function withMoved(flat: JsonObject, root: JsonObject, affords: (schema: Json) => boolean): JsonObject {
  const moved = new Map<string, { readonly name: string; schema: Json }>();
  const taken = isObject(flat['$defs']) ? flat['$defs'] : {};
  let last = 0;
  const free = (): string => {
    while (Object.hasOwn(taken, `of_alternatives_${++last}`));
    return `of_alternatives_${last}`;
  };
  const change = (ref: string): string => {
    if (!/^#\/(?:anyOf|oneOf|allOf)\//.test(ref)) return ref;
    const known = moved.get(ref);
    const schema = known ? known.schema : referredTo(ref, root);
    if (schema === undefined || (!known && !affords(schema))) return ref;
    const place = known ?? { name: free(), schema };
    moved.set(ref, place);
    return `#/$defs/${place.name}`;
  };
  const changed = withRefs(flat, change) as JsonObject;
  if (moved.size === 0) return flat;
  for (const place of moved.values()) place.schema = withRefs(place.schema, change); // those found on the way are looked at, too
  const defined = isObject(changed['$defs']) ? changed['$defs'] : {};
  return { ...changed, $defs: { ...defined, ...Object.fromEntries(Array.from(moved.values(), ({ name, schema }) => [name, schema])) } };
}

interface Flat {
  readonly properties: ReadonlyMap<string, Json>;
  readonly required: readonly string[];
}

/** What is said of one property. */
interface PropertyRules {
  /** All of these hold. */
  readonly all: Json[];
  /** Of each list of alternatives, one holds. */
  readonly any: { readonly schemas: readonly Json[]; readonly isOfEach: boolean }[];
}

/** Keywords of a branch that are merged, or restrict nothing. */
const known: ReadonlySet<string> = new Set([
  ...alternatives,
  ...'properties required type $defs definitions $schema $id $comment title description default examples example deprecated discriminator externalDocs'.split(
    ' ',
  ),
]);

const isAlternative = (name: string): boolean => (alternatives as readonly string[]).includes(name);

/** Flattens each part of a schema once, however often it is referred to. What it returns once the budget is spent is of no use. */
class Flattening {
  readonly #root: JsonObject;
  readonly #budget: Budget;
  readonly #joined: JoinedSchemas;
  /** By whether they hold always, and not in one of several alternatives. */
  readonly #flat = { always: new Map<JsonObject, Flat>(), sometimes: new Map<JsonObject, Flat>() };
  /** Those that are being flattened: one that refers to them says nothing else. */
  readonly #open = new Set<JsonObject>();
  readonly #sentences = new Limited();
  readonly #others = new Limited();

  constructor(root: JsonObject, budget: Budget, joined: JoinedSchemas) {
    this.#root = root;
    this.#budget = budget;
    this.#joined = joined;
  }

  get told(): readonly string[] {
    return [...this.#sentences.texts, ...this.#others.texts];
  }

  of(schema: JsonObject, depth: number, isAlways: boolean): Flat {
    const known = this.#flat[isAlways ? 'always' : 'sometimes'];
    const before = known.get(schema);
    if (before) return before;
    this.#open.add(schema);
    const flat = this.#flatOf(schema, depth, isAlways);
    this.#open.delete(schema);
    known.set(schema, flat);
    return flat;
  }

  #flatOf(schema: JsonObject, depth: number, isAlways: boolean): Flat {
    const target = depth > 0 && depth < deepest ? resolved(schema, this.#root) : undefined;
    if (depth > 0) this.tell(schema, (name, value) => isUnmerged(name, value) && (name !== '$ref' || !target), isAlways);
    if (depth >= deepest) this.tell(schema, isAlternative, isAlways);
    const [anyOf, oneOf, allOf] = alternatives.map((name) =>
      depth < deepest ? this.#branches(schema[name], name, depth + 1, isAlways && name === 'allOf') : [],
    ) as [Flat[], Flat[], Flat[]];
    if (target && !this.#open.has(target)) allOf.push(this.of(target, depth + 1, isAlways));
    const own = {
      properties: new Map(Object.entries(isObject(schema['properties']) ? schema['properties'] : {})),
      required: textsIn(schema['required']),
    };
    for (const { properties, required } of [own, ...anyOf, ...oneOf, ...allOf]) this.#budget.left -= 1 + properties.size + required.length;
    if (this.#budget.left < 0) return own;
    const required = new Set([...own.required, ...common(anyOf), ...common(oneOf), ...allOf.flatMap((branch) => branch.required)]);
    for (const [words, branches] of [
      ['at least', anyOf],
      ['exactly', oneOf],
    ] as const) {
      const sets = branches.map((branch) => branch.required.filter((key) => !required.has(key)));
      if (sets.some((set) => set.length > 0)) this.#sentences.add(`${isAlways ? '' : inOne}Set ${words} one of these: ${shown(sets, namesOf(branches))}.`);
    }
    return { properties: this.#properties([own, ...allOf], [anyOf, oneOf]), required: [...required] };
  }

  #properties([own, ...all]: readonly Flat[], lists: readonly (readonly Flat[])[]): ReadonlyMap<string, Json> {
    const said = new Map<string, PropertyRules>();
    const of = (name: string) => {
      const one = said.get(name) ?? { all: [], any: [] };
      said.set(name, one);
      return one;
    };
    for (const [name, one] of own!.properties) of(name).all.push(one);
    for (const branches of lists) {
      const found = new Map<string, Json[]>();
      for (const [name, one] of branches.flatMap(({ properties }) => [...properties])) {
        const schemas = found.get(name) ?? [];
        found.set(name, schemas);
        schemas.push(one);
      }
      for (const [name, schemas] of found) of(name).any.push({ schemas, isOfEach: schemas.length === branches.length });
    }
    for (const [name, one] of all.flatMap(({ properties }) => [...properties])) of(name).all.push(one);
    return new Map([...said].map(([name, one]) => [name, this.#property(one)]));
  }

  /** An alternative that does not speak of a property leaves it as the others describe it, unless it is described for all of them. */
  #property({ all, any }: PropertyRules): Json {
    const ofEach = any.filter(({ isOfEach }) => isOfEach).map(({ schemas }) => this.#joined.any(schemas));
    const isLoose = all.length === 0 && ofEach.length === 0;
    return isLoose ? this.#joined.any(any.flatMap(({ schemas }) => schemas)) : this.#joined.all([...all, ...ofEach]);
  }

  #branches(given: Json | undefined, name: string, depth: number, isAlways: boolean): Flat[] {
    if (!Array.isArray(given)) return [];
    return (given as readonly Json[]).flatMap((one) => {
      if (this.#budget.left < 0 || !isObject(one)) return one === true && name !== 'allOf' ? [empty] : [];
      const branch = (isOnlyRef(one) ? resolved(one, this.#root) : undefined) ?? one;
      return this.#open.has(branch) || (name !== 'allOf' && !mayBeObject(branch)) ? [] : [this.of(branch, depth, isAlways)];
    });
  }

  /** Tells of the keywords of a schema that cannot be merged. */
  tell(schema: JsonObject, isTold: (name: string, value: Json) => boolean, isAlways: boolean): void {
    if (this.#others.isFull) return;
    const told = Object.keys(schema).filter((name) => isTold(name, schema[name]!));
    if (told.length > 0) this.#others.add(`${isAlways ? '' : inOne}{${told.map((name) => `${name}: ${JSON.stringify(schema[name])}`).join(', ')}}`);
  }
}

/** What is told of one of several alternatives. */
const inOne = 'In one of the alternatives: ';

/** Arguments are always an object. */
const mayBeObject = ({ type }: JsonObject): boolean => (Array.isArray(type) ? type.includes('object') : typeof type !== 'string' || type === 'object');

const empty: Flat = { properties: new Map(), required: [] };

/** Different texts, up to a number of characters. */
class Limited {
  readonly texts = new Set<string>();
  #left = longestTold;

  get isFull(): boolean {
    return this.#left <= 0;
  }

  add(text: string): void {
    if (this.isFull || this.texts.has(text)) return;
    this.texts.add(text.length > this.#left ? `${text.slice(0, this.#left - 1).toWellFormed()}…` : text);
    this.#left -= text.length;
  }
}

const isUnmerged = (name: string, value: Json): boolean =>
  !known.has(name) && (typeof value !== 'boolean' || (name !== 'additionalProperties' && name !== 'unevaluatedProperties'));

/** What all of several alternatives require. */
function common(branches: readonly Flat[]): readonly string[] {
  const [first, ...others] = branches.map(({ required }) => new Set(required));
  return [...(first ?? [])].filter((key) => others.every((keys) => keys.has(key)));
}

/** What tells alternatives apart: a property that all of them require, each with a value of its own (`kind: "cat"`). */
function namesOf(branches: readonly Flat[]): readonly string[] {
  for (const key of common(branches)) {
    const values = branches.map(({ properties }) => onlyValue(properties.get(key)));
    if (values.every((value) => value !== undefined) && new Set(values).size === values.length) return values.map((value) => `${key} ${value}`);
  }
  return [];
}

function onlyValue(schema: Json | undefined): string | undefined {
  if (!isObject(schema)) return undefined;
  const { const: value, enum: values } = schema;
  const only = value ?? (Array.isArray(values) && values.length === 1 ? (values[0] as Json) : undefined);
  return typeof only === 'string' || typeof only === 'number' ? JSON.stringify(only).slice(0, 100) : undefined;
}

/** @param names of the alternatives; none where they have none */
function shown(sets: readonly (readonly string[])[], names: readonly string[]): string {
  const texts = sets.map((set, at) => {
    const name = names[at];
    if (set.length === 0) return name ?? 'none of them';
    return `${name === undefined ? '' : `${name} with `}${set.join(' and ')}`;
  });
  return [...new Set(texts)].join('; or ');
}

const textsIn = (value: Json | undefined): readonly string[] =>
  Array.isArray(value) ? (value as readonly Json[]).filter((one): one is string => typeof one === 'string') : [];

function isOnlyRef(schema: object): boolean {
  for (const name in schema) if (name !== '$ref') return false;
  return '$ref' in schema;
}

/** The schema of the same document that one refers to. */
function resolved(schema: object, root: JsonObject): JsonObject | undefined {
  let found: unknown = schema;
  for (let step = 0; step < deepest && isObject(found) && typeof found['$ref'] === 'string'; step++) {
    found = /^#\/(?:\$defs|definitions)\/[^/]{1,200}$/.test(found['$ref']) ? referredTo(found['$ref'], root) : undefined;
    if (isObject(found) && !isOnlyRef(found)) return found as JsonObject;
  }
  return undefined;
}
