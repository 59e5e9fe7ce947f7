import { Fault } from '#core/fault';

/** The members of a request that are read here, by their names in lower case. */
export type Members = ReadonlyMap<string, string>;

/** @param properties of the request's schema */
export const membersOf = (properties: object): Members => new Map(Object.keys(properties).map((name) => [name.toLowerCase(), name]));

/** The same of an interface whose members may be spelled in snake_case, too. */
export const membersInBothSpellings = (properties: object): Members =>
  new Map(
    Object.keys(properties).flatMap((name) => [name, name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)].map((one) => [one.toLowerCase(), one])),
  );

/** Characters; longer than all names that are read. */
const longest = 64;

/**
 * Servers written in Go read members whatever their case: there, `Model` would name another model than the one that is allowed and charged here, and `Messages`
 * another conversation than the one that was checked. https://pkg.go.dev/encoding/json#Unmarshal
 *
 * @param fields of a request, which go upstream as they are
 * @param outer the member that has them, with a dot; of the request itself, nothing
 * @throws Fault `invalid`
 */
export function refuseOtherCase(fields: object, members: Members, outer = ''): void {
  for (const name in fields) {
    if (members.has(name) || name.length > longest) continue;
    const meant = members.get(name.toUpperCase().toLowerCase()); // in two steps: `ſ` and the sign of Kelvin are s and k there, too
    if (meant !== undefined && meant !== name) throw new Fault('invalid', `${name} must be spelled ${meant}.`, { field: outer + name });
  }
}
