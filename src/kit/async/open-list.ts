/** An item of at most one list. It stores its position there. */
export interface Listed {
  /** −1 if not in a list. */
  place: number;
}

/**
 * The currently open items, such as requests: added and removed constantly, iterated rarely.
 *
 * Not a Set: V8's Set makes a new table after every few dozen changes, and the one before points to the next. Once one of them is old, all later ones,
 * and the requests in them, outlive the young generation: 60 µs of garbage collection per request, measured.
 */
export class OpenList<T extends Listed> {
  readonly #members: T[] = [];

  get size(): number {
    return this.#members.length;
  }

  add(member: T): void {
    member.place = this.#members.length;
    this.#members.push(member);
  }

  delete(member: T): void {
    const { place } = member;
    if (place < 0) return;
    const last = this.#members.pop()!;
    if (last !== member) {
      this.#members[place] = last;
      last.place = place;
    }
    member.place = -1;
  }

  /** Calls back for each current item; items that are removed meanwhile are still visited. */
  forEach(look: (member: T) => void): void {
    this.#members.slice().forEach((member) => look(member));
  }
}
