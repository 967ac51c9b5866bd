/** The last work of each key. */
const last = new Map<string, Promise<void>>();

/** Does work after all earlier work of the same key, in this process. */
export async function oneAtATime<T>(key: string, work: () => Promise<T>): Promise<T> {
  const own = (last.get(key) ?? Promise.resolve()).then(work);
  const ended = own.then(
    () => {},
    () => {},
  );
  last.set(key, ended);
  try {
    return await own;
  } finally {
    if (last.get(key) === ended) last.delete(key);
  }
}
