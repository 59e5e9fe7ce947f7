/** Puts the values of secrets that a user may use in place of each `{{secret.NAME}}` in a text: one pass, so a value is never read for further ones. @throws Fault `invalid` naming a secret that the user may not use, or that there is not */
export type ResolveSecrets = (userId: number, text: string) => Promise<string>;

export const secretName = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;

/** With as many spaces as the places of plugins may have: what one of the two took for a secret, and the other for text, could be sent by who may not. */
const placeholder = /\{\{\s{0,5}secret\.([A-Za-z][A-Za-z0-9_]{0,63})\s{0,5}\}\}/g;

/** The names of the secrets that a text asks for, each once. */
export const secretsIn = (text: string): readonly string[] => [...new Set(Array.from(text.matchAll(placeholder), ([, name]) => name!))];

/** Puts values in their places. A name without a value stays as it is. */
export function withSecrets(text: string, values: ReadonlyMap<string, string>): string {
  return text.replace(placeholder, (whole, name: string) => values.get(name) ?? whole);
}
