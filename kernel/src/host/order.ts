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
 * The order that follows from who reads what: whoever reads a point starts after everyone who contributes to it. What that leaves open is
 * decided by the order given, which is the file's, so that a start is the same each time.
 */
export function startOrder<E extends OrderedEntry>(entries: readonly E[]): StartOrder<E> {
  const waiting = new Set(entries);
  const order: E[] = [];
  while (waiting.size > 0) {
    const next = [...waiting].find((entry) => blocker(entry, waiting) === undefined);
    if (next === undefined) return { cycle: findCycle(waiting) };
    waiting.delete(next);
    order.push(next);
  }
  return { order };
}

/** The first entry that must start before this one and has not. An entry may read what it contributes to itself. */
function blocker<E extends OrderedEntry>(reader: E, waiting: ReadonlySet<E>): Dependency<E> | undefined {
  for (const contributor of waiting) {
    if (contributor === reader) continue;
    for (const point of reader.reads) if (contributor.contributes.has(point)) return { reader, point, contributor };
  }
  return undefined;
}

/** Every entry that waits has a blocker: following them must come back to one that was passed. */
function findCycle<E extends OrderedEntry>(waiting: ReadonlySet<E>): readonly Dependency<E>[] {
  const path: Dependency<E>[] = [];
  for (let [entry] = waiting; entry !== undefined; ) {
    const start = path.findIndex(({ reader }) => reader === entry);
    if (start >= 0) return path.slice(start);
    const step = blocker(entry, waiting);
    if (step === undefined) break;
    path.push(step);
    entry = step.contributor;
  }
  return path;
}
