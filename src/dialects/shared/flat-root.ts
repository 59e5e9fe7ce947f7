import type { FunctionTool } from '#core/conversation';
import { isObject, textOf, type Json, type JsonObject } from '#core/json';

/** What schemas of tools must not have at their root: makenotion/notion-mcp-server#102, langchain-ai/langchainjs#9804, anthropics/claude-code#5319 */
export const alternatives = ['anyOf', 'oneOf', 'allOf'] as const;

const deepest = 5;
/** Characters of the sentence about required properties. */
const longestTold = 1000;

/**
 * A tool whose arguments are described as one object: the properties of all alternatives at the root are its own, and which of them go together is told in words.
 *
 * @param refused names that the root must not have
 * @returns the same object where it has none
 */
export function withFlatRoot(tool: FunctionTool, refused: readonly string[], ignored: Set<string>): FunctionTool {
  const { parameters } = tool;
  if (parameters === undefined || !refused.some((name) => name in parameters)) return tool;
  const found = refused.filter((name) => name in parameters).join(', ');
  ignored.add(
    `tools: the provider does not accept ${found} at the root of a schema. The properties of alternatives are merged, and the description says which are required.`,
  );
  const flat = new Flattening(parameters).of(parameters, 0);
  const names = new Set<string>(refused);
  const left = Object.fromEntries(Object.entries(parameters).filter(([name]) => !names.has(name)));
  const told = [textOf(parameters['description']), ...flat.told].filter((text) => text !== '').join('\n');
  return {
    ...tool,
    parameters: {
      ...left,
      type: 'object',
      properties: flat.properties,
      ...(flat.required.length > 0 ? { required: flat.required } : {}),
      ...(told === '' ? {} : { description: told }),
    },
  };
}

interface Flat {
  readonly properties: JsonObject;
  readonly required: readonly string[];
  readonly told: readonly string[];
}

/** Looks at each part of a schema once, however often it is referred to. */
class Flattening {
  readonly #root: JsonObject;
  readonly #seen = new Set<unknown>();

  constructor(root: JsonObject) {
    this.#root = root;
  }

  of(schema: JsonObject, depth: number): Flat {
    this.#seen.add(schema);
    const properties = new Map<string, Map<string, Json>>(); // by name, what is said of each, by its text
    const add = (described: JsonObject) => {
      for (const [name, one] of Object.entries(described)) {
        const known = properties.get(name) ?? new Map<string, Json>();
        properties.set(name, known.set(JSON.stringify(one), one));
      }
    };
    if (isObject(schema['properties'])) add(schema['properties']);
    const required = new Set(textsIn(schema['required']));
    const told: string[] = [];
    for (const name of alternatives) {
      const branches = depth < deepest ? this.#branches(schema[name], depth + 1) : [];
      for (const branch of branches) {
        add(branch.properties);
        told.push(...branch.told);
      }
      for (const key of name === 'allOf' ? branches.flatMap((branch) => branch.required) : common(branches)) required.add(key);
      const sets = name === 'allOf' ? [] : branches.map((branch) => branch.required.filter((key) => !required.has(key)));
      if (sets.some((set) => set.length > 0)) told.push(wordsOf(name, sets));
    }
    const entries = [...properties].map(([name, all]) => [name, all.size === 1 ? [...all.values()][0]! : { anyOf: [...all.values()] }] as const);
    return { properties: Object.fromEntries(entries), required: [...required], told };
  }

  #branches(given: Json | undefined, depth: number): readonly Flat[] {
    if (!Array.isArray(given)) return [];
    return (given as readonly Json[]).flatMap((one) => {
      const branch = resolved(one, this.#root);
      return branch && !this.#seen.has(branch) ? [this.of(branch, depth)] : [];
    });
  }
}

/** What all of several alternatives require. */
function common(branches: readonly Flat[]): readonly string[] {
  const [first, ...others] = branches.map(({ required }) => new Set(required));
  return [...(first ?? [])].filter((key) => others.every((keys) => keys.has(key)));
}

function wordsOf(name: (typeof alternatives)[number], sets: readonly (readonly string[])[]): string {
  const shown = sets.map((set) => (set.length === 0 ? 'none of them' : set.join(' and '))).join('; or ');
  return `Set ${name === 'oneOf' ? 'exactly' : 'at least'} one of these: ${shown}.`.slice(0, longestTold);
}

const textsIn = (value: Json | undefined): readonly string[] =>
  Array.isArray(value) ? (value as readonly Json[]).filter((one): one is string => typeof one === 'string') : [];

/** A schema, or the one of the same document that it refers to. */
function resolved(schema: Json, root: JsonObject): JsonObject | undefined {
  let found = schema;
  for (let step = 0; step < deepest && isObject(found) && typeof found['$ref'] === 'string'; step++) {
    const [, place, name] = /^#\/(\$defs|definitions)\/([^/]{1,200})$/.exec(found['$ref']) ?? [];
    const all = place === undefined ? undefined : root[place];
    found = isObject(all) && Object.hasOwn(all, name!) ? all[name!]! : null;
  }
  return isObject(found) ? found : undefined;
}
