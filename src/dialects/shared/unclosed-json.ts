/**
 * Hears JSON text in pieces, and knows whether something that was opened in it is not closed yet. Nothing else is judged: a model may write JSON that is wrong,
 * and that is between it and its client.
 */
export class UnclosedJson {
  #depth = 0;
  #inText = false;
  #escaped = false;

  hear(json: string): void {
    for (let at = 0; at < json.length; at++) {
      const sign = json.charCodeAt(at);
      if (this.#escaped) this.#escaped = false;
      else if (this.#inText) {
        if (sign === quote) this.#inText = false;
        else if (sign === backslash) this.#escaped = true;
      } else if (sign === quote) this.#inText = true;
      else if (sign === openBrace || sign === openBracket) this.#depth++;
      else if (sign === closeBrace || sign === closeBracket) this.#depth--;
    }
  }

  get isOpen(): boolean {
    return this.#inText || this.#depth > 0;
  }
}

const [quote, backslash, openBracket, closeBracket, openBrace, closeBrace] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];
