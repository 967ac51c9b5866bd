import type { Extensions } from '@plugboard/kernel';

/** The contributions that a view shows now, whatever a reload changes later. */
export function fixedView<T>(view: Extensions<T>): Extensions<T> {
  const all = view.all();
  const byName = new Map(all.map(({ name, value }) => [name, value]));
  return {
    all: () => all,
    get: (name) => byName.get(name),
    one: () => view.one(),
    [Symbol.iterator]: () => all[Symbol.iterator](),
  };
}
