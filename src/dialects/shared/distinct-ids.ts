/** The ids of the tool calls of an answer: some servers repeat them, and clients that find results by their ids would lose one. */
export class DistinctIds {
  readonly #taken = new Set<string>();
  /** The last number tried for each id. */
  readonly #numbers = new Map<string, number>();

  /** @returns the id, or where a call before has it, one with a number behind it */
  take(id: string): string {
    let own = id;
    if (this.#taken.has(id)) {
      let number = this.#numbers.get(id) ?? 1;
      do own = `${id}_${++number}`;
      while (this.#taken.has(own));
      this.#numbers.set(id, number);
    }
    this.#taken.add(own);
    return own;
  }
}
