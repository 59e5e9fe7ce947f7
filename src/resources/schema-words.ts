import type { JsonObject } from '#core/json';

/** The limits of a schema that are told, each with its number. */
const limitsSaid: readonly (readonly [string, string, string])[] = [
  ['minimum', 'at least ', ''],
  ['exclusiveMinimum', 'more than ', ''],
  ['maximum', 'at most ', ''],
  ['exclusiveMaximum', 'less than ', ''],
  ['multipleOf', 'a multiple of ', ''],
  ['minLength', 'of at least ', ' characters'],
  ['maxLength', 'of at most ', ' characters'],
  ['minItems', 'of at least ', ' items'],
  ['maxItems', 'of at most ', ' items'],
];
/** Rules of a schema that are told in its own words. */
const wordsSaid: readonly (readonly [string, string])[] = [
  ['format', 'of the format '],
  ['pattern', 'that matches '],
];
/** Rules of a schema that say nothing to who reads them. */
const otherRules = ['uniqueItems', 'items', 'properties', 'required', 'additionalProperties'];

/** What a value must be that keeps to a schema, as the rest of a sentence. @param whose who declares it */
export function schemaWords(property: JsonObject, whose: 'plugin' | 'agent'): string {
  const { type, enum: choices } = property;
  if (Array.isArray(choices))
    return `one of ${choices
      .slice(0, 20)
      .map((one) => (isPlain(one) ? String(one) : JSON.stringify(one)))
      .join(', ')}`.slice(0, 300);
  const limits = limitsSaid.flatMap(([name, before, after]) => {
    const limit = property[name];
    return typeof limit === 'number' ? [`${before}${limit}${after}`] : [];
  });
  const texts = wordsSaid.flatMap(([name, before]) => {
    const word = property[name];
    return typeof word === 'string' ? [before + word.slice(0, 100)] : [];
  });
  const others = typeof type !== 'string' || otherRules.some((name) => property[name] !== undefined) ? [`as the ${whose} declares it`] : [];
  return [...(typeof type === 'string' ? [`a value of the type ${type.slice(0, 20)}`] : []), ...limits, ...texts, ...others].join(', ');
}

const isPlain = (value: unknown): value is string | number | boolean => ['string', 'number', 'boolean'].includes(typeof value);
