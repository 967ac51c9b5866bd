/** Weak references to objects: each is dropped when nothing else refers to its object. */
export class WeakRefs<T extends object> {
  readonly #refs = new Set<WeakRef<T>>();
  readonly #collected = new FinalizationRegistry<WeakRef<T>>((ref) => this.#refs.delete(ref));

  add(value: T): void {
    const ref = new WeakRef(value);
    this.#refs.add(ref);
    this.#collected.register(value, ref);
  }

  all(): readonly T[] {
    return [...this.#refs].flatMap((ref) => ref.deref() ?? []);
  }
}
