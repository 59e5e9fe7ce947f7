import { Fault } from '#core/fault';
import { isObject, membersWhere, type Json, type JsonObject } from '#core/json';
import { combined } from './combine.ts';
import { conforms, isSchema, itemsOf, lengthOf, memberSchemas, propertiesOf, resolved, schemasOf, spelled, textsOf, typesOf, type Schema } from './conforms.ts';
import { memberFor, numberFor, textFor, truthFor, type Given, type Making, type SchemaPosition } from './scalar.ts';
import { Work } from './work.ts';

/** The work limit for all values of one answer: 12,000 steps are 6 to 12 ms. */
export const stepsOfAnswer = 12_000;
const deepest = 100;
const tooMuch = 'it is too large or too entangled for the built-in model';

/**
 * Makes a value that conforms to a schema, from the message as far as possible: `city: Paris` for a property `city`, the next number for an integer, a
 * mentioned member of an enum; else the default, an example, or the smallest allowed value. Optional members are present if the message names them (all of them
 * if the schema requires none).
 * @throws Fault `invalid` naming the place in the schema that no value satisfies
 */
export function schemaValue(schema: JsonObject, given: Given, field: string, work = new Work(stepsOfAnswer)): Json {
  const maker = new ValueMaker(schema, given, work);
  const value = maker.make(schema, { name: '', path: '#', depth: 0, refs: [], variant: 0 });
  if (value !== undefined) return value;
  const { path, why } = maker.trouble ?? { path: '#', why: 'it allows no value' };
  throw new Fault('invalid', `The built-in model cannot generate a value for the schema ${field} at ${path}: ${why}.`, { field });
}

class ValueMaker implements Making {
  /** The first place that could not be filled. */
  trouble: { readonly path: string; readonly why: string } | undefined;
  readonly #root: Schema;
  readonly given: Given;
  readonly work: Work;

  constructor(root: Schema, given: Given, work: Work) {
    this.#root = root;
    this.given = given;
    this.work = work;
  }

  /** @returns undefined if nothing conforms; the first reason is stored as `trouble` */
  make(schema: Schema, position: SchemaPosition): Json | undefined {
    const before = this.trouble;
    const value = this.#made(schema, position);
    if (value === undefined) return undefined;
    if (!this.#afford(value)) return this.fail(position, tooMuch);
    this.trouble = before;
    return value;
  }

  /** Counts the size of a value, which is written out at each of its places. The content of objects and lists made here has already been counted. */
  #afford(value: Json): boolean {
    return typeof value === 'string' ? this.work.spend(value.length / 16) : this.work.spend(0);
  }

  /** Literal values in the schema: a constant, a member of an enumeration. */
  #given(value: Json | undefined): Json | undefined {
    return value === undefined || value === null || typeof value !== 'object' || this.work.spend(spelled(value, this.work).length / 16) ? value : undefined;
  }

  #made(schema: Schema, position: SchemaPosition): Json | undefined {
    if (!this.work.spend()) return this.fail(position, tooMuch);
    if (position.depth > deepest) return this.fail(position, `it is nested more than ${deepest} levels deep`);
    if (schema === false) return this.fail(position, 'it allows no value');
    if (schema === true) return this.make({ type: 'string' }, position);
    if (typeof schema['$ref'] === 'string') return this.#followed(schema, schema['$ref'], position);
    this.work.spend(Object.keys(schema).length / 2);
    const choices = choicesOf(schema, this.work);
    if (!choices) {
      const value = this.#checked(schema, this.#plain(schema, position), position);
      return value === undefined ? this.#again(schema, position) : value;
    }
    for (const choice of choices) {
      if (!this.work.spend(isObject(choice) ? 2 + Object.keys(propertiesOf(choice)).length / 8 : 1)) break;
      const value = this.make(choice, { ...position, depth: position.depth + 1 });
      if (value !== undefined && this.is(schema, value)) return value;
    }
    return this.fail(position, 'its alternatives exclude each other');
  }

  /** A schema with a reference requires both the referenced schema and its own keywords. */
  #followed(schema: JsonObject, reference: string, position: SchemaPosition): Json | undefined {
    const target = resolved(this.#root, reference, this.work);
    this.work.spend(reference.length / 16 + Object.keys(schema).length);
    if (target === undefined) return this.fail(position, `${reference.slice(0, 100)} leads nowhere`);
    if (position.refs.includes(reference)) return this.fail(position, `${reference.slice(0, 100)} needs itself without end`);
    const { $ref: _, $defs: __, definitions: ___, ...beside } = schema;
    const whole = Object.keys(beside).length === 0 ? target : combined(target, beside, this.work);
    return this.make(whole, { ...position, depth: position.depth + 1, refs: [...position.refs, reference] });
  }

  /** `not` and keywords that are only validated may reject the first value: a few others are tried. */
  #again(schema: JsonObject, position: SchemaPosition): Json | undefined {
    if (!('not' in schema) || position.variant > 3) return undefined;
    return this.make(schema, { ...position, variant: position.variant + 1 });
  }

  #checked(schema: JsonObject, value: Json | undefined, position: SchemaPosition): Json | undefined {
    if (value === undefined || this.is(schema, value)) return value;
    return this.fail(position, 'its keywords contradict each other');
  }

  #plain(schema: JsonObject, position: SchemaPosition): Json | undefined {
    if ('const' in schema) return this.#given(schema['const']);
    if (Array.isArray(schema['enum'])) return this.#given(memberFor(schema, schema['enum'] as readonly Json[], position, this));
    for (const type of inOrder(typesOf(schema) ?? [guessed(schema, this.given.findings.labelled(position.name))])) {
      const value = this.#ofType(type, schema, position);
      if (value !== undefined) return value;
    }
    return this.fail(position, 'no type is left for it');
  }

  #ofType(type: string, schema: JsonObject, position: SchemaPosition): Json | undefined {
    switch (type) {
      case 'null':
        return null;
      case 'boolean':
        return truthFor(schema, position, this);
      case 'integer':
      case 'number':
        return numberFor(schema, type === 'integer', position, this);
      case 'string':
        return textFor(schema, position, this);
      case 'array':
        return this.#list(schema, position);
      case 'object':
        return this.#object(schema, position);
      default:
        return this.fail(position, `the type ${type.slice(0, 40)} is unknown`);
    }
  }

  #list(schema: JsonObject, position: SchemaPosition): Json[] | undefined {
    const { first, rest } = itemsOf(schema);
    const fewest = lengthOf(schema, 'minItems') ?? 0;
    const most = lengthOf(schema, 'maxItems') ?? Infinity;
    const named = position.variant === 0 && first.length === 0 ? this.#named(rest, position) : [];
    const items: Json[] = named.slice(0, most);
    const wanted = Math.max(fewest, Math.min(first.length, most));
    for (let tries = 0; items.length < wanted && tries < wanted + 16; tries++) {
      const at = items.length;
      const variant = first[at] === undefined && schema['uniqueItems'] === true ? tries : position.variant;
      const item = this.make(first[at] ?? rest, { ...position, path: `${position.path}/items`, depth: position.depth + 1, variant });
      if (item !== undefined && (schema['uniqueItems'] !== true || !this.is({ enum: items }, item))) items.push(item);
      else if (schema['uniqueItems'] !== true) return undefined;
    }
    const contains = schema['contains'];
    for (let count = 0; isSchema(contains) && count < 16 && !this.is(schema, items); count++) {
      const item = this.make(combined(contains, rest, this.work), {
        ...position,
        path: `${position.path}/contains`,
        depth: position.depth + 1,
        variant: count,
      });
      if (item === undefined) return undefined;
      items.push(item);
    }
    return this.is(schema, items) ? items : this.fail(position, 'no list has such items in such number');
  }

  /** The items with this label in the message: `tags: red, green and blue`. */
  #named(item: Schema, position: SchemaPosition): Json[] {
    if (!isObject(item)) return [];
    const numeric = typesOf(item)?.some((type) => type === 'integer' || type === 'number');
    const values = this.given.findings.listed(position.name).map((one): Json => (numeric ? Number(one) : one));
    return values.filter((value) => !Number.isNaN(value) && this.is(item, value));
  }

  #object(schema: JsonObject, position: SchemaPosition): JsonObject | undefined {
    const properties = propertiesOf(schema);
    const required = new Set(textsOf(schema['required']));
    const declared = Object.keys(properties);
    const most = lengthOf(schema, 'maxProperties') ?? Infinity;
    const fewest = lengthOf(schema, 'minProperties') ?? 0;
    const entries = new Map<string, Json>();
    this.work.spend((required.size + declared.length) / 8);
    const add = (name: string): boolean => {
      if (!this.work.spend(Math.min(name.length, 1 << 14) / 8)) return false;
      const members = memberSchemas(schema, name, this.work);
      const inner = members.length > 1 ? members.reduce((all, one) => combined(all, one, this.work)) : (members[0] ?? true);
      const value = this.make(inner, { ...position, name, path: `${position.path}/properties/${name.slice(0, 60)}`, depth: position.depth + 1 });
      if (value !== undefined) entries.set(name, value);
      return value !== undefined;
    };
    const all = !Array.isArray(schema['required']);
    let missing = required.size;
    for (const name of declared) {
      if (required.delete(name)) {
        if (!add(name)) return undefined;
        missing--;
      } else if (this.work.spend(3) && entries.size + missing < most && (all || this.#wanted(name, properties[name]))) this.#optional(() => add(name));
    }
    for (const name of required) if (!add(name)) return undefined;
    for (const name of declared) if (entries.size < fewest && !entries.has(name)) this.#optional(() => add(name));
    for (let count = 1; entries.size < fewest && count <= fewest + 16 && this.work.spend(); count++) {
      const name = this.#freeName(schema, count, entries, position);
      if (name !== undefined && !add(name)) return undefined;
    }
    for (const name of entries.keys()) for (const other of this.#demandedBy(name, schema)) if (!entries.has(other) && !add(other)) return undefined; // those demand more
    return Object.fromEntries(entries);
  }

  /** The members that have to be beside this one. */
  #demandedBy(name: string, { dependentRequired: all }: JsonObject): readonly string[] {
    const names = isObject(all) && Object.hasOwn(all, name) ? textsOf(all[name]) : [];
    return this.work.spend(names.length / 8) ? names : [];
  }

  /** The name of one more member: `key1`, else one made for the schema of names, which may always be the same one: then with a number. */
  #freeName({ propertyNames }: JsonObject, count: number, taken: ReadonlyMap<string, Json>, position: SchemaPosition): string | undefined {
    const names = isSchema(propertyNames) ? propertyNames : true;
    const isFree = (name: string) => !taken.has(name) && this.is(names, name);
    const usual = `key${count}`;
    if (isFree(usual) || !isObject(names)) return usual;
    const made = this.make({ type: 'string', ...names }, { ...position, name: '', depth: position.depth + 1, variant: count - 1 });
    return typeof made === 'string' ? [made, `${made}${count}`].find(isFree) : undefined;
  }

  /** Whether the message mentions an optional member. */
  #wanted(name: string, schema: Json | undefined): boolean {
    const { findings } = this.given;
    if (findings.labelled(name) !== undefined) return true;
    const members = isObject(schema) && Array.isArray(schema['enum']) ? textsOf(schema['enum'].slice(0, 100)) : [];
    return members.some((one) => one !== '' && this.work.spend(8 + one.length / 8) && findings.mentions(one));
  }

  /** An optional member that cannot be made is omitted, without a fault. */
  #optional(add: () => boolean): void {
    const before = this.trouble;
    add();
    this.trouble = before;
  }

  is(schema: Schema, value: Json): boolean {
    return conforms(this.#root, schema, value, this.work);
  }

  fail({ path }: SchemaPosition, why: string): undefined {
    this.trouble ??= { path, why: this.work.spend(0) ? why : tooMuch };
    return undefined;
  }
}

/** The alternatives of a schema that combines others, each as one schema; undefined for a plain schema. Null comes last. */
function choicesOf(schema: JsonObject, work: Work): Iterable<Schema> | undefined {
  for (const key of ['anyOf', 'oneOf']) if (Array.isArray(schema[key])) return branches(without(schema, key), schema[key], work);
  if (isSchema(schema['if'])) {
    const rest = without(schema, 'if', 'then', 'else');
    const [yes, no] = [schema['then'], schema['else']];
    return [combined(rest, isSchema(yes) ? combined(schema['if'], yes, work) : schema['if'], work), isSchema(no) ? combined(rest, no, work) : rest];
  }
  if (!Array.isArray(schema['allOf']) || !work.spend(schema['allOf'].length / 16)) return undefined;
  const [first, ...others] = schemasOf(schema['allOf']);
  if (first === undefined) return undefined;
  const rest = without(schema, 'allOf');
  return [combined(others.length > 0 ? { ...rest, allOf: others } : rest, first, work)];
}

const without = (schema: JsonObject, ...keys: string[]): JsonObject => membersWhere(schema, (key) => !keys.includes(key));

function* branches(base: JsonObject, all: readonly unknown[], work: Work): Generator<Schema> {
  if (!work.spend(all.length / 8)) return;
  for (const one of schemasOf(all).toSorted((a, b) => Number(isNull(a)) - Number(isNull(b)))) yield combined(base, one, work);
}

const isNull = (schema: Schema) => isObject(schema) && (schema['type'] === 'null' || schema['const'] === null);
const inOrder = (types: readonly string[]) => types.toSorted((a, b) => Number(a === 'null') - Number(b === 'null'));

function guessed(schema: JsonObject, text: string | undefined): string {
  const has = (...keys: string[]) => keys.some((key) => key in schema);
  if (has('properties', 'required', 'additionalProperties', 'patternProperties', 'minProperties', 'maxProperties')) return 'object';
  if (has('items', 'prefixItems', 'minItems', 'maxItems', 'uniqueItems', 'contains')) return 'array';
  return has('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf') || /^[-+]?\d{1,15}(?:\.\d{1,15})?$/.test(text ?? '')
    ? 'number'
    : 'string';
}
