import { list, type Any } from './vendor.ts';

const refused: Readonly<Record<string, readonly string[]>> = {
  integer: ['exclusiveMaximum', 'exclusiveMinimum', 'maximum', 'minimum', 'multipleOf'],
  number: ['exclusiveMaximum', 'exclusiveMinimum', 'maximum', 'minimum', 'multipleOf'],
  string: ['maxLength', 'minLength'],
  array: ['maxItems', 'uniqueItems'],
};

/** What Claude's structured outputs do not take of a schema, in its words. BerriAI/litellm#35808, BerriAI/litellm#21045, agentjido/req_llm#302, ENTERPILOT/GoModel#963 */
export function unfitForClaude(schema: Any, root: Any = schema, open: readonly string[] = []): string | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined;
  if (typeof schema.$ref === 'string') {
    const name = schema.$ref;
    if (open.includes(name)) return `Circular reference detected in schema definitions: ${name}. Recursive schemas are not supported`;
    let target: Any = root;
    for (const step of name.replace(/^#\/?/, '').split('/')) target = step === '' ? target : target?.[step];
    return unfitForClaude(target, root, [...open, name]);
  }
  for (const type of [schema.type].flat().concat(schema.type === undefined && schema.properties ? 'object' : [])) {
    if (type === 'object' && schema.additionalProperties !== false) return "For 'object' type, 'additionalProperties' must be explicitly set to false";
    const found = (refused[type] ?? []).filter((name) => name in schema);
    if (found.length > 0) return `For '${type}' type, properties ${found.join(', ')} are not supported`;
    if (type === 'array' && Number(schema.minItems ?? 0) > 1) return "For 'array' type, 'minItems' values other than 0 or 1 are not supported";
  }
  const inside = [...Object.values(schema.properties ?? {}), schema.items, ...list(schema.anyOf), ...list(schema.allOf), ...list(schema.oneOf)];
  for (const one of inside) {
    const found = unfitForClaude(one, root, open);
    if (found) return found;
  }
  return undefined;
}
