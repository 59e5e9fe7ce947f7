/** ` (ECONNREFUSED)`: the code of an error of the system or of TLS, or of one that caused it, for a sentence; empty where there is none. A message is not shown: it may contain secrets. */
export function codeInBrackets(error: unknown): string {
  for (let one = error; one instanceof Error; one = one.cause)
    if ('code' in one && typeof one.code === 'string' && /^[A-Z][A-Z0-9_]{2,60}$/.test(one.code)) return ` (${one.code})`;
  return '';
}
