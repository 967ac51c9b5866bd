import type { Clock } from '../base/ambient.js';

/** Something took longer than it may. */
export class TimeLimitError extends Error {
  override readonly name = 'TimeLimitError';
  readonly code = 'TIME_LIMIT';

  constructor(readonly limit: number) {
    super(`it took longer than ${limit / 1000} s`);
  }
}

/**
 * Runs something that is given so many milliseconds. Its signal is aborted when they are over, when it fails, and when `outer` is aborted: then this
 * rejects at once, and what runs on is left behind.
 */
export async function withinLimit(
  run: (signal: AbortSignal) => Promise<void> | void,
  limit: number,
  clock: Clock,
  outer?: AbortSignal,
): Promise<void> {
  const controller = new AbortController();
  const cut = Promise.withResolvers<never>();
  const end = (reason: unknown) => {
    controller.abort(reason);
    cut.reject(reason);
  };
  const timer = clock.after(limit, () => end(new TimeLimitError(limit)));
  const onOuter = () => end(outer?.reason);
  outer?.addEventListener('abort', onOuter, { once: true });
  try {
    if (outer?.aborted) throw outer.reason;
    await Promise.race([run(controller.signal), cut.promise]);
  } catch (error) {
    controller.abort(error);
    throw error;
  } finally {
    timer.cancel();
    outer?.removeEventListener('abort', onOuter);
  }
}
