/** Bytes in a charset as a server named it; UTF-8 where it named none, or one that is not known. */
export function decoded(bytes: Uint8Array, charset = 'utf-8'): string {
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return new TextDecoder().decode(bytes);
  }
}
