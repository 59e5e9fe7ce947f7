/** The value of a JSON text; undefined where the text is not JSON. Parses in one go: for long texts of others there is `parseForeign`. */
export function valueIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
