import { Type, type Static } from 'typebox';
import { nullable } from '#http/schemas';
import type { JsonObject } from '#core/json';
import { propertiesOf } from './values.ts';

export const Field = Type.Object({
  name: Type.String(),
  label: Type.String(),
  type: Type.Enum(['text', 'textarea', 'select', 'file', 'number', 'bool']),
  required: Type.Boolean(),
  default: Type.Unknown(),
  options: nullable(Type.Array(Type.Unknown())),
});

/** How the line of a field begins. Clients fill the text in with a function that takes braces for places. */
export const lineOf = ({ label }: Pick<Static<typeof Field>, 'label'>): string => `${label.replaceAll(/[{}\r\n]/g, ' ')}: `;

/** Characters from which a text wants several lines. */
const longText = 500;

/** What a form shows for the values of a plugin. */
export function fieldsOf(fields: JsonObject, fileMode: boolean): Static<typeof Field>[] {
  const required = Array.isArray(fields['required']) ? fields['required'] : [];
  const shownFields = Object.entries(propertiesOf(fields)).map(([name, property]): Static<typeof Field> => ({
    name,
    label: typeof property['title'] === 'string' ? property['title'] : name,
    type: typeOf(property),
    required: required.includes(name),
    default: property['default'] ?? null,
    options: Array.isArray(property['enum']) ? [...(property['enum'] as readonly unknown[])] : null,
  }));
  const file: Static<typeof Field> = { name: 'file', label: 'File', type: 'file', required: false, default: null, options: null };
  return fileMode ? [...shownFields, file] : shownFields;
}

function typeOf({ type, enum: choices, maxLength }: JsonObject): Static<typeof Field>['type'] {
  if (Array.isArray(choices)) return 'select';
  if (type === 'boolean') return 'bool';
  if (type === 'number' || type === 'integer') return 'number';
  if (type === 'string') return typeof maxLength === 'number' && maxLength > longText ? 'textarea' : 'text';
  return 'textarea'; // JSON
}
