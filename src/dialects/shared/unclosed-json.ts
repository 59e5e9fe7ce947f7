/**
 * Incremental scanner of JSON text: reports whether a string, object or array is still open after the fragments so far. It does not validate: malformed JSON of
 * a model is forwarded to the client as it is.
 */
export class UnclosedJson {
  #depth = 0;
  #inString = false;
  #escaped = false;

  push(json: string): void {
    for (let at = 0; at < json.length; at++) {
      const code = json.charCodeAt(at);
      if (this.#escaped) this.#escaped = false;
      else if (this.#inString) {
        if (code === quote) this.#inString = false;
        else if (code === backslash) this.#escaped = true;
      } else if (code === quote) this.#inString = true;
      else if (code === openBrace || code === openBracket) this.#depth++;
      else if (code === closeBrace || code === closeBracket) this.#depth--;
    }
  }

  get isOpen(): boolean {
    return this.#inString || this.#depth > 0;
  }
}

const [quote, backslash, openBracket, closeBracket, openBrace, closeBrace] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];
