import { type Static, Type } from 'typebox';
import { nullable } from '#http/schemas';
import type { JsonObject } from '#core/json';
import { propertiesOf } from './values.ts';
import type { Plugin } from './types.ts';

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

/** The values in a message that calls a plugin: a line for each field, as `get-plugins` shows it; else all of it is the text. */
export function valuesIn(message: string, { fields, fileMode }: Pick<Plugin, 'fields' | 'fileMode'>): Readonly<Record<string, string>> {
  const all = fields ? fieldsOf(fields, fileMode).filter(({ type }) => type !== 'file') : [];
  const text = `\n${message.replace(/^\s{1,1000}/, '')}`;
  const places = all.flatMap((field) => {
    const mark = `\n${lineOf(field)}`;
    const at = text.indexOf(mark);
    return at < 0 ? [] : [{ name: field.name, at, from: at + mark.length }];
  });
  const sorted = places.toSorted((a, b) => a.at - b.at);
  if (sorted[0]?.at !== 0) {
    const only = all.find(({ name }) => name === 'text') ?? all.find(({ required }) => required) ?? all[0];
    return only && text.trim() !== '' ? { [only.name]: text.trim() } : {};
  }
  const values = sorted.map(({ name, from }, index) => [name, text.slice(from, sorted[index + 1]?.at).trim()] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== ''));
}
