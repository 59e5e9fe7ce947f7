/** The value at a JSON Pointer (RFC 6901); undefined where there is none. */
export function atPointer(value: unknown, pointer: string): unknown {
  let at = value;
  for (const step of pointer.split('/').slice(1)) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (at === null || typeof at !== 'object' || !Object.hasOwn(at, name)) return undefined;
    at = (at as Readonly<Record<string, unknown>>)[name];
  }
  return at;
}
