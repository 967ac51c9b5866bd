/** What determines when an entry starts: the points it contributes to, and those it reads. */
interface OrderedEntry {
  readonly contributes: ReadonlySet<symbol>;
  readonly reads: ReadonlySet<symbol>;
}

/** `reader` starts after `contributor`, because of `point`. */
interface Dependency<E> {
  readonly reader: E;
  readonly point: symbol;
  readonly contributor: E;
}

/** The entries in start order, or a cycle of dependencies that makes an order impossible. */
type StartOrder<E> = { readonly order: readonly E[] } | { readonly cycle: readonly Dependency<E>[] };

/**
 * Derives the start order: an entry that reads a point starts after every entry that contributes to
 * it. Beyond that, entries start by height, the length of the longest chain of dependencies below
 * them: an entry that listens for callers reads from most others, so it starts last.
 * Entries of equal height start in the given order, that of the file.
 */
export function startOrder<E extends OrderedEntry>(entries: readonly E[]): StartOrder<E> {
  const heights = new Map<E, number>();

  /** Finds the height of an entry and of all below it, or a cycle. `path` leads to the entry. */
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

/** The entries that an entry waits for. It can read a point that it contributes to. */
function dependencies<E extends OrderedEntry>(reader: E, entries: readonly E[]): Dependency<E>[] {
  return entries
    .filter((entry) => entry !== reader)
    .flatMap((contributor) => {
      const point = [...reader.reads].find((key) => contributor.contributes.has(key));
      return point === undefined ? [] : [{ reader, point, contributor }];
    });
}
