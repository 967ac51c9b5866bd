/** A member of an `ActiveSet`, which notes its index in the set. */
export interface ActiveMember {
  index: number;
}

/**
 * A set of what comes and goes with each request, without an order.
 *
 * A `Set` that changes all the time moves to a new table every few additions, and the old table
 * refers to the new one and to the members that it had. Once one of these tables is in the old
 * generation of the heap, all later ones with all their members stay in memory until a full garbage
 * collection. Here the last member takes the index of a member that leaves.
 */
export class ActiveSet<T extends ActiveMember> implements Iterable<T> {
  readonly #members: T[] = [];

  get size(): number {
    return this.#members.length;
  }

  /** Adds a member, which must not be in an `ActiveSet` already. */
  add(member: T): void {
    member.index = this.#members.push(member) - 1;
  }

  /** Removes a member. Does nothing if it is not in the set. */
  delete(member: T): void {
    const { index } = member;
    if (this.#members[index] !== member) return;
    const last = this.#members.pop() as T;
    if (last === member) return;
    this.#members[index] = last;
    last.index = index;
  }

  /** Iterates over the members of this moment. */
  [Symbol.iterator](): IterableIterator<T> {
    return [...this.#members].values();
  }
}
