/** The MIME type of a `content-type`, lower-case and without parameters, and its charset. */
export function contentTypeOf(header: string): { readonly type: string; readonly charset: string | undefined } {
  const [type = '', ...parameters] = header.slice(0, 500).toLowerCase().split(';');
  const charset = parameters.map((one) => /^\s*charset\s*=\s*"?([\w-]{1,40})/.exec(one)?.[1]).find((one) => one !== undefined);
  return { type: type.trim(), charset };
}

/** A text by its charset; in UTF-8 where that is absent or not known. */
export function decodedBy(charset: string | undefined, bytes: Uint8Array): string {
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return new TextDecoder().decode(bytes);
  }
}
