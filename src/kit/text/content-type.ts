/** The media type and the charset that a Content-Type header names, in lower case; of its first 500 characters. */
export function contentTypeIn(header: string): { readonly type: string; readonly charset: string | undefined } {
  const [type = '', ...parameters] = header.slice(0, 500).toLowerCase().split(';');
  const charset = parameters.map((one) => /^\s*charset\s*=\s*"?([\w-]{1,40})/.exec(one)?.[1]).find((one) => one !== undefined);
  return { type: type.trim(), charset };
}

/** Bytes in a charset as a server named it; UTF-8 where it named none, or one that is not known. */
export function decoded(bytes: Uint8Array, charset = 'utf-8'): string {
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return new TextDecoder().decode(bytes);
  }
}
