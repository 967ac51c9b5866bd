/** Milliseconds of real time that a suite waits for something that must happen. */
const WAIT_LIMIT = 10_000;

/** Milliseconds a suite watches for something that must not happen. */
const SETTLE = 50;

/**
 * Waits for a promise.
 *
 * @param what what is waited for, for the message.
 * @throws Error after `limit` milliseconds, and what the promise rejects with.
 */
export async function waitFor<T>(what: string, promise: Promise<T>, limit: number = WAIT_LIMIT): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing after ${limit / 1000} s`)), limit);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Gives work that should not happen the time to happen. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, SETTLE));
}
