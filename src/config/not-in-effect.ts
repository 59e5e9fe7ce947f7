import type { Rule } from './form.ts';

/** Settings that are accepted but not read yet. `*` is any name. A change that implements a setting removes its line. */
const table: ReadonlySet<string> = new Set([
  'auth.oidc', // no sign-in
  'models.*.dimensions', // embeddings have the length that a request or the model says
  'otel', // no traces
]);

const note = 'Not yet in effect.';

/** Adds a note to the descriptions of these settings and of their members, for editors and `dragoman init`. */
export function withNotes(rule: Rule, field = '', isNoted = false): Rule {
  const { description, properties, additionalProperties } = rule;
  const inEffect = !isNoted && !table.has(field);
  const inner = (one: Rule, name: string) => withNotes(one, field === '' ? name : `${field}.${name}`, !inEffect);
  return {
    ...rule,
    ...(inEffect || description === undefined ? {} : { description: `${description} ${note}` }),
    ...(properties ? { properties: Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, inner(one, name)])) } : {}),
    ...(typeof additionalProperties === 'object' ? { additionalProperties: inner(additionalProperties, '*') } : {}),
  };
}

/** The settings of a file that are not in effect, by dotted path: `models.my-model.dimensions`. */
export function notInEffect(rule: Rule, value: unknown, name = '', field = ''): readonly string[] {
  if (table.has(field)) return [name];
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return [];
  const { properties = {}, additionalProperties } = rule;
  return Object.entries(value).flatMap(([member, inner]) => {
    const declared = Object.hasOwn(properties, member);
    const one = declared ? properties[member] : typeof additionalProperties === 'object' ? additionalProperties : undefined;
    const below = (parent: string, step: string) => (parent === '' ? step : `${parent}.${step}`);
    return one ? notInEffect(one, inner, below(name, member), below(field, declared ? member : '*')) : [];
  });
}
