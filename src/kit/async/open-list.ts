/** Something that is in a list at most once and keeps its place there. */
export interface Listed {
  /** −1 outside. */
  place: number;
}

/**
 * What is open at the moment, such as requests: added and removed all the time, looked through now and then.
 *
 * Not a Set: V8's Set makes a new table after every few dozen changes, and the one before points to the next. Once one of them is old, all later ones,
 * and the requests that stood in them, outlive the young generation: 60 µs of garbage collection a request, measured.
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

  /** Calls back for each that is in it now; those who leave meanwhile are still seen. */
  forEach(look: (member: T) => void): void {
    this.#members.slice().forEach((member) => look(member));
  }
}
