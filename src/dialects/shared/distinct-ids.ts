/** Ids of tool calls, each of which is given once: some servers repeat them, and clients that find results by their ids would lose one. */
export class DistinctIds {
  readonly #taken: Set<string>;
  /** The last number tried for each id: numbers that are taken are passed over once for all of its calls. */
  readonly #numbers = new Map<string, number>();

  /** @param taken ids that are not given */
  constructor(taken: Iterable<string> = []) {
    this.#taken = new Set(taken);
  }

  /** @returns the id, or where it is taken, `next` */
  take(id: string): string {
    if (this.#taken.has(id)) return this.next(id);
    this.#taken.add(id);
    return id;
  }

  /** @returns the id with a number behind it */
  next(id: string): string {
    let own: string;
    let number = this.#numbers.get(id) ?? 1;
    do own = `${id}_${++number}`;
    while (this.#taken.has(own));
    this.#numbers.set(id, number);
    this.#taken.add(own);
    return own;
  }
}
