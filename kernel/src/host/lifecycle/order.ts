/** What decides about an entry's place: the points it puts something at, and those it reads. */
export interface OrderedEntry {
  readonly contributes: ReadonlySet<symbol>;
  readonly reads: ReadonlySet<symbol>;
}

/** `reader` starts after `contributor`, because of `point`. */
export interface Dependency<E> {
  readonly reader: E;
  readonly point: symbol;
  readonly contributor: E;
}

/** Entries in the order to start them in, or a circle of dependencies that allows none. */
export type StartOrder<E> = { readonly order: readonly E[] } | { readonly cycle: readonly Dependency<E>[] };

/**
 * The order that follows from who reads what: whoever reads a point starts after everyone who contributes to it. What that leaves open is decided
 * by an entry's height, the length of the longest chain of readers below it: the lowest start first, so that what all the others lead to, a transport
 * that listens, starts when everything is there. Entries of one height start in the order given, which is the file's.
 */
export function startOrder<E extends OrderedEntry>(entries: readonly E[]): StartOrder<E> {
  const heights = new Map<E, number>();

  /** Finds the height of an entry and of all below it, or the circle that it leads into. `path` is how it was come to. */
  const climb = (entry: E, path: readonly Dependency<E>[]): readonly Dependency<E>[] | undefined => {
    if (heights.has(entry)) return undefined;
    const passed = path.findIndex(({ reader }) => reader === entry);
    if (passed >= 0) return path.slice(passed);
    let height = 0;
    for (const dependency of dependencies(entry, entries)) {
      const cycle = climb(dependency.contributor, [...path, dependency]);
      if (cycle !== undefined) return cycle;
      height = Math.max(height, (heights.get(dependency.contributor) ?? 0) + 1);
    }
    heights.set(entry, height);
    return undefined;
  };

  for (const entry of entries) {
    const cycle = climb(entry, []);
    if (cycle !== undefined) return { cycle };
  }
  return { order: entries.toSorted((a, b) => (heights.get(a) ?? 0) - (heights.get(b) ?? 0)) };
}

/** Whom an entry waits for. It may read what it contributes to itself. */
function dependencies<E extends OrderedEntry>(reader: E, entries: readonly E[]): Dependency<E>[] {
  return entries
    .filter((entry) => entry !== reader)
    .flatMap((contributor) => {
      const point = [...reader.reads].find((key) => contributor.contributes.has(key));
      return point === undefined ? [] : [{ reader, point, contributor }];
    });
}
