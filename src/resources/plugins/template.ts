import { Fault } from '#core/fault';

/** A place to fill in: `{{name}}`, or `{{secret.NAME}}`, with spaces as in `core/secrets`. */
const place = /\{\{\s{0,5}(secret\.)?([A-Za-z_]\w{0,63})\s{0,5}\}\}/g;

/** Characters of a text that was filled in. */
const mostFilled = 4_000_000;

/** The names of the fields and of the secrets that a text has places for. */
export function placesIn(text: string): { readonly fields: readonly string[]; readonly secrets: readonly string[] } {
  const found = Array.from(text.matchAll(place), ([, secret, name]) => ({ isSecret: secret !== undefined, name: name! }));
  return {
    fields: [...new Set(found.flatMap(({ isSecret, name }) => (isSecret ? [] : [name])))],
    secrets: [...new Set(found.flatMap(({ isSecret, name }) => (isSecret ? [name] : [])))],
  };
}

export interface Filling {
  readonly values: Readonly<Record<string, unknown>>;
  readonly secrets?: ReadonlyMap<string, string>;
  /** What a value becomes before it is filled in; absent: it stays. */
  readonly written?: (text: string) => string;
}

/** A text with its places filled in, in one pass: what is filled in is never read as a template. A field without a value is left empty. @throws Fault `too-large` */
export function filled(text: string, { values, secrets, written = (one) => one }: Filling): string {
  let size = text.length;
  return text.replaceAll(place, (whole, secret: string | undefined, name: string) => {
    const found = secret === undefined ? valueAt(values, name) : secrets?.get(name);
    if (secret !== undefined && found === undefined) return whole;
    const value = written(textOfValue(found));
    size += value.length;
    if (size > mostFilled) throw new Fault('too-large', `The text of the plugin, with its values, is longer than ${mostFilled} characters.`);
    return value;
  });
}

export const valueAt = (values: Readonly<Record<string, unknown>>, name: string): unknown => (Object.hasOwn(values, name) ? values[name] : undefined);

/** A value as it stands in a text. */
export const textOfValue = (value: unknown): string => (value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value));

/** The name of the only place in a text that is nothing else. */
export function onlyPlace(text: string): string | undefined {
  const { fields, secrets } = text.length < 100 ? placesIn(text) : { fields: [], secrets: [] };
  return fields.length === 1 && secrets.length === 0 && text.replace(place, '') === '' ? fields[0] : undefined;
}
