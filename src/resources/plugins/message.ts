import { fieldsOf, lineOf } from './field-list.ts';
import type { Plugin } from './types.ts';

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
