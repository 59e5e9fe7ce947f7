import { list, type Any } from './vendor.ts';

/** A value that conforms to the schema, as far as a model would take it. Types may be written in capitals, as the Gemini API does. */
export function sample(schema: Any, root: Any = schema, depth = 0): Any {
  if (typeof schema !== 'object' || schema === null || depth > 8) return 'x';
  if ('const' in schema) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (typeof schema.$ref === 'string') return sample(referred(schema.$ref, root), root, depth + 1);
  const variant = list(schema.anyOf ?? schema.oneOf).find((one) => one?.type !== 'null') ?? list(schema.allOf)[0];
  if (variant) return sample(variant, root, depth + 1);
  const type = String(list(schema.type).find((one) => one !== 'null') ?? schema.type ?? (schema.properties ? 'object' : 'string')).toLowerCase();
  switch (type) {
    case 'object': {
      const required = list(schema.required);
      const members = Object.entries(schema.properties ?? {}).filter(([name]) => required.includes(name) || depth === 0);
      return Object.fromEntries(members.map(([name, one]) => [name, sample(one, root, depth + 1)]));
    }
    case 'array':
      return Array.from({ length: Math.max(Number(schema.minItems ?? 0), depth < 3 ? 1 : 0) }, () => sample(schema.items, root, depth + 1));
    case 'integer':
    case 'number':
      return Number(schema.minimum ?? (schema.exclusiveMinimum === undefined ? Math.min(1, Number(schema.maximum ?? 1)) : Number(schema.exclusiveMinimum) + 1));
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return 'Paris'.padEnd(Number(schema.minLength ?? 0), 's').slice(0, Number(schema.maxLength ?? 1000));
  }
}

function referred(reference: string, root: Any): Any {
  let at: Any = root;
  for (const step of reference.replace(/^#\/?/, '').split('/')) at = step === '' ? at : at?.[step];
  return at;
}
